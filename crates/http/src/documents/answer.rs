//! The headers of the answer to a search.

use std::collections::BTreeSet;

use axum::http::HeaderValue;
use fetchwell_core::fit::clip;
use fetchwell_source::documents::Uuid;
use fetchwell_tools::documents::SearchAnswer;

use crate::answer::Answer;
use crate::headers::{RERANKED, SEARCH_ID, SEARCH_WARNING};

/// Maximum length of the header with warnings in bytes.
const MAX_WARNING_BYTES: usize = 1_000;

/// Adds the id in the history, the reranker of the results, and the reasons why the answer is less than was asked for.
pub(super) fn with_search_headers(mut answer: Answer, id: Option<Uuid>, found: &SearchAnswer) -> Answer {
    if let Some(id) = id.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        answer = answer.with_header(SEARCH_ID, id);
    }
    answer = answer.with_header(RERANKED, reranked(found.reranked_by.as_deref()));
    match warning(&found.warnings) {
        Some(warning) => answer.with_header(SEARCH_WARNING, warning),
        None => answer,
    }
}

/// Returns the header with the name of a reranker. Characters that a header cannot have are left out.
fn reranked(by: Option<&str>) -> HeaderValue {
    let name: String = by.unwrap_or("none").chars().filter(char::is_ascii_graphic).collect();
    HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("unnamed"))
}

/// Returns the header with warnings, or `None` without any. A character that a header cannot have is a question mark.
fn warning(warnings: &BTreeSet<String>) -> Option<HeaderValue> {
    let is_shown = |c: char| c.is_ascii_graphic() || c == ' ';
    let text = clip(&Vec::from_iter(warnings.iter().map(String::as_str)).join("; "), MAX_WARNING_BYTES);
    let text: String = text.chars().map(|c| if is_shown(c) { c } else { '?' }).collect();
    HeaderValue::from_str(&text).ok().filter(|_| !warnings.is_empty())
}

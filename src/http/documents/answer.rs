//! The response to a request: its status, body and headers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use super::error::DocumentError;
use crate::fit::clip;
use crate::http::headers::{RERANKED, SEARCH_ID, SEARCH_WARNING};
use crate::source::documents::Uuid;

/// A response with a JSON body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    /// Number of items in the body.
    pub(super) items: usize,
    /// Headers of a search.
    pub(super) search: Option<SearchHeaders>,
}

/// The headers of the answer to a search.
#[derive(Debug)]
pub(super) struct SearchHeaders {
    /// Id in the history.
    pub(super) search_id: Option<Uuid>,
    /// Reranker of the results.
    pub(super) reranked_by: Option<String>,
    /// Reasons why the answer is less than was asked for.
    pub(super) warnings: Vec<String>,
}

/// Maximum length of the header with warnings in bytes.
const MAX_WARNING_BYTES: usize = 1_000;

impl Answer {
    /// Creates a response with status 200.
    pub(super) fn new(body: &impl Serialize, items: usize) -> Result<Self, DocumentError> {
        let body = serde_json::to_vec(body).map_err(|_unwritable| DocumentError::internal())?;
        Ok(Self { status: StatusCode::OK, body, items, search: None })
    }

    /// Creates a response without a body.
    pub(super) fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Vec::new(), items: 0, search: None }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = json_response(self.status, self.body);
        if let Some(SearchHeaders { search_id, reranked_by, warnings }) = self.search {
            let headers = response.headers_mut();
            if let Some(id) = search_id.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
                headers.insert(SEARCH_ID, id);
            }
            headers.insert(RERANKED, reranked(reranked_by.as_deref()));
            if let Some(warning) = warning(&warnings) {
                headers.insert(SEARCH_WARNING, warning);
            }
        }
        response
    }
}

/// Returns the header with the name of a reranker. Characters that a header cannot have are left out.
fn reranked(by: Option<&str>) -> HeaderValue {
    let name: String = by.unwrap_or("none").chars().filter(char::is_ascii_graphic).collect();
    HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("unnamed"))
}

/// Returns the header with warnings, or `None` without any. A character that a header cannot have is a question mark.
fn warning(warnings: &[String]) -> Option<HeaderValue> {
    let is_shown = |c: char| c.is_ascii_graphic() || c == ' ';
    let text = clip(&warnings.join("; "), MAX_WARNING_BYTES);
    let text: String = text.chars().map(|c| if is_shown(c) { c } else { '?' }).collect();
    HeaderValue::from_str(&text).ok().filter(|_| !warnings.is_empty())
}

/// Creates a response with a JSON body.
pub(super) fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

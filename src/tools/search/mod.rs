//! `search`: the best matches, as handles with titles and excerpts.
//!
//! * `spec`: the specifications of both profiles.
//! * `request`: typed arguments and their validation.
//! * `query_language`: words and operators of a query.
//! * `connection_labels`: labels of connections in a query.
//! * `page`: fitting of hits into a page.
//! * `result`: a hit as an answer shows it.

mod connection_labels;
mod page;
mod query_language;
mod request;
mod result;
mod spec;

use std::collections::BTreeSet;

use page::{SearchNotes, SearchState, build_page};
pub(crate) use query_language::{parse_query, parse_since};
use request::{PAGING, Request, resolve_openai};
use result::fetchable_id;
use spec::{SEARCH, SEARCH_OPENAI};

use super::answer::{Payload, explain_search, explanation_timeout};
use super::error::ToolError;
use super::paging::{Page, begin};
use super::tool::{Tool, ToolCall, ToolSpec};
use crate::record::RecordData;
use crate::source::{SearchMode, SearchOperator, SearchQuery};

/// Maximum number of hits in one read of the source.
const MAX_LIMIT: usize = 100;

/// Maximum number of reads for one page. There is more than one only if no hit of a read can be fetched.
const MAX_READS: usize = 3;

/// The tool `search` of the profile `standard`.
pub(super) struct Search;

/// The tool `search` of the profile `openai`.
pub(super) struct SearchOpenAi;

impl Tool for Search {
    type Arguments = Page<Request, SearchState>;

    const SPEC: ToolSpec = SEARCH;

    async fn parse(call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        begin(call.toolbox, &PAGING, arguments).await
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        search(call, arguments).await
    }
}

impl Tool for SearchOpenAi {
    type Arguments = Page<Request, SearchState>;

    const SPEC: ToolSpec = SEARCH_OPENAI;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        Ok(Page::single(resolve_openai(arguments)?))
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        search(call, arguments).await
    }
}

async fn search(
    ToolCall { toolbox, warnings, started }: ToolCall<'_>,
    Page { request, rest, so_far }: Page<Request, SearchState>,
) -> Result<Payload, ToolError> {
    let wanted = request.max_hits();
    let is_first_page = rest.is_none();
    let mut found: SearchState = rest.unwrap_or_default();
    let source = toolbox.named_source("search", request.criteria.source.as_ref())?;
    let now = found.started_at(toolbox.now());
    let mut parsed = parse_query(&request.criteria.text, now);
    let labels = parsed.resolve_labels(&source).await;
    labels.map_err(|error| ToolError::from_source(&source, error))?;
    let whole = request.criteria.query(&parsed, wanted.min(MAX_LIMIT))?;
    let mut notes = SearchNotes { warnings, ..SearchNotes::default() };
    notes.warnings.extend(request.warning());
    notes.warnings.extend_from_slice(parsed.warnings());
    let (mut unapplied, mut problems) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..MAX_READS {
        let fetchable = found.hits.iter().filter(|hit| fetchable_id(hit).is_some()).count();
        let is_first_read = round == 0 && is_first_page;
        if !is_first_read
            && (found.position.is_none() || found.hits.len() >= wanted || (round > 0 && fetchable > 0))
        {
            break;
        }
        let query = SearchQuery { position: found.position.take(), ..whole.clone() };
        let page = source.search(&query).await;
        let page = page.map_err(|error| ToolError::from_source(&source, error))?;
        found.hits.extend(page.hits);
        found.position = page.next;
        found.count = page.count.map(|count| (count.value, count.accuracy)).or(found.count);
        notes.windowed |= page.windowed;
        notes.lexical_instead |= page.lexical_instead;
        notes.warnings.extend(page.notes);
        unapplied.extend(page.unapplied);
        problems.extend(page.meaning_problems);
        notes.unavailable.extend(page.unavailable);
    }
    if is_first_page && found.hits.is_empty() && found.position.is_none() && notes.unavailable.is_empty() {
        let within = explanation_timeout(toolbox.call_deadline(), started);
        notes.explanation = explain_search(&source, &SearchQuery { limit: 1, ..whole }, within).await;
    }
    notes.warnings.extend(SearchOperator::warning(&unapplied));
    let (mode, problem) = (request.criteria.mode, problems.first());
    notes.warnings.extend(mode_warning(mode, notes.lexical_instead, problem, source.is_federation()));
    build_page(toolbox, &request, so_far, found, notes).await
}

/// Returns the warning that a mode was not applied, or not by every source. One warning is for all sources.
fn mode_warning(
    mode: SearchMode,
    lexical_instead: bool,
    problem: Option<&String>,
    is_federation: bool,
) -> Option<String> {
    let sources = if is_federation { "sources without it were" } else { "this source was" };
    let is_asked_for = matches!(mode, SearchMode::Semantic | SearchMode::Hybrid);
    let mode = mode.as_str();
    match problem {
        Some(problem) if is_asked_for => {
            Some(format!("`mode` {mode} is not available: {sources} searched by words only: {problem}"))
        }
        Some(problem) => Some(format!("searched by words only: {problem}")),
        None if lexical_instead => {
            Some(format!("`mode` {mode} is not available: {sources} searched by words"))
        }
        None => None,
    }
}

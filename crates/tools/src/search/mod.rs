//! `search`: the best matches, as handles with titles and excerpts.
//!
//! * `spec`: the specifications of both profiles.
//! * `request`: typed arguments and their validation.
//! * `query_language`: words and operators of a query.
//! * `operator_times`, `operator_warning`: ages and dates in operators, and operators that cannot be read.
//! * `connection_labels`: labels of connections in a query.
//! * `reader`: reads of the source until an answer is full, also for `/v1` and the search page.
//! * `page`: fitting of hits into a page.
//! * `result`: a hit as an answer shows it.
//! * `explanation`: the reasons for the places of results.

mod connection_labels;
mod explanation;
mod operator_times;
mod operator_warning;
mod page;
mod query_language;
mod reader;
mod request;
mod result;
mod spec;

pub use explanation::{ExplainedSearch, ExplanationLine, SearchExplanation, explanation_lines, stage_lines};
use fetchwell_core::record::RecordData;
use fetchwell_source::{Count, SearchMode, SearchOperator, SearchPage, SearchQuery, StageClock};
pub use operator_times::parse_since;
pub use operator_warning::OperatorWarning;
use page::{SearchNotes, SearchState, build_page, has_room};
pub use query_language::{ParsedQuery, parse_query};
pub use reader::{SearchReader, dated_position, parse_dated};
use request::{PAGING, Request, resolve_openai};
use result::fetchable_id;
use spec::{SEARCH, SEARCH_OPENAI};

use super::answer::{NoResults, Payload, explain_search, explanation_timeout};
use super::error::ToolError;
use super::paging::{Page, begin};
use super::tool::{Tool, ToolCall, ToolSpec};

/// Maximum number of hits in one read of the source.
const MAX_LIMIT: usize = 100;

/// Maximum number of reads for one page. There is more than one only if no hit of a read can be fetched.
const MAX_READS: usize = 3;

/// The tool `search` of the profile `standard`.
pub(crate) struct Search;

/// The tool `search` of the profile `openai`.
pub(crate) struct SearchOpenAi;

impl Tool for Search {
    type Arguments = Page<Request, SearchState>;

    const SPEC: ToolSpec = SEARCH;

    async fn parse(call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        begin(call.toolbox, &PAGING, arguments).await
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        search(call, arguments).await.map(|answer| answer.payload)
    }
}

impl Tool for SearchOpenAi {
    type Arguments = Page<Request, SearchState>;

    const SPEC: ToolSpec = SEARCH_OPENAI;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        Ok(Page::single(resolve_openai(arguments)?))
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        search(call, arguments).await.map(|answer| answer.payload)
    }
}

impl Search {
    /// Answers a call as [`Tool::call`] does, and explains the results.
    pub(crate) async fn explained(
        call: ToolCall<'_>,
        mut arguments: Page<Request, SearchState>,
    ) -> Result<ExplainedSearch, ToolError> {
        arguments.request.explains = true;
        search(call, arguments).await
    }
}

async fn search(
    ToolCall { toolbox, warnings, started: call_started }: ToolCall<'_>,
    Page { request, rest, so_far }: Page<Request, SearchState>,
) -> Result<ExplainedSearch, ToolError> {
    let wanted = request.max_hits();
    let is_first_page = rest.is_none();
    let rest: SearchState = rest.unwrap_or_default();
    let source = toolbox.named_source("search", request.criteria.source.as_ref())?;
    let failed = |error| ToolError::from_source(&source, error);
    let started = rest.started().unwrap_or_else(|| toolbox.now());
    let parsed =
        ParsedQuery::read(&request.criteria.text, &toolbox.local(started), &source).await.map_err(failed)?;
    let first_hits = request.first_hits(source.is_federation());
    let query = request.criteria.query(&parsed, first_hits.min(MAX_LIMIT))?;
    let query = SearchQuery { explains: request.explains, ..query };
    let mut clock = StageClock::start(query.explains);
    let mut reader = SearchReader { source: &source, query };
    let count = rest.count.map(|(value, accuracy)| Count { value, accuracy });
    let mut found =
        SearchPage { hits: rest.hits, next: rest.position, count, notes: warnings, ..SearchPage::default() };
    found.notes.extend(request.warning());
    found.notes.extend(parsed.warnings().iter().map(ToString::to_string));
    let is_full = |found: &mut SearchPage| {
        found.hits.len() >= wanted || found.hits.iter().any(|hit| fetchable_id(hit).is_some())
    };
    if is_first_page || (found.next.is_some() && found.hits.len() < first_hits) {
        reader.read(&mut found, MAX_READS, is_full).await.map_err(failed)?;
    }
    if let Some(position) = found.next.clone()
        && (first_hits..wanted).contains(&found.hits.len())
        && has_room(toolbox, &request, &found.hits)
    {
        reader.query.limit = wanted - found.hits.len();
        // The next page says why it cannot be read.
        if reader.read(&mut found, MAX_READS, is_full).await.is_err() {
            found.next = Some(position);
        }
    }
    clock.end("whole search");
    found.stages.extend(clock.into_stages());
    let mut no_results = NoResults::default();
    if is_first_page && found.hits.is_empty() && found.next.is_none() && found.unavailable.is_empty() {
        let within = explanation_timeout(toolbox.call_deadline(), call_started);
        let query = SearchQuery { limit: 1, explains: false, ..reader.query };
        no_results = explain_search(&source, &query, within).await;
    }
    found.notes.extend(SearchOperator::warning(&found.unapplied));
    found.notes.extend(mode_warning(request.criteria.mode, &found, source.is_federation()));
    let dates = parsed.dates().to_owned();
    build_page(toolbox, &request, so_far, found, SearchNotes { started, dates, no_results }).await
}

/// Returns the warning that a mode was not applied, or not by every source. One warning is for all sources.
fn mode_warning(mode: SearchMode, found: &SearchPage, is_federation: bool) -> Option<String> {
    let sources = if is_federation { "sources without it were" } else { "this source was" };
    let is_asked_for = matches!(mode, SearchMode::Semantic | SearchMode::Hybrid);
    match found.meaning_note() {
        Some(note) if is_asked_for => {
            Some(format!("`mode` {} is not available: {sources} {note}", mode.as_str()))
        }
        None if found.lexical_instead => {
            Some(format!("`mode` {} is not available: {sources} searched by words", mode.as_str()))
        }
        note => note,
    }
}

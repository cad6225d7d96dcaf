//! `query_records`: the records of one stream, page by page, or what changed in it.
//!
//! * `spec`: the specification.
//! * `request`: typed arguments and their validation.
//! * `page`: fitting of a page into its budget.
//! * `shown_record`: a record as an item of a list.

mod page;
mod request;
mod shown_record;
mod spec;

use std::sync::Arc;

use futures_util::future::join;
use serde::{Deserialize, Serialize};

use fetchwell_core::fit::{PageBudget, bytes_of};
use fetchwell_core::record::RecordData;
use fetchwell_source::{
    Accuracy, BoundSource, Change, RecordsPage, RecordsPosition, RecordsQuery, Start, StreamQuery,
};
use page::{FittedPage, PageRows, RecordPage, fit_page, is_small};
use request::{PAGING, Request};
use spec::QUERY_RECORDS;

use super::answer::{NoRecords, NoResults, Payload, explanation_timeout, run_by_size};
use super::cache::Previews;
use super::change_tokens::ChangeTokenSealer;
use super::error::{Overrun, ToolError, list_unavailable};
use super::paging::{Page, PageState, begin};
use super::tool::{Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;

/// The tool `query_records`.
pub(crate) struct QueryRecords;

/// State that a cursor continues.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListState {
    position: RecordsPosition,
}

impl Tool for QueryRecords {
    type Arguments = Page<Request, ListState>;

    const SPEC: ToolSpec = QUERY_RECORDS;

    async fn parse(call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        begin(call.toolbox, &PAGING, arguments).await
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        query_records(call, arguments).await
    }
}

async fn query_records(
    ToolCall { toolbox, warnings, started }: ToolCall<'_>,
    Page { request, rest, so_far }: Page<Request, ListState>,
) -> Result<Payload, ToolError> {
    let is_first = rest.is_none() && request.query.start == Start::First;
    let source = toolbox.named_source("query_records", request.source.as_ref())?;
    let budget = request.budget(&toolbox.limits("query_records"));
    let mut query = request.query.clone();
    if let Some(ListState { position }) = rest {
        query.start = Start::After(position);
    }
    let changes = ChangeTokenSealer::open(toolbox, &source, &mut query).await;
    let changes = changes.map_err(|error| ToolError::from_source(&source, error))?;
    loop {
        let answer = source.records(&query).await;
        let mut answer = answer.map_err(|error| ToolError::from_source(&source, error))?;
        answer.notes.splice(0..0, warnings.iter().cloned());
        let limit = answer.rows.len().min(query.limit);
        let mut explanation = NoResults::default();
        if is_first && answer.rows.is_empty() && answer.next.is_none() && answer.unavailable.is_empty() {
            let RecordsQuery { stream, connection, filter, words, .. } = &query;
            let (connection, words) = (connection.as_ref(), words.as_ref());
            explanation = NoRecords { stream, connection, filter, words }
                .explain(&source, explanation_timeout(toolbox.call_deadline(), started))
                .await;
        }
        let context =
            PageContext { toolbox, source: &source, request: &request, budget, changes: changes.as_ref() };
        match fit_answer(context, answer, explanation, so_far.clone()).await? {
            FittedPage::Page { payload, .. } => return Ok(payload),
            // The source is read again for as many as fit, so that its position is after the last record shown.
            FittedPage::Rows(fitting) if (1..limit).contains(&fitting) => query.limit = fitting,
            FittedPage::Rows(_) => {
                let hint = "Name `fields`, or fetch one record of a search result.".to_owned();
                return Err(ToolError::ResponseTooLarge {
                    overrun: Overrun::Unmeasured { budget: budget.tokens },
                    hint,
                });
            }
        }
    }
}

/// The part of a call that is the same for each attempt to fit a page.
#[derive(Clone, Copy)]
struct PageContext<'a> {
    toolbox: &'a Toolbox,
    source: &'a BoundSource,
    request: &'a Request,
    budget: PageBudget,
    /// Seals the token of a query for changes.
    changes: Option<&'a ChangeTokenSealer>,
}

/// Fits all rows of an answer into a page, or returns how many would fit.
async fn fit_answer(
    context: PageContext<'_>,
    answer: RecordsPage,
    explanation: NoResults,
    so_far: Option<PageState>,
) -> Result<FittedPage, ToolError> {
    let PageContext { toolbox, changes, .. } = context;
    let (unavailable, more) = list_unavailable(&answer.unavailable);
    let warnings = answer.notes.into_iter().chain(more).collect();
    let mut page = RecordPage { unavailable, warnings, ..RecordPage::default() };
    page.count = answer.count.map(|count| count.value);
    match answer.count.map(|count| count.accuracy) {
        Some(Accuracy::Estimated) => page.warnings.push("`count` is an estimate".to_owned()),
        Some(Accuracy::LowerBound) => page.warnings.push("`count` is at least so many".to_owned()),
        Some(Accuracy::Exact) | None => {}
    }
    if let (Some(token), Some(changes)) = (&answer.next_changes, changes) {
        page.next_changes_since = changes.seal(token).await.map_err(ToolError::StateUnavailable)?;
        page.has_more = answer.has_more.then_some(true);
        if page.next_changes_since.is_none() {
            page.warnings
                .push("Changes cannot be continued: the token of the source is too long.".to_owned());
        }
    }
    let rows = Arc::new(answer.rows);
    let (Some(position), Some(so_far)) = (answer.next, so_far) else {
        return fit_rows_of_page(context, page, explanation, rows).await;
    };
    // The position is stored while the page is fitted with its cursor.
    let prepared = so_far.prepare_continuation(toolbox, rows.len(), &ListState { position }).await?;
    let expected = page.clone().continued_by(prepared.expected().clone());
    let fitting = fit_rows_of_page(context, expected, explanation.clone(), Arc::clone(&rows));
    // The first poll of the left one hands its work to another thread.
    let (other, fitted) = join(prepared.store(toolbox), fitting).await;
    match other? {
        None => fitted,
        Some(other) => fit_rows_of_page(context, page.continued_by(other), explanation, rows).await,
    }
}

/// Fits rows into a page. Reads the previews of the stream if a row needs one.
async fn fit_rows_of_page(
    PageContext { toolbox, source, request, budget, .. }: PageContext<'_>,
    mut page: RecordPage<'static>,
    explanation: NoResults,
    rows: Arc<Vec<Change>>,
) -> Result<FittedPage, ToolError> {
    page.explanation = explanation;
    // With a small budget, an answer has no explanation.
    if bytes_of(&page) > budget.bytes.min(budget.tokens) {
        page.explanation = NoResults::default();
    }
    let RecordsQuery { stream, connection, .. } = &request.query;
    let stream = StreamQuery { stream: stream.clone(), connection: connection.clone() };
    let known = toolbox.previews.known(source, &stream);
    let is_known = known.is_some();
    let is_small = is_small(&rows);
    let fitted = {
        let (page, rows) = (page.clone(), Arc::clone(&rows));
        run_by_size(is_small, move || {
            let rows = PageRows::new(&rows);
            let fitted = fit_page(page.clone(), &rows, &Previews::default(), budget)?;
            match (known, &fitted) {
                (Some(previews), FittedPage::Page { has_previews: true, .. }) if !previews.is_empty() => {
                    fit_page(page, &rows, &previews, budget)
                }
                _ => Ok(fitted),
            }
        })
        .await?
    };
    let FittedPage::Page { has_previews: true, .. } = fitted else { return Ok(fitted) };
    if is_known {
        return Ok(fitted);
    }
    let previews = toolbox.previews.read(source, stream).await;
    if previews.is_empty() {
        return Ok(fitted);
    }
    run_by_size(is_small, move || fit_page(page, &PageRows::new(&rows), &previews, budget)).await
}

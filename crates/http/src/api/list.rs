//! `GET /api/v1/{collection}`: a page of records.
//!
//! Records that do not fit the budget are narrowed; if narrowing is not allowed, the page has fewer records. The
//! cursor stands after the last record of the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use fetchwell_core::fit::{FieldWidth, Limits, PageBudget, bytes_of, clip};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::{Record, RecordData, Unavailable};
use fetchwell_source::{
    Accuracy, Change, Count, CountMode, Direction, Filter, QueryFault, RecordsPosition, RecordsQuery,
    SourceError, Start, StreamQuery,
};
use fetchwell_state::cursor::Kind;
use fetchwell_tools::{Page, PageState, Paging, Previews, ToolError, begin, run_blocking};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{BASE, Call};
use super::error::ApiError;
use super::fields::{Fields, known};
use super::meta::{BudgetMeta, MissingSource, PageMeta};
use super::page::{FitResult, PageWork, PaginatedResponse};
use super::parameters;
use super::routes::Route;
use crate::answer::Answer;
use crate::error::RequestError;

/// Error title for a limit that is too high. Clients recognize these words.
const LIMIT_EXCEEDS: &str = "Limit exceeds maximum";

/// Maximum number of records that a source returns at once.
const MAX_BATCH: usize = 100;

/// Minimum number of tokens of a record in a list: `{"id":1},`.
const MIN_ROW_TOKENS: usize = 5;

/// Maximum bytes of records that are read for one page.
const MAX_READ_BYTES: usize = 64 * 1024 * 1024;

const SUMMARY_NOTE: &str = "Items are summaries; ask for one by its id for all of it.";

/// Parsed request for a list, from its first page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListRequest {
    path: String,
    limit: Option<usize>,
    fields: Fields,
    summary: bool,
    descending: bool,
    sort: Option<String>,
    connection: Option<ConnectionId>,
    filter: Filter,
}

/// Saved position of a list.
#[derive(Debug, Serialize, Deserialize)]
struct ListPosition {
    position: RecordsPosition,
}

const PAGING: Paging<ListRequest> = Paging {
    kind: Kind::ApiRecords,
    needed: "path",
    resolve,
    // The page size may change from page to page.
    is_same_list: |one, other| ListRequest { limit: other.limit, ..one.clone() } == *other,
    refused: ToolError::InvalidListCursor,
};

/// Records read for one page.
#[derive(Debug, Default)]
struct RecordBatch {
    records: Vec<Record>,
    next: Option<RecordsPosition>,
    count: Option<Count>,
    unavailable: Vec<Unavailable>,
    notes: Vec<String>,
}

pub(super) async fn answer(call: &mut Call<'_>, route: &Route) -> Result<Answer, ApiError> {
    let sent = raw_arguments(call)?;
    let Page { request, rest, so_far } = begin(call.toolbox, &PAGING, sent).await?;
    let limits = call.limits;
    let size = size(&request, &limits)?;
    let mut query = RecordsQuery {
        connection: request.connection.clone(),
        filter: request.filter.clone(),
        direction: if request.descending { Direction::Descending } else { Direction::Ascending },
        sort: request.sort.clone(),
        count: CountMode::Exact,
        ..RecordsQuery::new(route.stream.clone(), size)
    };
    if let Some(ListPosition { position }) = rest {
        query.start = Start::After(position);
    }
    let stream = StreamQuery { stream: route.stream.clone(), connection: request.connection.clone() };
    let previews = call.toolbox.previews(stream.clone()).await;
    let (mut wanted, mut narrowing) = (size, narrowing(&request, &limits));
    let (mut budget, max_budget) = page_budgets(&request, &limits);
    // A request with a limit is paginated, whatever the configuration says.
    let in_pages = limits.pagination || request.limit.is_some();
    // The names in `fields` are checked for the first page only.
    let is_first = matches!(query.start, Start::First);
    loop {
        let read = read(call, &query, wanted, in_pages).await?;
        if let Fields::Paths(paths) = &request.fields
            && is_first
        {
            known(call, &stream, &read.records, paths).await?;
        }
        if !in_pages && read.next.is_some() {
            return Err(too_many(&limits).into());
        }
        let rows = read.records.len();
        let context = PageContext { request: &request, previews: &previews, so_far: so_far.clone() };
        let constraints = PageConstraints { narrowing, budget, in_pages };
        match page(call, read, context, constraints).await? {
            FitResult::Page(answer) => return Ok(answer),
            FitResult::Rows(fitting) if in_pages && (1..rows).contains(&fitting) => wanted = fitting,
            // The request set no size, so the small default budget may grow.
            FitResult::Rows(_) if budget != max_budget => budget = budget.doubled(max_budget),
            FitResult::Rows(_) if !in_pages => return Err(too_many(&limits).into()),
            // A single record that does not fit gets placeholders with the URLs of its longest values.
            FitResult::Rows(_) if narrowing == Narrowing::None => {
                (wanted, narrowing) = (1, Narrowing::Placeholders);
            }
            FitResult::Rows(_) => return Err(too_many(&limits).into()),
        }
    }
}

/// Returns the arguments in the form that a cursor keeps for the next page.
fn raw_arguments(call: &mut Call<'_>) -> Result<RecordData, ApiError> {
    let parameters = &mut call.parameters;
    let mut sent = RecordData::from_iter([("path".to_owned(), Value::from(call.path.clone()))]);
    for name in ["limit", "cursor", "fields", "order_by", "connection_id"] {
        sent.extend(parameters.take(name).map(|value| (name.to_owned(), value.into())));
    }
    if let Some(limit) = sent.get("limit").and_then(Value::as_str) {
        parameters::number("limit", limit)?;
    }
    if let Some(connection) = sent.get("connection_id").and_then(Value::as_str) {
        parameters::connection(connection)?;
    }
    if let Some(summary) = parameters.flag("summary")? {
        sent.insert("summary".to_owned(), summary.into());
    }
    let filter = parameters.filter()?;
    if !filter.is_empty() {
        sent.insert("filter".to_owned(), filter.into());
    }
    Ok(sent)
}

fn resolve(mut arguments: RecordData) -> Result<ListRequest, ToolError> {
    let filter = arguments.remove("filter");
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    let wrong = |param: &str, problem: String| ToolError::InvalidArgument {
        tool: BASE,
        param: param.to_owned(),
        problem,
        hint: String::new(),
    };
    let filter = match filter {
        None => Filter::default(),
        Some(filter) => {
            Filter::deserialize(filter).map_err(|problem| wrong("filter", problem.to_string()))?
        }
    };
    let connection = text("connection_id").map(|id| id.parse::<ConnectionId>());
    let connection = connection.transpose().map_err(|problem| wrong("connection_id", problem.to_string()))?;
    let (sort, descending) =
        order(text("order_by").as_deref()).map_err(|problem| wrong("order_by", problem))?;
    Ok(ListRequest {
        path: text("path").unwrap_or_default(),
        limit: text("limit").and_then(|limit| limit.parse().ok()),
        fields: Fields::read(text("fields").as_deref())
            .map_err(|problem| wrong("fields", problem.message().to_owned()))?,
        summary: arguments.get("summary").is_some_and(|summary| *summary == Value::Bool(true)),
        descending,
        sort,
        connection,
        filter,
    })
}

/// Parses `order_by`. `created_desc` is newest first by the stream's cursor field; a field of the stream can be named
/// instead.
fn order(order_by: Option<&str>) -> Result<(Option<String>, bool), String> {
    let Some(order_by) = order_by else { return Ok((None, true)) };
    let read = order_by.rsplit_once('_').and_then(|(field, direction)| match direction {
        "desc" => Some((field, true)),
        "asc" => Some((field, false)),
        _ => None,
    });
    match read {
        Some(("created", descending)) => Ok((None, descending)),
        Some((field, descending)) if !field.is_empty() => Ok((Some(field.to_owned()), descending)),
        _ => {
            let name = clip(order_by, 60);
            Err(format!(
                "`{name}` is not `created_desc`, `created_asc`, or a field with `_desc` or `_asc` after it"
            ))
        }
    }
}

/// Returns the number of records that the page should have.
fn size(request: &ListRequest, limits: &Limits) -> Result<usize, ApiError> {
    let wrong =
        |problem: String| ApiError::from(RequestError::bad("invalid_argument", problem).about("limit"));
    match request.limit {
        Some(0) => Err(wrong("Limit must be at least 1".to_owned())),
        Some(limit) if limit > limits.max_page_size => {
            let problem = format!("{LIMIT_EXCEEDS} of {}; use a smaller `limit`", limits.max_page_size);
            Err(wrong(problem).with_title(LIMIT_EXCEEDS))
        }
        Some(limit) => Ok(limit),
        None if limits.pagination => Ok(limits.page_size),
        None if limits.exempt => Ok(usize::MAX),
        None => Ok(limits.hard_cap / MIN_ROW_TOKENS),
    }
}

/// Way in which records are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrowing {
    /// Shorten as far as needed.
    Rows,
    /// Do not shorten: all fields were requested, or summarization is off.
    None,
    /// Do not shorten, but replace the longest values of one record that does not fit by placeholders.
    Placeholders,
}

fn narrowing(request: &ListRequest, limits: &Limits) -> Narrowing {
    if limits.summarization && request.fields != Fields::All { Narrowing::Rows } else { Narrowing::None }
}

fn too_many(limits: &Limits) -> RequestError {
    let problem = format!("the list does not fit into the hard cap of {} tokens", limits.hard_cap);
    RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
        .hinting("Name `fields`, or let this path be paginated and summarised in the configuration.")
}

/// Rewrites an error about the sort field as one about `order_by`.
fn sort_error(error: SourceError) -> ApiError {
    if error.code() != QueryFault::InvalidSort.code() {
        return error.into();
    }
    let hint = match error.innermost() {
        SourceError::InvalidQuery { hint, .. } => {
            format!("{hint} Use `created_desc`, `created_asc`, or a field with `_desc` or `_asc`.")
        }
        // A record server gives the field only in its own words, with the arguments of its own API.
        _ => "Use `created_desc` or `created_asc`.".to_owned(),
    };
    let message = RequestError::from(error).message().to_owned();
    RequestError::bad("invalid_sort", message).about("order_by").hinting(&hint).into()
}

/// Reads records from the position of a page.
async fn read(
    call: &Call<'_>,
    query: &RecordsQuery,
    wanted: usize,
    in_pages: bool,
) -> Result<RecordBatch, ApiError> {
    let source = call.toolbox.source();
    let mut read = RecordBatch::default();
    let mut query = query.clone();
    let mut bytes = 0;
    loop {
        query.limit = MAX_BATCH.min(wanted - read.records.len());
        let page = source.records(&query).await.map_err(sort_error)?;
        read.count = read.count.or(page.count);
        read.unavailable.extend(page.unavailable);
        read.notes.extend(page.notes);
        read.next = page.next;
        let before = read.records.len();
        read.records.extend(page.rows.into_iter().filter_map(|row| match row {
            Change::Present(record) => Some(*record),
            Change::Deleted { .. } => None,
        }));
        // A list that cannot fit is not read completely just to find that out.
        let exceeds_page = |count: Count| usize::try_from(count.value).map_or(true, |count| count > wanted);
        if !in_pages && read.count.is_some_and(exceeds_page) {
            return Err(too_many(&call.limits).into());
        }
        match &read.next {
            Some(next) if read.records.len() < wanted => query.start = Start::After(next.clone()),
            // The source bounds a single batch.
            _ => return Ok(read),
        }
        bytes += read.records.iter().skip(before).map(|record| bytes_of(&record.data)).sum::<usize>();
        if bytes > MAX_READ_BYTES {
            return Err(too_many(&call.limits).into());
        }
        // The count is only needed once.
        query.count = CountMode::None;
    }
}

/// Request of a page, with the data that its items and its cursor need.
struct PageContext<'a> {
    request: &'a ListRequest,
    previews: &'a Arc<Previews>,
    so_far: Option<PageState>,
}

/// Constraints for fitting a page.
#[derive(Debug, Clone, Copy)]
struct PageConstraints {
    narrowing: Narrowing,
    budget: PageBudget,
    in_pages: bool,
}

/// Fits the records that were read into the page.
async fn page(
    call: &Call<'_>,
    read: RecordBatch,
    PageContext { request, previews, so_far }: PageContext<'_>,
    PageConstraints { narrowing, budget, in_pages }: PageConstraints,
) -> Result<FitResult, ApiError> {
    let RecordBatch { records, next, count, unavailable, notes } = read;
    // Clients take a page without a cursor as the last one, so every other page needs a cursor.
    let next_cursor = match (next, so_far) {
        (Some(position), Some(so_far)) => {
            Some(so_far.cursor(call.toolbox, records.len(), &ListPosition { position }).await?)
        }
        _ => None,
    };
    let meta = PageMeta {
        total_count: count.map(|count| count.value),
        total_count_accuracy: count.and_then(|count| accuracy(count.accuracy)),
        page_size: records.len(),
        has_more: next_cursor.is_some(),
        summarized: false,
        details_available: None,
        keys: keys(&records),
        connections: connections(&records),
        note: request.summary.then_some(SUMMARY_NOTE),
        budget: BudgetMeta {
            estimated_tokens: 0,
            threshold: call.limits.threshold,
            hard_cap: call.limits.hard_cap,
            budget_used: 0.0,
            budget_remaining: 0,
            budget_ratio: 0.0,
            summary_mode: false,
        },
        unavailable: unavailable.iter().map(MissingSource::from).collect(),
        warnings: notes,
    };
    let work = PageWork {
        records,
        response: PaginatedResponse { items: Vec::new(), next_cursor, meta },
        previews: Arc::clone(previews),
        budget,
        limits: call.limits,
        estimator: call.toolbox.protection().estimator,
        narrowest: if narrowing == Narrowing::Rows { FieldWidth::None } else { FieldWidth::Whole },
        is_marked: narrowing == Narrowing::Placeholders,
        fields: request.fields.clone(),
        is_summary: request.summary,
        endpoint: format!("{}/{{id}}", request.path),
        connection: request.connection.clone(),
        compares: call.compares,
        in_pages,
    };
    Ok(run_blocking(move || Ok(work.fit())).await??)
}

/// Returns the keys of the records if any of them differs from the record's `id`; otherwise an empty list.
fn keys(records: &[Record]) -> Vec<String> {
    let is_key = |record: &Record| match record.data.get("id") {
        None => true,
        Some(Value::String(id)) => id == record.address.record.as_str(),
        Some(id) => *record.address.record.as_str() == *id.to_string(),
    };
    if records.iter().all(is_key) {
        Vec::new()
    } else {
        records.iter().map(|record| record.address.record.to_string()).collect()
    }
}

/// Returns the indexes of the records of each connection, if there are several connections.
fn connections(records: &[Record]) -> BTreeMap<String, Vec<usize>> {
    let mut connections: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        if let Some(connection) = &record.address.connection {
            connections.entry(connection.to_string()).or_default().push(at);
        }
    }
    if connections.len() > 1 { connections } else { BTreeMap::new() }
}

fn accuracy(accuracy: Accuracy) -> Option<&'static str> {
    match accuracy {
        Accuracy::Exact => None,
        Accuracy::Estimated => Some("estimated"),
        Accuracy::LowerBound => Some("lower_bound"),
    }
}

/// Returns the initial budget, which is small unless the request asks for more, and the maximum budget.
fn page_budgets(request: &ListRequest, limits: &Limits) -> (PageBudget, PageBudget) {
    let max_budget = PageBudget::cap(limits);
    let budget = match request.limit {
        _ if limits.exempt => max_budget,
        None if limits.summarization && request.fields != Fields::All => PageBudget::unasked(limits),
        _ => max_budget,
    };
    (budget, max_budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_sorts_by_the_cursor_field() {
        assert_eq!(order(None), Ok((None, true)));
        assert_eq!(order(Some("created_asc")), Ok((None, false)));
        assert_eq!(order(Some("check_in_desc")), Ok((Some("check_in".to_owned()), true)));
        for wrong in ["created", "_desc", "created_up", ""] {
            assert!(order(Some(wrong)).is_err(), "{wrong}");
        }
    }
}

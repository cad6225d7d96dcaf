//! A list: the seed's `PaginatedResponse`.
//!
//! A page has the records that were asked for, narrower where they do not fit; where nothing may be narrowed it has
//! fewer. Its cursor stands after the last record it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Answer;
use super::error::Failure;
use super::fields::{Fields, known};
use super::meta::{BudgetMeta, Missing, PageMeta};
use super::page::{Fitted, PageWork, PaginatedResponse};
use super::routes::Route;
use super::{Call, parameters};
use crate::cursor::Kind;
use crate::fit::{FieldWidth, Limits, PageBudget, bytes_of};
use crate::handle::ConnectionId;
use crate::http::v1::ApiError;
use crate::record::{Record, RecordData, Unavailable};
use crate::source::{
    Accuracy, Change, Count, CountMode, Direction, Filter, RecordsPosition, RecordsQuery, SourceError, Start,
    StreamQuery,
};
use crate::tools::{Page, Paging, Previews, SoFar, ToolError, beside_other_calls};

/// The seed's words for a limit that is too high.
const LIMIT_EXCEEDS: &str = "Limit exceeds maximum";

/// The most records that a source gives at once.
const BATCH: usize = 100;

/// The least that a record takes of a list, in tokens: `{"id":1},`.
const ROW_TOKENS: usize = 5;

/// The most bytes of records that are read for one page.
const READ_BYTES: usize = 64 * 1024 * 1024;

const SUMMARY_NOTE: &str = "Items are summaries; ask for one by its id for all of it.";

/// A list as it will be made, from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    path: String,
    limit: Option<usize>,
    fields: Fields,
    summary: bool,
    descending: bool,
    sort: Option<String>,
    connection: Option<ConnectionId>,
    filter: Filter,
}

/// Where a list goes on.
#[derive(Debug, Serialize, Deserialize)]
struct Unlisted {
    position: RecordsPosition,
}

const PAGING: Paging<Request> = Paging {
    kind: Kind::ApiRecords,
    needed: "path",
    resolve,
    // The size of a page may change.
    same: |one, other| Request { limit: other.limit, ..one.clone() } == *other,
    refused: ToolError::ListFromStart,
};

/// Records that were read for one page.
#[derive(Debug, Default)]
struct Read {
    records: Vec<Record>,
    next: Option<RecordsPosition>,
    count: Option<Count>,
    unavailable: Vec<Unavailable>,
    notes: Vec<String>,
}

pub(super) async fn answer(call: &mut Call<'_>, route: &Route) -> Result<Answer, Failure> {
    let sent = sent(call)?;
    let Page { request, rest, so_far } = crate::tools::begin(call.toolbox, &PAGING, sent).await?;
    let limits = call.limits;
    let size = size(&request, &limits)?;
    let mut query = RecordsQuery {
        connection: request.connection.clone(),
        filter: request.filter.clone(),
        direction: if request.descending { Direction::Descending } else { Direction::Ascending },
        sort: request.sort.clone(),
        count: CountMode::Exact,
        ..RecordsQuery::of(route.stream.clone(), size)
    };
    if let Some(Unlisted { position }) = rest {
        query.start = Start::After(position);
    }
    let stream = StreamQuery { stream: route.stream.clone(), connection: request.connection.clone() };
    let previews = call.toolbox.previews(stream.clone()).await;
    let (mut wanted, mut narrowing) = (size, narrowing(&request, &limits));
    let (mut budget, most) = page_budgets(&request, &limits);
    // Who asks for a number of records takes them in pages, whatever is configured.
    let in_pages = limits.pagination || request.limit.is_some();
    // The names in `fields` were checked for the first page.
    let is_first = matches!(query.start, Start::First);
    loop {
        let read = read(call, &query, wanted, (&limits, in_pages)).await?;
        if let Fields::These(paths) = &request.fields
            && is_first
        {
            known(call, &stream, &read.records, paths).await?;
        }
        if !in_pages && read.next.is_some() {
            return Err(too_many(&limits).into());
        }
        let rows = read.records.len();
        let shape = Shape { narrowing, budget, in_pages };
        match page(call, &request, (so_far.clone(), &previews), read, shape).await? {
            Fitted::Page(answer) => return Ok(answer),
            Fitted::Rows(fitting) if in_pages && (1..rows).contains(&fitting) => wanted = fitting,
            // Nobody asked it to be small; it takes as little more as will do.
            Fitted::Rows(_) if budget != most => budget = budget.doubled(most),
            Fitted::Rows(_) if !in_pages => return Err(too_many(&limits).into()),
            // One record that does not fit whole says where its longest values are read.
            Fitted::Rows(_) if narrowing == Narrowing::None => (wanted, narrowing) = (1, Narrowing::Marks),
            Fitted::Rows(_) => return Err(too_many(&limits).into()),
        }
    }
}

/// The arguments as they are kept for the next page.
fn sent(call: &mut Call<'_>) -> Result<RecordData, Failure> {
    let parameters = &mut call.parameters;
    let mut sent = RecordData::from_iter([("path".to_owned(), Value::from(call.path.clone()))]);
    for name in ["limit", "cursor", "fields", "order_by", "connection_id"] {
        sent.extend(parameters.take(name).map(|value| (name.to_owned(), value.into())));
    }
    if let Some(limit) = sent.get("limit").and_then(Value::as_str) {
        parameters::number("limit", limit)?;
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

fn resolve(mut arguments: RecordData) -> Result<Request, ToolError> {
    let filter = arguments.remove("filter");
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    let wrong = |param: &str, problem: String| ToolError::CorrectArgument {
        tool: super::BASE,
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
    Ok(Request {
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

/// `created_desc` is newest first, by whatever the stream is ordered by; a field of the stream can be named instead.
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
            Err("it is not `created_desc`, `created_asc`, or a field with `_desc` or `_asc` behind it"
                .to_owned())
        }
    }
}

/// How many records the page should have.
fn size(request: &Request, limits: &Limits) -> Result<usize, Failure> {
    let wrong = |problem: String| Failure::from(ApiError::bad("invalid_argument", problem).about("limit"));
    match request.limit {
        Some(0) => Err(wrong("Limit must be at least 1".to_owned())),
        Some(limit) if limit > limits.max_page_size => {
            let problem = format!("{LIMIT_EXCEEDS} of {}; use a smaller `limit`", limits.max_page_size);
            Err(wrong(problem).titled(LIMIT_EXCEEDS))
        }
        Some(limit) => Ok(limit),
        None if limits.pagination => Ok(limits.page_size),
        None if limits.exempt => Ok(usize::MAX),
        None => Ok(limits.hard_cap / ROW_TOKENS),
    }
}

/// How records give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrowing {
    /// As far as it takes.
    Rows,
    /// Not at all: all of them was asked for, or nothing is to be summarised.
    None,
    /// Not at all, and this one does not fit: its longest values are read elsewhere.
    Marks,
}

fn narrowing(request: &Request, limits: &Limits) -> Narrowing {
    if limits.summarization && request.fields != Fields::All { Narrowing::Rows } else { Narrowing::None }
}

fn too_many(limits: &Limits) -> ApiError {
    let problem = format!("the list does not fit into the hard cap of {} tokens", limits.hard_cap);
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
        .hinting("Name `fields`, or let this path be paginated and summarised in the configuration.")
}

/// What a source says of a sort is about `order_by` here.
fn of_order(error: SourceError) -> Failure {
    let error = ApiError::from(error);
    if error.code != "invalid_sort" {
        return error.into();
    }
    let hint = error.hint().unwrap_or_default();
    let sorted_by = hint.split_once(';').map_or(hint, |(sorted_by, _how)| sorted_by);
    let hint =
        format!("{sorted_by}; use `created_desc`, `created_asc`, or that field with `_desc` or `_asc`.");
    ApiError::bad("invalid_sort", error.message().to_owned()).about("order_by").hinting(&hint).into()
}

/// Reads records from where a page starts.
async fn read(
    call: &Call<'_>,
    query: &RecordsQuery,
    wanted: usize,
    (limits, in_pages): (&Limits, bool),
) -> Result<Read, Failure> {
    let source = call.toolbox.asked_source();
    let mut read = Read::default();
    let mut query = query.clone();
    let mut bytes = 0;
    loop {
        query.limit = BATCH.min(wanted - read.records.len());
        let page = source.records(&query).await.map_err(of_order)?;
        read.count = read.count.or(page.count);
        read.unavailable.extend(page.unavailable);
        read.notes.extend(page.notes);
        read.next = page.next;
        for row in page.rows {
            if let Change::Present(record) = row {
                bytes += bytes_of(&record.data);
                read.records.push(*record);
            }
        }
        // What cannot fit is not read to find that out.
        let is_hopeless = |count: Count| usize::try_from(count.value).map_or(true, |count| count > wanted);
        if bytes > READ_BYTES || (!in_pages && read.count.is_some_and(is_hopeless)) {
            return Err(too_many(limits).into());
        }
        match &read.next {
            Some(next) if read.records.len() < wanted => query.start = Start::After(next.clone()),
            _ => return Ok(read),
        }
        // It was counted.
        query.count = CountMode::None;
    }
}

/// How a page is fitted.
#[derive(Debug, Clone, Copy)]
struct Shape {
    narrowing: Narrowing,
    budget: PageBudget,
    in_pages: bool,
}

/// Fits what was read.
async fn page(
    call: &Call<'_>,
    request: &Request,
    (so_far, previews): (Option<SoFar>, &Arc<Previews>),
    read: Read,
    Shape { narrowing, budget, in_pages }: Shape,
) -> Result<Fitted, Failure> {
    let Read { records, next, count, unavailable, notes } = read;
    // A client takes a page without a cursor for the last one, so a page that is not the last needs one.
    let next_cursor = match (next, so_far) {
        (Some(position), Some(so_far)) => {
            Some(so_far.cursor(call.toolbox, records.len(), &Unlisted { position }).await?)
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
        unavailable: unavailable.iter().map(Missing::from).collect(),
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
        is_marked: narrowing == Narrowing::Marks,
        fields: request.fields.clone(),
        is_summary: request.summary,
        endpoint: format!("{}/{{id}}", request.path),
        connection: request.connection.clone(),
        compares: call.compares,
        in_pages,
    };
    Ok(beside_other_calls(move || Ok(work.fitted())).await??)
}

/// What records are asked for by, when that is not what each of them has as its `id`.
fn keys(records: &[Record]) -> Vec<String> {
    let is_key = |record: &Record| match record.data.get("id") {
        None => true,
        Some(Value::String(id)) => id == record.address.record.as_str(),
        Some(id) => *record.address.record.as_str() == *id.to_string(),
    };
    match records.iter().all(is_key) {
        true => Vec::new(),
        false => records.iter().map(|record| record.address.record.to_string()).collect(),
    }
}

/// The places of the records of each connection, when they are of several.
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

/// What a page takes, small when nobody asked for more, and what it may take.
fn page_budgets(request: &Request, limits: &Limits) -> (PageBudget, PageBudget) {
    let most = PageBudget::most(limits);
    let budget = match request.limit {
        _ if limits.exempt => most,
        None if limits.summarization && request.fields != Fields::All => PageBudget::unasked(limits),
        _ => most,
    };
    (budget, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_is_whatever_the_stream_is_ordered_by() {
        assert_eq!(order(None), Ok((None, true)));
        assert_eq!(order(Some("created_asc")), Ok((None, false)));
        assert_eq!(order(Some("check_in_desc")), Ok((Some("check_in".to_owned()), true)));
        for wrong in ["created", "_desc", "created_up", ""] {
            assert!(order(Some(wrong)).is_err(), "{wrong}");
        }
    }
}

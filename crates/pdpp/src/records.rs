//! Lists of records: one connection as its server pages it, several as one merged list.
//!
//! Over several connections, the reference server applies the limit to each of them and returns no cursor. So each
//! connection is read on its own, concurrently as far as the transport permits, and merged by `MergedList`.

use std::collections::HashMap;

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::StreamDetail;
use fetchwell_source::merge::{InputPage, MergedList, PendingRead, Row, SortKey, sort_value};
use fetchwell_source::{
    Change, CountMode, Direction, QueryFault, RecordsPage, RecordsQuery, Selection, SourceError, Start,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::client::Client;
use super::describe::Holders;
use super::params::Params;
use super::position::RemoteInput;
use super::record_path::stream_path;
use super::transport::{MAX_IN_FLIGHT, parsed};
use super::{changes, describe, places, refused, wire};

/// Maximum number of connections that one list reads concurrently: half of the limit of the server, so that a list
/// over many connections does not block other calls.
const MAX_READS_AT_ONCE: usize = MAX_IN_FLIGHT / 2;

/// Returns a page of a stream's records or of its changes.
pub async fn records(pdpp: &Client<'_>, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
    match &query.start {
        Start::First => first(pdpp, query).await,
        Start::After(position) => match merged(pdpp, query, MergedList::after(query, position)?).await {
            Err(error) if query.connection.is_none() && places::is_about_a_place(&error) => {
                Err(lost_connection())
            }
            page => page,
        },
        Start::Changes(since) => changes::changes(pdpp, query, since.as_ref()).await,
    }
}

/// Returns the first page. Cached connections may no longer exist; then they are looked up again.
async fn first(pdpp: &Client<'_>, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
    if query.connection.is_some() {
        return merged(pdpp, query, single(query, query.connection.clone())).await;
    }
    let Holders { details, is_kept } = describe::holders(pdpp, &query.stream).await?;
    let page = merged(pdpp, query, inputs(pdpp, query, &details).await?).await;
    match page {
        Err(error) if is_kept && places::is_about_a_place(&error) => {
            pdpp.known.forget_streams(pdpp.requests.grant().await?);
            let Holders { details, .. } = describe::holders(pdpp, &query.stream).await?;
            merged(pdpp, query, inputs(pdpp, query, &details).await?).await
        }
        page => page,
    }
}

/// Returns the error for a list with a connection that the server no longer has.
fn lost_connection() -> SourceError {
    SourceError::InvalidQuery {
        fault: QueryFault::ExpiredCursor,
        problem: "a connection of this list is not there any more".to_owned(),
        hint: "List again without `cursor`.".to_owned(),
    }
}

async fn merged(
    pdpp: &Client<'_>,
    query: &RecordsQuery,
    mut list: MergedList<RemoteInput>,
) -> Result<RecordsPage, SourceError> {
    let limit = query.limit.max(1);
    let count = if list.is_counted() { CountMode::None } else { query.count };
    let mut hidden: HashMap<Option<ConnectionId>, String> = HashMap::new();
    while !list.has(limit) {
        let pending = list.pending_reads();
        if pending.is_empty() {
            break;
        }
        let mut reads = Vec::with_capacity(pending.len());
        for input in pending {
            let selection = RequestedFields::new(query, &input.name);
            if let Some(field) = selection.hidden {
                hidden.insert(input.name.connection.clone(), field);
            }
            let params = Params::default().and("limit", &limit);
            let params = order(params.list(query, &selection.asked, count), query);
            reads.push(read(pdpp, query, params, input));
        }
        let pages: Vec<_> = stream::iter(reads).buffered(MAX_READS_AT_ONCE).try_collect().await?;
        for (input, page) in pages {
            list.push_page(input, page);
        }
        list.take(limit);
    }
    let mut page = list.page_of(query);
    for row in &mut page.rows {
        if let Change::Present(record) = row
            && let Some(field) = hidden.get(&record.address.connection)
        {
            record.data.shift_remove(field);
        }
    }
    Ok(page)
}

/// Fields that are requested of one connection.
struct RequestedFields {
    asked: Selection,
    /// Field that is requested only for the order, and removed from the result.
    hidden: Option<String>,
}

impl RequestedFields {
    /// Selects the requested fields, and adds the field that orders the input.
    fn new(query: &RecordsQuery, input: &RemoteInput) -> Self {
        let as_is = Self { asked: query.selection.clone(), hidden: None };
        let Some(by) = &input.by else { return as_is };
        let mut fields = match (&query.selection, &input.view) {
            (Selection::Fields(fields), _) | (Selection::View(_), Some(fields)) => fields.clone(),
            (Selection::All | Selection::View(_), _) => return as_is,
        };
        if fields.contains(by) {
            return as_is;
        }
        fields.insert(0, by.clone());
        Self { asked: Selection::Fields(fields), hidden: Some(by.clone()) }
    }
}

async fn read(
    pdpp: &Client<'_>,
    query: &RecordsQuery,
    params: Params,
    pending: PendingRead<RemoteInput>,
) -> Result<(usize, InputPage), SourceError> {
    let RemoteInput { connection, by, .. } = pending.name;
    let params = params.connection(connection.as_ref()).each("cursor", &pending.cursor);
    let reply = pdpp.requests.get(&stream_path(&query.stream, "records"), &params).await;
    let reply = reply.map_err(refused::of_position)?;
    let stream = query.stream.clone();
    let list = parsed(reply.body, move |body| wire::records(body, &stream, connection.as_ref())).await?;
    let list = list.with_memory(&reply.memory);
    Ok((pending.input, input_page(list, by.as_deref())))
}

/// Converts a server's page to a page of an input.
pub fn input_page(list: wire::RecordList, by: Option<&str>) -> InputPage {
    let row = |change: Change| {
        let (place, connection) =
            (SortKey::new(&change, sort_value(&change, by)), change.address().connection.clone());
        Row::new(place, change, connection.as_ref())
    };
    InputPage {
        rows: list.items.into_iter().map(|item| item.map(row)).collect(),
        next: list.next_cursor,
        has_more: list.has_more,
        count: list.count,
    }
}

/// Starts a list of one input, which needs no merging.
fn single(query: &RecordsQuery, connection: Option<ConnectionId>) -> MergedList<RemoteInput> {
    MergedList::start([RemoteInput { connection, ..RemoteInput::default() }], query.direction)
}

/// Returns the list's inputs: every connection that has the stream, in the order of the schema.
async fn inputs(
    pdpp: &Client<'_>,
    query: &RecordsQuery,
    details: &[StreamDetail],
) -> Result<MergedList<RemoteInput>, SourceError> {
    match details {
        [] => Ok(single(query, None)),
        [only] if !query.placed => Ok(single(query, Some(only.connection_id.clone()))),
        several => Ok(MergedList::start(merging(pdpp, query, several).await?, query.direction)),
    }
}

/// Returns an input for each connection, with the field to merge by. Connections of one connector share it, so it is
/// requested once for each connector.
async fn merging(
    pdpp: &Client<'_>,
    query: &RecordsQuery,
    details: &[StreamDetail],
) -> Result<Vec<RemoteInput>, SourceError> {
    let view = match &query.selection {
        Selection::View(view) => Some(view.as_str()),
        Selection::All | Selection::Fields(_) => None,
    };
    let mut known: HashMap<Option<&str>, describe::Ordering> = HashMap::new();
    let mut inputs = Vec::with_capacity(details.len());
    for detail in details {
        let connector = detail.connector_key.as_deref();
        let ordering = match known.get(&connector) {
            Some(ordering) => ordering.clone(),
            None => describe::ordering(pdpp, detail, view).await?,
        };
        known.insert(connector, ordering.clone());
        // `emitted_at` means that no field orders the stream. Values inside of a field, and numbers that are written as
        // text, are not known to sort here as they do on the server.
        let sort = query.sort.clone().filter(|sort| sort != "emitted_at");
        if let Some(sort) = &sort
            && ordering.by.as_ref() != Some(sort)
            && details.len() > 1
            && !is_typed(detail, sort)
        {
            return Err(SourceError::InvalidQuery {
                fault: QueryFault::InvalidSort,
                problem: format!(
                    "`{sort}` does not order the records of several connections of a record server"
                ),
                hint: "Set `connection_id`, or leave `sort` out.".to_owned(),
            });
        }
        inputs.push(RemoteInput {
            connection: Some(detail.connection_id.clone()),
            by: sort.or(ordering.by),
            view: ordering.view,
        });
    }
    Ok(inputs)
}

/// Returns true if the values of a field are numbers, or times, on any server.
fn is_typed(detail: &StreamDetail, field: &str) -> bool {
    let typed = ["integer", "number", "date-time", "date"];
    detail.field(field).is_some_and(|field| {
        !field.types.is_empty() && field.types.iter().all(|kind| typed.contains(&kind.as_str()))
    })
}

/// Adds the order: `sort=-received_at`, or the direction alone.
fn order(params: Params, query: &RecordsQuery) -> Params {
    match (&query.sort, query.direction) {
        (Some(field), Direction::Ascending) => params.and("sort", field),
        (Some(field), Direction::Descending) => params.and("sort", &format!("-{field}")),
        (None, Direction::Ascending) => params.and("order", "asc"),
        (None, Direction::Descending) => params.and("order", "desc"),
    }
}

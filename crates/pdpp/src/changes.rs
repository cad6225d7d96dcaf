//! Changes of one connection's stream since a state.
//!
//! A record server gives the first page for `changes_since` and the following ones for `cursor` alone. Beside a cursor, its
//! `next_changes_since` is valid only on the last page. It empties deletions when it is asked for `fields`, so whole
//! records are asked for and fields are selected here.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::StreamDetail;
use fetchwell_source::merge::left_out;
use fetchwell_source::{
    Change, ChangesToken, ProtocolFault, QueryFault, RecordsPage, RecordsQuery, Selection, SourceError,
};

use super::client::Client;
use super::params::Params;
use super::position::{ChangesStart, SavedChanges};
use super::record_path::stream_path;
use super::transport::parsed;
use super::{describe, refused, wire};

/// Maximum number of connections in a hint.
const MAX_CHOICES: usize = 12;

/// Returns a page of changes, at most `query.limit` of them.
///
/// # Errors
///
/// `invalid_argument` when several connections have the stream, and the errors of the record server.
pub(crate) async fn changes(
    pdpp: &Client<'_>,
    query: &RecordsQuery,
    since: Option<&ChangesToken>,
) -> Result<RecordsPage, SourceError> {
    let from = SavedChanges::open(since)?;
    let connection = connection_of(pdpp, &query.stream, query.connection.as_ref()).await?;
    let params = params(query, &from, connection.as_ref());
    let reply = pdpp.requests.get(&stream_path(&query.stream, "records"), &params).await;
    let reply = reply.map_err(refused::of_changes)?;
    let stream = query.stream.clone();
    let list = parsed(reply.body, move |body| wire::records(body, &stream, connection.as_ref())).await?;
    let mut list = list.with_memory(&reply.memory);
    if let Selection::Fields(fields) = &query.selection {
        list.items.iter_mut().flatten().for_each(|change| project(change, fields));
    }
    page(list, from, query.limit)
}

/// Returns the connection that changes are read from, or `None` on a server without connection ids.
///
/// # Errors
///
/// `invalid_argument` when several connections have the stream, and the errors of the record server.
pub(crate) async fn connection_of(
    pdpp: &Client<'_>,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Option<ConnectionId>, SourceError> {
    if let Some(connection) = connection {
        return Ok(Some(connection.clone()));
    }
    match describe::holders(pdpp, stream).await?.details.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.connection_id.clone())),
        several => Err(name_a_connection(stream, several)),
    }
}

/// Returns the parameters of a page. A server that gets `changes_since` beside `cursor` starts from the beginning again.
fn params(query: &RecordsQuery, from: &SavedChanges, connection: Option<&ConnectionId>) -> Params {
    // Changes of the page that were returned are requested again and skipped.
    let params = Params::default().and("limit", &from.taken.saturating_add(query.limit.max(1)));
    let params = match &from.from {
        ChangesStart::Cursor(cursor) => params.and("cursor", cursor),
        ChangesStart::Since(since) => params.and("changes_since", since),
    };
    let selection = match &query.selection {
        Selection::Fields(_) => &Selection::All,
        other => other,
    };
    params.list(query, selection, query.count).connection(connection)
}

/// Keeps only `fields` in a record.
fn project(change: &mut Change, fields: &[String]) {
    if let Change::Present(record) = change {
        record.data.retain(|name, _| fields.iter().any(|field| field == name));
    }
}

/// Returns at most `limit` changes of the server's page, and the state for the next call.
fn page(list: wire::RecordList, from: SavedChanges, limit: usize) -> Result<RecordsPage, SourceError> {
    let (given, all) = (from.taken.min(list.items.len()), list.items.len());
    let shown = limit.max(1).min(all - given);
    let items: Vec<Option<Change>> = list.items.into_iter().skip(given).take(shown).collect();
    let is_cut = given + shown < all;
    let has_more = is_cut || list.has_more == Some(true);
    let next_changes = if is_cut {
        Some(SavedChanges { taken: given + shown, ..from })
    } else if has_more {
        let next = list.next_cursor.map(ChangesStart::Cursor).filter(|next| *next != from.from);
        // Servers without cursors for changes, such as fetchwell's own, return a state after each page instead.
        let state = || {
            let state = list.next_changes.map(ChangesStart::Since)?;
            (matches!(from.from, ChangesStart::Since(_)) && state != from.from).then_some(state)
        };
        let Some(next) = next.or_else(state) else {
            // Otherwise every later change would be lost, or the page repeated.
            let missing = "`next_cursor` that leads on, although it says `has_more`";
            return Err(SourceError::Protocol(ProtocolFault::WrongShape { missing }));
        };
        Some(SavedChanges { from: next, taken: 0 })
    } else {
        list.next_changes.map(SavedChanges::since)
    };
    let nameless = items.iter().filter(|item| item.is_none()).count();
    Ok(RecordsPage {
        rows: items.into_iter().flatten().collect(),
        next_changes: next_changes.map(SavedChanges::token),
        has_more,
        count: list.count,
        notes: left_out(nameless).into_iter().collect(),
        ..RecordsPage::default()
    })
}

fn name_a_connection(stream: &StreamName, several: &[StreamDetail]) -> SourceError {
    let ids: Vec<&str> =
        several.iter().map(|detail| detail.connection_id.as_str()).take(MAX_CHOICES).collect();
    SourceError::InvalidQuery {
        fault: QueryFault::InvalidArgument,
        problem: format!(
            "changes are read for one connection at a time, and stream `{stream}` is in {}",
            several.len()
        ),
        hint: format!("Set `connection_id` to one of: {}.", ids.join(", ")),
    }
}

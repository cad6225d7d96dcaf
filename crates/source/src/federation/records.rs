//! Lists and changes of records over all sources that have the stream.

use std::mem::take;
use std::sync::Arc;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{SourceName, StreamName};
use fetchwell_core::record::SortValue;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::failures::{Failures, is_missing_stream};
use super::guarded::GuardedSource;
use super::members::{Members, from_source};
use super::names::Names;
use super::source_outcomes::SourceOutcomes;
use crate::merge::{InputPage, MergedList, PendingRead, Row, SortKey};
use crate::{
    ChangesOrigin, Count, CountMode, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, Source,
    SourceError, Start, StreamQuery,
};

/// Maximum number of rows that can be requested from a source.
const MAX_ROWS: usize = 100;

pub(super) async fn records(
    members: &Members,
    context: &CallContext,
    query: &RecordsQuery,
) -> Result<RecordsPage, SourceError> {
    if let Some(connection) = &query.connection {
        let source = members.source_of(context, connection).await?;
        return source.records(context, query).await.map_err(|error| from_source(source, error));
    }
    members.routes.refresh();
    let mut list = match &query.start {
        Start::First => MergedList::start(names(members, query), query.direction),
        Start::After(position) => MergedList::after(query, position)?,
        Start::Changes(_) => return changes(members, context, query).await,
    };
    let limit = query.limit.max(1);
    let each = members.share_of(limit);
    let count = if list.is_counted() { CountMode::None } else { query.count };
    let mut outcomes = SourceOutcomes::default();
    let until = Instant::now() + members.page_timeout;
    while !list.has(limit) && Instant::now() < until {
        let pending = list.pending_reads();
        if pending.is_empty() {
            break;
        }
        // Rows that were returned come again before the others on the same page.
        let rows = |taken: usize| taken.saturating_add(each).min(MAX_ROWS);
        let reads = pending.into_iter().map(|pending| {
            let asked = RecordsQuery { limit: rows(pending.taken), count, placed: true, ..query.clone() };
            read(members, context, pending, asked, until)
        });
        for (input, source, read) in join_all(reads).await {
            match read {
                Ok(mut page) => {
                    outcomes.answer(&source, take(&mut page.notes), take(&mut page.unavailable));
                    let connections = page.rows.iter().filter_map(|row| row.address().connection.as_ref());
                    members.routes.remember(&source, connections);
                    list.push_page(input, input_page(&members.routes.names(), &source, page));
                }
                Err(error) => {
                    if outcomes.failure(&source, error) {
                        list.end(input);
                    } else {
                        list.fail(input);
                    }
                }
            }
        }
        list.take(limit);
    }
    let page = list.page_of(query);
    if !outcomes.answered && (!outcomes.failed.is_empty() || query.start == Start::First) {
        return Err(members.no_answer_error(outcomes.failed, "no source answered", Some(&query.stream)));
    }
    let (mut notes, unavailable) = outcomes.into_unavailable();
    notes.extend(page.notes);
    let mut count = page.count;
    if let Some(note) = members.counted_twice().filter(|_| count.is_some()) {
        count = count.map(Count::about);
        notes.push(note);
    }
    Ok(RecordsPage { notes, unavailable, count, ..page })
}

/// Reads the next page of one source.
async fn read(
    members: &Members,
    context: &CallContext,
    pending: PendingRead<SourceName>,
    asked: RecordsQuery,
    until: Instant,
) -> (usize, SourceName, Result<RecordsPage, SourceError>) {
    let PendingRead { input, name, cursor, .. } = pending;
    let Some(source) = members.named(&name) else {
        return (input, name, Err(SourceError::InvalidCursor));
    };
    let start = cursor.map_or(Start::First, |cursor| Start::After(RecordsPosition(cursor)));
    let page = members.before(until, source.records(context, &RecordsQuery { start, ..asked })).await;
    (input, name, page)
}

/// Returns the names of the sources that may have the stream.
fn names(members: &Members, query: &RecordsQuery) -> Vec<SourceName> {
    members.with_stream(&query.stream).map(|source| source.name().clone()).collect()
}

/// Converts a page of a source. Copies of a record are recognized by the own id of its connection.
fn input_page(names: &Names, source: &SourceName, page: RecordsPage) -> InputPage {
    let values = page.places.into_iter().map(Some).chain(std::iter::repeat(None));
    let row = |(change, value): (_, Option<SortValue>)| {
        let place = SortKey::new(&change, value.unwrap_or(SortValue::Missing));
        let own = change.address().connection.as_ref().map(|printed| names.own(source, printed));
        Some(Row::new(place, change, own.as_ref()))
    };
    InputPage {
        rows: page.rows.into_iter().zip(values).map(row).collect(),
        next: page.next.map(|next| next.0),
        has_more: Some(page.has_more),
        count: page.count,
    }
}

/// Returns the source and the connection of a stream's changes.
pub(super) async fn changes_origin(
    members: &Members,
    context: &CallContext,
    query: &StreamQuery,
) -> Result<ChangesOrigin, SourceError> {
    let source = match &query.connection {
        Some(connection) => members.source_of(context, connection).await?,
        None => changes_holder(members, context, &query.stream).await?,
    };
    source.changes_origin(context, query).await.map_err(|error| from_source(source, error))
}

async fn changes(
    members: &Members,
    context: &CallContext,
    query: &RecordsQuery,
) -> Result<RecordsPage, SourceError> {
    let source = changes_holder(members, context, &query.stream).await?;
    source.records(context, query).await.map_err(|error| from_source(source, error))
}

/// Returns the only source that has a stream. Changes are read from one connection, so from one source. A source that
/// does not answer may have the stream too.
async fn changes_holder<'a>(
    members: &'a Members,
    context: &CallContext,
    stream: &StreamName,
) -> Result<&'a Arc<GuardedSource>, SourceError> {
    let of_stream = &StreamQuery { stream: stream.clone(), connection: None };
    let asked = members.with_stream(stream);
    let reads = asked.map(|source| async move { (source, source.stream(context, of_stream).await) });
    let (mut holders, mut failed) = (Vec::new(), Failures::default());
    for (source, read) in join_all(reads).await {
        match read {
            Ok(_) => holders.push(source),
            Err(error) => failed.add(source.name(), error),
        }
    }
    match (holders.as_slice(), failed.are_all(is_missing_stream)) {
        ([], _) => Err(members.no_answer_error(failed, "no source answered", Some(stream))),
        ([only], true) => Ok(only),
        _ => Err(SourceError::InvalidQuery {
            fault: QueryFault::InvalidArgument,
            problem: format!(
                "changes are read for one connection at a time, and stream `{stream}` may be in several sources"
            ),
            hint: "Set `connection_id`; `schema` with this stream tells which there are.".to_owned(),
        }),
    }
}

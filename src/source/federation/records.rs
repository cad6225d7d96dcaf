//! A list of records over all sources that have the stream.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::failures::{Failures, is_elsewhere};
use super::{Federation, of};
use crate::handle::SourceName;
use crate::record::SortValue;
use crate::source::merge::{Hungry, LanePage, Lanes, Place, Row, Saved};
use crate::source::{
    Count, CountMode, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, Source, SourceError, Start,
    StreamQuery,
};

/// The fewest rows that are asked of a source at a time.
const ROWS_LEAST: usize = 5;

/// The most rows that a source takes to be asked for.
const ROWS_MOST: usize = 100;

pub(super) async fn records(
    federation: &Federation,
    query: &RecordsQuery,
) -> Result<RecordsPage, SourceError> {
    if let Some(connection) = &query.connection {
        let source = federation.source_of(connection).await?;
        return source.records(query).await.map_err(|error| of(source, error));
    }
    federation.routes.freshen();
    let mut lanes = match &query.start {
        Start::First => Lanes::start(names(federation, query), query.direction),
        Start::After(position) => after(query, position)?,
        Start::Changes(_) => return changes(federation, query).await,
    };
    let limit = query.limit.max(1);
    let each = (2 * limit).div_ceil(federation.sources.len().max(1)).clamp(ROWS_LEAST.min(limit), limit);
    let count = if lanes.is_counted() { CountMode::None } else { query.count };
    let (mut failed, mut notes, mut unavailable) = (Failures::default(), Vec::new(), Vec::new());
    let mut answered = false;
    let until = Instant::now() + federation.patience;
    while !lanes.has(limit) && Instant::now() < until {
        let hungry = lanes.hungry();
        if hungry.is_empty() {
            break;
        }
        // What was given of a page comes again before what was not.
        let rows = |taken: usize| taken.saturating_add(each).min(ROWS_MOST);
        let reads = hungry.into_iter().map(|hungry| {
            let asked = RecordsQuery { limit: rows(hungry.taken), count, placed: true, ..query.clone() };
            read(federation, hungry, asked, until)
        });
        for (lane, source, read) in join_all(reads).await {
            match read {
                Ok(mut page) => {
                    answered = true;
                    notes.extend(page.notes.drain(..).map(|note| format!("source `{source}`: {note}")));
                    unavailable.append(&mut page.unavailable);
                    federation.saw_rows(&source, &page.rows);
                    lanes.feed(lane, lane_page(page));
                }
                Err(error) => {
                    if is_elsewhere(&error) {
                        lanes.end(lane);
                    } else {
                        lanes.fail(lane);
                    }
                    failed.add(&source, error);
                }
            }
        }
        lanes.take(limit);
    }
    let page = lanes.page();
    if !answered && (!failed.is_empty() || query.start == Start::First) {
        return Err(federation.nobody(failed, "no source answered", Some(&query.stream)));
    }
    notes.extend(page.notes);
    unavailable.extend(failed.beside_an_answer());
    let bound =
        |position: RecordsPosition| RecordsPosition(format!("{:016x} {}", query.fingerprint(), position.0));
    let mut count = page.count.filter(|_| query.count != CountMode::None);
    if let Some(note) = federation.counted_twice().filter(|_| count.is_some()) {
        count = count.map(Count::about);
        notes.push(note);
    }
    let places = if query.placed { page.places } else { Vec::new() };
    Ok(RecordsPage { notes, unavailable, count, places, next: page.next.map(bound), ..page })
}

/// Reads on in one source.
async fn read(
    federation: &Federation,
    hungry: Hungry<SourceName>,
    asked: RecordsQuery,
    until: Instant,
) -> (usize, SourceName, Result<RecordsPage, SourceError>) {
    let Hungry { lane, name, cursor, .. } = hungry;
    let Some(source) = federation.named(&name) else {
        return (lane, name, Err(SourceError::RestartSearch));
    };
    let start = cursor.map_or(Start::First, |cursor| Start::After(RecordsPosition(cursor)));
    let page = federation.before(until, source.records(&RecordsQuery { start, ..asked })).await;
    (lane, name, page)
}

/// The sources that can have the stream.
fn names(federation: &Federation, query: &RecordsQuery) -> Vec<SourceName> {
    let streams = std::slice::from_ref(&query.stream);
    federation.with_any_stream(streams).map(|source| source.name().clone()).collect()
}

fn lane_page(page: RecordsPage) -> LanePage {
    let values = page.places.into_iter().map(Some).chain(std::iter::repeat(None));
    let row = |(change, value): (_, Option<SortValue>)| {
        let place = Place::of(&change, value.unwrap_or(SortValue::Missing));
        Some(Row { place, change })
    };
    LanePage {
        rows: page.rows.into_iter().zip(values).map(row).collect(),
        next: page.next.map(|next| next.0),
        has_more: Some(page.has_more),
        count: page.count,
    }
}

fn after(query: &RecordsQuery, position: &RecordsPosition) -> Result<Lanes<SourceName>, SourceError> {
    let (question, place) = position.0.split_once(' ').unwrap_or_default();
    let saved = Saved::open(&RecordsPosition(place.to_owned()))?;
    if u64::from_str_radix(question, 16) != Ok(query.fingerprint()) {
        return Err(SourceError::CorrectQuery {
            fault: QueryFault::MismatchedCursor,
            problem: "the cursor is of another stream, connection, filter or order".to_owned(),
            hint: "List again without `cursor`.".to_owned(),
        });
    }
    Ok(Lanes::resume(saved, query.direction))
}

/// Changes are told of one connection at a time, so of one source. Who does not answer may have the stream too.
async fn changes(federation: &Federation, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
    let of_stream = &StreamQuery { stream: query.stream.clone(), connection: None };
    let asked = federation.with_any_stream(std::slice::from_ref(&query.stream));
    let reads = asked.map(|source| async move { (source, source.stream(of_stream).await) });
    let (mut holders, mut failed) = (Vec::new(), Failures::default());
    for (source, read) in join_all(reads).await {
        match read {
            Ok(_) => holders.push(source),
            Err(error) => failed.add(source.name(), error),
        }
    }
    match (holders.as_slice(), failed.are_all(is_elsewhere)) {
        ([], _) => Err(federation.nobody(failed, "no source answered", Some(&query.stream))),
        ([only], true) => only.records(query).await.map_err(|error| of(only, error)),
        _ => Err(SourceError::CorrectQuery {
            fault: QueryFault::InvalidArgument,
            problem: format!(
                "changes are told of one connection at a time, and stream `{}` may be in several sources",
                query.stream
            ),
            hint: "Set `connection_id`; `schema` with this stream tells which there are.".to_owned(),
        }),
    }
}

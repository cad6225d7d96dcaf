//! Keyset pagination of a stream's records, ordered by the cursor field of the stream.
//!
//! A page starts after a sort position and not at a row offset, so records added or deleted between two pages cause
//! neither gaps nor duplicates.
//!
//! * `stream_scan`: the records of one stream that pass the filter and have the words
//! * `from_columns`: the first of them from columns
//! * `order`: the order of a list

mod from_columns;
mod order;
mod stream_scan;

use fetchwell_core::record::{Capability, Record, SortValue, StreamDetail};
use fetchwell_source::{
    Change, Count, CountMode, Direction, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, SourceError,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use self::order::{ListOrder, compare_positions};
use self::stream_scan::ListScan;
use super::expand::expand;
use super::interrupt::ReadBounds;
use super::predicate::{check, has_field, missing_capability};
use super::projection::Projection;
use super::sort_position::SortPosition;
use super::stream_row::{StreamRow, details};
use super::streams::stream_rows;
use super::tables::{MAX_PAGE_BYTES, RecordKey, SizedRecord, Tables};
use crate::lexical::word_filter::WordFilter;

/// Returns a page of the records of a stream.
///
/// # Errors
///
/// The query is not valid for the stream, or the tables cannot be read.
pub fn page<T: Tables>(
    tables: &T,
    query: &RecordsQuery,
    after: Option<&RecordsPosition>,
    bounds: ReadBounds<'_>,
) -> Result<RecordsPage, T::Error> {
    let streams = stream_rows(tables, &query.stream, query.connection.as_ref())?;
    let order = ListOrder::new(query, &streams);
    check(&query.filter, &details(&streams))?;
    check_sort(order, &streams)?;
    for stream in &streams {
        super::expand::check(&query.expand, &stream.detail)?;
    }
    let projection = Projection::new(&query.selection, &streams)?;
    let question = query_digest(query, order, &streams, &tables.identity()?.uuid);
    let after = after.map(|position| decode_position(position, question)).transpose()?;
    let words = query.words.as_ref().map(WordFilter::new).transpose()?;
    let scan = ListScan { tables, query, order, words: words.as_ref(), bounds };
    let mut places = Vec::new();
    for stream in &streams {
        places.extend(scan.places(stream, after.as_ref(), question)?);
    }
    places.sort_by(|a, b| compare_positions(query.direction, a, b));
    let is_whole = after.is_none() && scan.is_unconditional();
    let notes = if is_whole { missing_order_note(query, &streams, &places) } else { Vec::new() };
    let mut has_more = places.len() > query.limit;
    places.truncate(query.limit);
    let mut rows: Vec<Record> = Vec::with_capacity(places.len());
    let mut values = Vec::new();
    let keys: Vec<RecordKey<'_>> = places.iter().map(SortPosition::record_key).collect();
    let (mut bytes, mut read) = (0, 0);
    tables.records_at(&keys, bounds.allowance, &mut |found| {
        // A record that another process has just deleted is missing here.
        if let Some(SizedRecord { record: Some(record), bytes: size }) = found {
            bytes += size;
            rows.push(record);
            values.extend(places.get(read).filter(|_| query.placed).map(|place| place.value.clone()));
        }
        read += 1;
        bytes <= MAX_PAGE_BYTES
    })?;
    has_more |= read < places.len();
    let last = places.get(..read).and_then(<[SortPosition]>::last);
    for stream in &streams {
        expand(tables, stream, &query.expand, &mut rows, bounds)?;
    }
    rows.iter_mut().for_each(|record| projection.apply(record));
    let count = count(&scan, &streams)?;
    let next = last.filter(|_| has_more).map(|place| RecordsPosition(place.encode()));
    Ok(RecordsPage {
        has_more: next.is_some(),
        next,
        rows: rows.into_iter().map(|record| Change::Present(Box::new(record))).collect(),
        places: values,
        count,
        notes,
        ..RecordsPage::default()
    })
}

/// Returns a note if no record has the field that orders the stream, where clients expect the newest first: records
/// without it come last.
fn missing_order_note(query: &RecordsQuery, streams: &[StreamRow], places: &[SortPosition]) -> Vec<String> {
    let first = places.first().filter(|_| places.len() > 1 && query.direction == Direction::Descending);
    if first.is_none_or(|first| first.value != SortValue::Missing) {
        return Vec::new();
    }
    let by = query
        .sort
        .as_deref()
        .or_else(|| streams.iter().find_map(|stream| stream.detail.cursor_field.as_deref()));
    let missing = by.map_or_else(|| "a time".to_owned(), |field| format!("`{field}`"));
    vec![format!("no record of `{}` has {missing} to order by; they are ordered by key", query.stream)]
}

fn decode_position(position: &RecordsPosition, question: u64) -> Result<SortPosition, SourceError> {
    let refused = |fault, problem: &str| SourceError::InvalidQuery {
        fault,
        problem: problem.to_owned(),
        hint: "List again without `cursor`.".to_owned(),
    };
    let place = SortPosition::decode(&position.0)
        .ok_or_else(|| refused(QueryFault::MalformedCursor, "the cursor is not one of this store"))?;
    if place.question != question {
        return Err(refused(
            QueryFault::MismatchedCursor,
            "the cursor is of another stream, connection, filter or order",
        ));
    }
    Ok(place)
}

/// Returns a digest of everything that must stay the same from page to page: the query, the store, the cursor field of each
/// stream, which an import with another manifest changes, and the order, which the first number in a field of texts changes.
fn query_digest(query: &RecordsQuery, order: ListOrder<'_>, streams: &[StreamRow], store: &str) -> u64 {
    let mut digest = Sha256::new_with_prefix(format!("{} {store}", query.fingerprint()));
    digest.update(if order.has_numbers() { "numbers" } else { "" });
    for stream in streams {
        digest.update(json!([stream.row, stream.detail.cursor_field]).to_string());
    }
    digest.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Refuses to sort by a field with values that have no order.
fn check_sort(order: ListOrder<'_>, streams: &[StreamRow]) -> Result<(), SourceError> {
    let Some(field) = streams.iter().find_map(|stream| order.field(stream)) else { return Ok(()) };
    let (by_field, in_order): (Vec<&StreamRow>, Vec<&StreamRow>) =
        streams.iter().partition(|stream| order.field(stream).is_some());
    // A stream that is in the order of the field has it.
    let is_asked = |stream: &&StreamDetail| in_order.is_empty() || has_field(stream, field);
    let asked: Vec<&StreamDetail> =
        by_field.into_iter().map(|stream| &stream.detail).filter(is_asked).collect();
    match missing_capability(&asked, field, Capability::Range, "sorted by") {
        None => Ok(()),
        Some((problem, hint)) => {
            Err(SourceError::InvalidQuery { fault: QueryFault::InvalidSort, problem, hint })
        }
    }
}

fn count<T: Tables>(scan: &ListScan<'_, T>, streams: &[StreamRow]) -> Result<Option<Count>, T::Error> {
    if scan.query.count == CountMode::None {
        return Ok(None);
    }
    let mut value = 0;
    for stream in streams {
        value += match (scan.is_unconditional(), stream.detail.record_count) {
            (true, Some(count)) => count,
            _ => scan.matching(stream)?,
        };
    }
    Ok(Some(Count::exact(value)))
}

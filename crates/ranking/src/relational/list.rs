//! Keyset pagination of a stream's records, ordered by the cursor field of the stream.
//!
//! A page starts after a sort position and not at a row offset, so records added or deleted between two pages cause
//! neither gaps nor duplicates.

use std::collections::HashMap;

use fetchwell_core::fit::characters;
use fetchwell_core::record::{Capability, Numeric, Record, SortValue};
use fetchwell_source::{
    Change, Count, CountMode, Direction, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, SourceError,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::columns::filter;
use super::columns::order::{Candidate, ColumnOrder, MAX_CANDIDATES};
use super::columns::{ColumnError, ColumnSegment, in_columns};
use super::expand::expand;
use super::field_reader::FieldReader;
use super::interrupt::{Interrupt, ReadBounds};
use super::predicate::{Predicate, bounds, check, missing_capability};
use super::projection::Projection;
use super::sort_position::SortPosition;
use super::stream_row::StreamRow;
use super::streams::stream_rows;
use super::tables::{MAX_PAGE_BYTES, RecordKey, RowScan, Scan, ScanRow, ScanStart, SizedRecord, Tables};

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
    for stream in &streams {
        check(&query.filter, &stream.detail)?;
        check_sort(query, stream)?;
        super::expand::check(&query.expand, &stream.detail)?;
    }
    let projection = Projection::new(&query.selection, &streams)?;
    let question = query_digest(query, &streams, &tables.identity()?.uuid);
    let after = after.map(|position| decode_position(position, question)).transpose()?;
    let mut places = Vec::new();
    for stream in &streams {
        places.extend(ListScan { tables, query, bounds }.places(stream, after.as_ref(), question)?);
    }
    places.sort_by(|a, b| compare_positions(query.direction, a, b));
    let notes = if after.is_none() { missing_order_note(query, &streams, &places) } else { Vec::new() };
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
    let count = count(&ListScan { tables, query, bounds }, &streams)?;
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

/// Returns a digest of everything that must stay the same from page to page: the query, the store, and the cursor
/// field of each stream, which an import with another manifest changes.
fn query_digest(query: &RecordsQuery, streams: &[StreamRow], store: &str) -> u64 {
    let mut digest = Sha256::new_with_prefix(format!("{} {store}", query.fingerprint()));
    for stream in streams {
        digest.update(json!([stream.row, stream.detail.cursor_field]).to_string());
    }
    digest.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Refuses to sort by a field with values that have no order.
fn check_sort(query: &RecordsQuery, stream: &StreamRow) -> Result<(), SourceError> {
    let Some(field) = sort_field(query, stream) else { return Ok(()) };
    match missing_capability(&stream.detail, field, Capability::Range, "sorted by") {
        None => Ok(()),
        Some((problem, hint)) => {
            Err(SourceError::InvalidQuery { fault: QueryFault::InvalidSort, problem, hint })
        }
    }
}

/// Returns the field of an order that the table of records does not have: the field that the query names, unless it is
/// the cursor field.
fn sort_field<'a>(query: &'a RecordsQuery, stream: &StreamRow) -> Option<&'a str> {
    let cursor_field = stream.detail.cursor_field.as_deref().unwrap_or("emitted_at");
    query.sort.as_deref().filter(|field| *field != cursor_field)
}

fn compare_positions(direction: Direction, a: &SortPosition, b: &SortPosition) -> std::cmp::Ordering {
    let ascending = (&a.value, &a.key, a.stream).cmp(&(&b.value, &b.key, b.stream));
    match direction {
        Direction::Ascending => ascending,
        Direction::Descending => ascending.reverse(),
    }
}

/// Maximum number of bytes of a text that orders records. Texts that begin with the same bytes are ordered by key.
const MAX_SORT_TEXT: usize = 200;

/// Returns the value that orders a record by a field of any type.
fn sort_value(value: Option<&Value>, is_number: bool) -> SortValue {
    match value {
        Some(value) if is_number => {
            Numeric::from_value(value).map_or(SortValue::Missing, |number| SortValue::number(number.as_f64()))
        }
        Some(Value::String(text)) if text.len() > MAX_SORT_TEXT => {
            SortValue::text(characters(text, 0, MAX_SORT_TEXT))
        }
        value => SortValue::from_value(value),
    }
}

/// Returns true for a column of numbers. Its texts, such as `n/a`, have no place among the numbers.
fn is_number_field(stream: &StreamRow, field: &str) -> bool {
    stream.detail.field(field).is_some_and(|field| field.capabilities.contains(&Capability::Sum))
}

/// Returns the rows of all records that pass a filter; `None` if there are too many to compare their order.
fn matching_rows(
    segments: &[Box<dyn ColumnSegment + '_>],
    predicate: &Predicate,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Candidate>>, ColumnError> {
    let mut rows = Vec::new();
    for segment in segments {
        let docs = filter::matching(segment.as_ref(), predicate, interrupt)?;
        if rows.len() + docs.len() > MAX_CANDIDATES {
            return Ok(None);
        }
        segment.rows(&docs, &mut rows)?;
    }
    Ok(Some(rows.into_iter().map(|row| Candidate { value: SortValue::Missing, row }).collect()))
}

/// Number of records that are read in the order of the stream before the columns are asked which records pass the filter.
const MAX_SCANNED: usize = 250;

/// Records that a scan in the order of a stream found.
#[derive(Debug, Default)]
struct OrderedScan {
    places: Vec<SortPosition>,
    /// Last record that was read, if there may be more.
    stop: Option<SortPosition>,
}

struct ListScan<'a, T> {
    tables: &'a T,
    query: &'a RecordsQuery,
    bounds: ReadBounds<'a>,
}

impl<T: Tables> ListScan<'_, T> {
    /// Returns the sort positions of the next records of a stream that pass the filter, at most one more than the
    /// page takes.
    fn places(
        &self,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Vec<SortPosition>, T::Error> {
        if let Some(field) = sort_field(self.query, stream) {
            let found = self.places_in_columns(Some(field), stream, after, question)?;
            return found.map_or_else(|| self.places_by(field, stream, after, question), Ok);
        }
        let mut scan = OrderedScan::default();
        self.scan_in_order(stream, after, question, MAX_SCANNED, &mut scan)?;
        let Some(stop) = scan.stop.take() else { return Ok(scan.places) };
        // Few records pass.
        if let Some(places) = self.places_in_columns(None, stream, after, question)? {
            return Ok(places);
        }
        self.scan_in_order(stream, Some(&stop), question, usize::MAX, &mut scan)?;
        Ok(scan.places)
    }

    /// Adds the next records that pass the filter, in the order of the stream, until the page is full or `max` records were read.
    fn scan_in_order(
        &self,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
        max: usize,
        scan: &mut OrderedScan,
    ) -> Result<(), T::Error> {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&self.query.filter, &mut reader);
        let (mut picked, mut read) = (Vec::new(), 0);
        let wants_data = !self.query.filter.is_empty();
        self.each(stream, after, wants_data, |row| {
            read += 1;
            if wants_data {
                reader.read(row.data, &mut picked);
            }
            let passes = !wants_data || predicate.passes(&picked);
            let is_last = wants_data && read >= max;
            if passes || is_last {
                let (value, key) = (row.value.into(), row.key.to_owned());
                let place = SortPosition { question, value, key, stream: stream.row };
                scan.stop = is_last.then(|| place.clone());
                scan.places.extend(passes.then_some(place));
            }
            let is_full = scan.places.len() > self.query.limit;
            if is_full {
                scan.stop = None;
            }
            Ok(!is_full && !is_last)
        })
    }

    /// Returns the positions from columns, by a field or in the order of the stream; `None` if there are no columns or too many
    /// records to compare.
    fn places_in_columns(
        &self,
        field: Option<&str>,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Option<Vec<SortPosition>>, T::Error> {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&self.query.filter, &mut reader);
        let at = field.map(|field| reader.select(field));
        let Some(columns) = self.tables.columns(stream.row, &reader.names())? else { return Ok(None) };
        let is_number = field.is_some_and(|field| is_number_field(stream, field));
        let (direction, wanted) = (self.query.direction, self.query.limit + 1);
        let value_of = |value: Option<&Value>| sort_value(value, is_number);
        let found = match at {
            Some(field) => {
                let order = ColumnOrder {
                    predicate: &predicate,
                    field,
                    direction,
                    after: after.map(|after| &after.value),
                    wanted,
                    value_of: &value_of,
                };
                order.candidates(&columns.segments, self.bounds.interrupt)
            }
            None => matching_rows(&columns.segments, &predicate, self.bounds.interrupt),
        };
        let Some(found) = in_columns(found)?.flatten() else { return Ok(None) };
        let mut places = Vec::new();
        let mut add = |value: SortValue, key: &str| {
            let place = SortPosition { question, value, key: key.to_owned(), stream: stream.row };
            if after.is_none_or(|after| compare_positions(direction, &place, after).is_gt()) {
                places.push(place);
            }
        };
        let rows: Vec<i64> = found.iter().map(|candidate| candidate.row).collect();
        let mut values: HashMap<i64, SortValue> = HashMap::new();
        if at.is_some() {
            values.extend(found.into_iter().map(|candidate| (candidate.row, candidate.value)));
        }
        let scan = RowScan { stream: stream.row, rows: &rows, wants_data: false };
        self.tables.rows(&scan, self.bounds, &mut |id, row| {
            add(values.remove(&id).unwrap_or_else(|| row.value.into()), row.key);
            Ok(true)
        })?;
        let mut picked = Vec::new();
        let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
        self.tables.rows(&rest, self.bounds, &mut |_, row| {
            reader.read(row.data, &mut picked);
            if predicate.passes(&picked) {
                let value = match at {
                    Some(at) => value_of(picked.get(at).and_then(Option::as_ref)),
                    None => row.value.into(),
                };
                add(value, row.key);
            }
            Ok(true)
        })?;
        places.sort_unstable_by(|a, b| compare_positions(direction, a, b));
        places.truncate(wanted);
        Ok(Some(places))
    }

    /// Returns the same as `places` for the order by a field: reads all records of the stream and keeps the first ones.
    fn places_by(
        &self,
        field: &str,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Vec<SortPosition>, T::Error> {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&self.query.filter, &mut reader);
        let at = reader.select(field);
        let is_number = is_number_field(stream, field);
        let direction = self.query.direction;
        let wanted = self.query.limit + 1;
        let mut places: Vec<SortPosition> = Vec::new();
        let mut picked = Vec::new();
        self.each(stream, None, true, |row| {
            reader.read(row.data, &mut picked);
            if !predicate.passes(&picked) {
                return Ok(true);
            }
            let value = sort_value(picked.get(at).and_then(Option::as_ref), is_number);
            let place = SortPosition { question, value, key: row.key.to_owned(), stream: stream.row };
            if after.is_none_or(|after| compare_positions(direction, &place, after).is_gt()) {
                places.push(place);
            }
            if places.len() >= 4 * wanted.max(64) {
                places.select_nth_unstable_by(wanted, |a, b| compare_positions(direction, a, b));
                places.truncate(wanted);
            }
            Ok(true)
        })?;
        places.sort_unstable_by(|a, b| compare_positions(direction, a, b));
        places.truncate(wanted);
        Ok(places)
    }

    /// Counts the records of one stream that pass the filter.
    fn matching(&self, stream: &StreamRow) -> Result<u64, T::Error> {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&self.query.filter, &mut reader);
        let (mut picked, mut matching) = (Vec::new(), 0);
        if let Some(columns) = self.tables.columns(stream.row, &reader.names())? {
            let docs = columns.segments.iter();
            let docs =
                docs.map(|segment| filter::matching(segment.as_ref(), &predicate, self.bounds.interrupt));
            let counts = docs.map(|docs| docs.map(|docs| docs.len() as u64));
            if let Some(count) = in_columns(counts.sum::<Result<u64, _>>())? {
                let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
                self.tables.rows(&rest, self.bounds, &mut |_, row| {
                    reader.read(row.data, &mut picked);
                    matching += u64::from(predicate.passes(&picked));
                    Ok(true)
                })?;
                return Ok(count + matching);
            }
        }
        self.each(stream, None, true, |row| {
            reader.read(row.data, &mut picked);
            matching += u64::from(predicate.passes(&picked));
            Ok(true)
        })?;
        Ok(matching)
    }

    /// Passes the rows of one stream after a position to `more`, in order, until it returns false.
    fn each(
        &self,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        wants_data: bool,
        mut more: impl FnMut(ScanRow<'_>) -> Result<bool, T::Error>,
    ) -> Result<(), T::Error> {
        let direction = self.query.direction;
        let after = after.map(|place| ScanStart {
            value: &place.value,
            key: &place.key,
            // Records of two connections with equal value and key are ordered by their stream.
            is_inclusive: match direction {
                Direction::Descending => stream.row < place.stream,
                Direction::Ascending => stream.row > place.stream,
            },
        });
        // A record with a list in its cursor field has no sort value and may pass by one of its items.
        let is_single = |field: &&String| {
            stream.detail.field(field).is_some_and(|field| !field.types.iter().any(|kind| kind == "array"))
        };
        let cursor_field = stream.detail.cursor_field.as_ref().filter(is_single);
        let limits = cursor_field.map(|field| bounds(&self.query.filter, field)).unwrap_or_default();
        let scan = Scan { stream: stream.row, order: Some(direction), after, limits, wants_data };
        self.tables.scan(&scan, self.bounds, &mut more)
    }
}

fn count<T: Tables>(scan: &ListScan<'_, T>, streams: &[StreamRow]) -> Result<Option<Count>, T::Error> {
    if scan.query.count == CountMode::None {
        return Ok(None);
    }
    let mut value = 0;
    for stream in streams {
        value += match (scan.query.filter.is_empty(), stream.detail.record_count) {
            (true, Some(count)) => count,
            _ => scan.matching(stream)?,
        };
    }
    Ok(Some(Count::exact(value)))
}

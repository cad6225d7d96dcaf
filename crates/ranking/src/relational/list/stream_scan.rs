//! The records of one stream that pass the filter of a list and have its words, in the order of the list.
//!
//! Few records are read in the order of the stream at first. If they do not fill the page, columns tell which records are in the
//! list. Without columns all records are read, or those that the tables select by the words.

use std::collections::HashMap;

use fetchwell_core::fit::characters;
use fetchwell_core::record::{Capability, Numeric, SortValue};
use fetchwell_source::{Direction, RecordsQuery};
use serde_json::Value;

use super::super::columns::order::{ColumnOrder, MAX_CANDIDATES};
use super::super::columns::{ColumnError, ColumnSegment, ColumnarStream, filter, in_columns};
use super::super::field_reader::{FieldReader, FieldValues};
use super::super::interrupt::{Interrupt, ReadBounds};
use super::super::predicate::{Predicate, bounds};
use super::super::sort_position::SortPosition;
use super::super::stream_row::StreamRow;
use super::super::tables::{RowScan, Scan, ScanRow, ScanStart, Tables, WordScan};
use crate::lexical::word_filter::WordFilter;

/// Maximum number of bytes of a text that orders records. Texts that begin with the same bytes are ordered by key.
const MAX_SORT_TEXT: usize = 200;

/// Number of records that are read in the order of the stream before the columns are asked which records are in the list.
const MAX_SCANNED: usize = 250;

/// The same before the tables are asked which records have the words, if there are no columns.
const MAX_SCANNED_FOR_WORDS: usize = 2_000;

/// Compares the positions of two records in the order of a list.
pub(super) fn compare_positions(
    direction: Direction,
    a: &SortPosition,
    b: &SortPosition,
) -> std::cmp::Ordering {
    let ascending = (&a.value, &a.key, a.stream).cmp(&(&b.value, &b.key, b.stream));
    match direction {
        Direction::Ascending => ascending,
        Direction::Descending => ascending.reverse(),
    }
}

/// Returns the field of an order that the table of records does not have: the field that the query names, unless it is
/// the cursor field.
pub(super) fn sort_field<'a>(query: &'a RecordsQuery, stream: &StreamRow) -> Option<&'a str> {
    let cursor_field = stream.detail.cursor_field.as_deref().unwrap_or("emitted_at");
    query.sort.as_deref().filter(|field| *field != cursor_field)
}

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

/// Returns the rows of all records in columns that pass a filter.
fn matching_rows(
    segments: &[Box<dyn ColumnSegment + '_>],
    predicate: &Predicate,
    interrupt: &Interrupt,
) -> Result<Vec<i64>, ColumnError> {
    let mut rows = Vec::new();
    for segment in segments {
        let docs = filter::matching(segment.as_ref(), predicate, interrupt)?;
        segment.rows(&docs, &mut rows)?;
    }
    Ok(rows)
}

/// Test of the JSON of records: the filter and the words of a list.
struct RecordTest<'a> {
    reader: FieldReader,
    predicate: Predicate,
    words: Option<&'a WordFilter>,
    picked: FieldValues,
}

impl<'a> RecordTest<'a> {
    fn new(query: &RecordsQuery, words: Option<&'a WordFilter>) -> Self {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        Self { reader, predicate, words, picked: Vec::new() }
    }

    /// Returns true if a record passes. Its selected fields are then picked.
    fn passes(&mut self, row: &ScanRow<'_>) -> bool {
        self.reader.read(row.data, &mut self.picked);
        self.predicate.passes(&self.picked) && self.words.is_none_or(|words| words.passes(row.key, row.data))
    }

    /// Returns the value of a selected field of the record that was read last.
    fn value(&self, field: usize) -> Option<&Value> {
        self.picked.get(field).and_then(Option::as_ref)
    }
}

/// Records that a scan in the order of a stream found.
#[derive(Debug, Default)]
struct OrderedScan {
    places: Vec<SortPosition>,
    /// Last record that was read, if there may be more.
    stop: Option<SortPosition>,
}

/// First records of an order, of those that were added in any order.
struct FirstPlaces<'a> {
    direction: Direction,
    after: Option<&'a SortPosition>,
    wanted: usize,
    places: Vec<SortPosition>,
}

impl FirstPlaces<'_> {
    fn add(&mut self, place: SortPosition) {
        let Self { direction, after, wanted, places } = self;
        if after.is_none_or(|after| compare_positions(*direction, &place, after).is_gt()) {
            places.push(place);
        }
        if places.len() >= 4 * (*wanted).max(64) {
            places.select_nth_unstable_by(*wanted, |a, b| compare_positions(*direction, a, b));
            places.truncate(*wanted);
        }
    }

    fn finish(mut self) -> Vec<SortPosition> {
        self.places.sort_unstable_by(|a, b| compare_positions(self.direction, a, b));
        self.places.truncate(self.wanted);
        self.places
    }
}

/// Reader of the records of a list.
pub(super) struct ListScan<'a, T> {
    pub(super) tables: &'a T,
    pub(super) query: &'a RecordsQuery,
    /// Words that each record must have.
    pub(super) words: Option<&'a WordFilter>,
    pub(super) bounds: ReadBounds<'a>,
}

impl<T: Tables> ListScan<'_, T> {
    /// Returns true if all records of a stream are in the list.
    pub(super) fn is_unconditional(&self) -> bool {
        self.query.filter.is_empty() && self.words.is_none()
    }

    /// Returns the sort positions of the next records of a stream that are in the list, at most one more than the page
    /// takes.
    pub(super) fn places(
        &self,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Vec<SortPosition>, T::Error> {
        let field = sort_field(self.query, stream);
        if field.is_some() {
            let found = self.places_in_columns(field, stream, after, question)?;
            return found.map_or_else(|| self.places_by(field, stream, after, question), Ok);
        }
        let mut scan = OrderedScan::default();
        self.scan_in_order(stream, after, question, MAX_SCANNED, &mut scan)?;
        let Some(stop) = scan.stop.take() else { return Ok(scan.places) };
        // Few records pass.
        if let Some(places) = self.places_in_columns(None, stream, after, question)? {
            return Ok(places);
        }
        let max = if self.words.is_some() { MAX_SCANNED_FOR_WORDS } else { usize::MAX };
        self.scan_in_order(stream, Some(&stop), question, max, &mut scan)?;
        match scan.stop {
            None => Ok(scan.places),
            Some(_) => self.places_by(None, stream, after, question),
        }
    }

    /// Adds the next records that are in the list, in the order of the stream, until the page is full or `max` records were
    /// read.
    fn scan_in_order(
        &self,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
        max: usize,
        scan: &mut OrderedScan,
    ) -> Result<(), T::Error> {
        let mut test = RecordTest::new(self.query, self.words);
        let (mut read, wants_data) = (0, !self.is_unconditional());
        self.each(stream, after, wants_data, |row| {
            read += 1;
            let passes = !wants_data || test.passes(&row);
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

    fn first_places<'p>(&self, after: Option<&'p SortPosition>) -> FirstPlaces<'p> {
        let (direction, wanted) = (self.query.direction, self.query.limit + 1);
        FirstPlaces { direction, after, wanted, places: Vec::new() }
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
        let mut test = RecordTest::new(self.query, self.words);
        let at = field.map(|field| test.reader.select(field));
        let columns = self.tables.columns(stream.row, &test.reader.names(), self.words)?;
        let Some(columns) = columns else { return Ok(None) };
        let Some(at) = at else { return self.places_among(&columns, &mut test, stream, after, question) };
        let is_number = field.is_some_and(|field| is_number_field(stream, field));
        let value_of = |value: Option<&Value>| sort_value(value, is_number);
        let order = ColumnOrder {
            predicate: &test.predicate,
            field: at,
            direction: self.query.direction,
            after: after.map(|after| &after.value),
            wanted: self.query.limit + 1,
            value_of: &value_of,
        };
        let found = order.candidates(&columns.segments, self.bounds.interrupt);
        let Some(found) = in_columns(found)?.flatten() else { return Ok(None) };
        let mut first = self.first_places(after);
        let mut add = |value: SortValue, key: &str| {
            first.add(SortPosition { question, value, key: key.to_owned(), stream: stream.row });
        };
        let rows: Vec<i64> = found.iter().map(|candidate| candidate.row).collect();
        let mut values: HashMap<i64, SortValue> =
            found.into_iter().map(|candidate| (candidate.row, candidate.value)).collect();
        let scan = RowScan { stream: stream.row, rows: &rows, wants_data: false };
        self.tables.rows(&scan, self.bounds, &mut |row| {
            add(values.remove(&row.id).unwrap_or(SortValue::Missing), row.key);
            Ok(true)
        })?;
        let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
        self.tables.rows(&rest, self.bounds, &mut |row| {
            if test.passes(&row) {
                add(value_of(test.value(at)), row.key);
            }
            Ok(true)
        })?;
        Ok(Some(first.finish()))
    }

    /// Returns the first records in the order of the stream that are in the list, of those that columns tell of.
    fn places_among(
        &self,
        columns: &ColumnarStream<'_>,
        test: &mut RecordTest<'_>,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Option<Vec<SortPosition>>, T::Error> {
        let rows = matching_rows(&columns.segments, &test.predicate, self.bounds.interrupt);
        let Some(mut rows) = in_columns(rows)? else { return Ok(None) };
        let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
        self.tables.rows(&rest, self.bounds, &mut |row| {
            if test.passes(&row) {
                rows.push(row.id);
            }
            Ok(true)
        })?;
        let mut first = self.first_places(after);
        let place = |row: &ScanRow<'_>| SortPosition {
            question,
            value: row.value.into(),
            key: row.key.to_owned(),
            stream: stream.row,
        };
        if rows.len() <= MAX_CANDIDATES {
            let scan = RowScan { stream: stream.row, rows: &rows, wants_data: false };
            self.tables.rows(&scan, self.bounds, &mut |row| {
                first.add(place(&row));
                Ok(true)
            })?;
            return Ok(Some(first.finish()));
        }
        rows.sort_unstable();
        self.each(stream, after, false, |row| {
            if rows.binary_search(&row.id).is_ok() {
                first.places.push(place(&row));
            }
            Ok(first.places.len() < first.wanted)
        })?;
        Ok(Some(first.places))
    }

    /// Returns the same as `places` for the order by a field, or for that of the stream: reads all records of the stream, or
    /// those with the words, and keeps the first ones.
    fn places_by(
        &self,
        field: Option<&str>,
        stream: &StreamRow,
        after: Option<&SortPosition>,
        question: u64,
    ) -> Result<Vec<SortPosition>, T::Error> {
        let mut test = RecordTest::new(self.query, None);
        let at = field.map(|field| test.reader.select(field));
        let is_number = field.is_some_and(|field| is_number_field(stream, field));
        let wants_data = at.is_some() || !self.query.filter.is_empty();
        let mut first = self.first_places(after);
        self.each_with_words(stream, wants_data, &mut |row| {
            if wants_data && !test.passes(&row) {
                return Ok(true);
            }
            let value = match at {
                Some(at) => sort_value(test.value(at), is_number),
                None => row.value.into(),
            };
            first.add(SortPosition { question, value, key: row.key.to_owned(), stream: stream.row });
            Ok(true)
        })?;
        Ok(first.finish())
    }

    /// Counts the records of one stream that are in the list.
    pub(super) fn matching(&self, stream: &StreamRow) -> Result<u64, T::Error> {
        let mut test = RecordTest::new(self.query, self.words);
        let mut matching = 0;
        if let Some(columns) = self.tables.columns(stream.row, &test.reader.names(), self.words)? {
            let docs = columns.segments.iter();
            let docs = docs
                .map(|segment| filter::matching(segment.as_ref(), &test.predicate, self.bounds.interrupt));
            let counts = docs.map(|docs| docs.map(|docs| docs.len() as u64));
            if let Some(count) = in_columns(counts.sum::<Result<u64, _>>())? {
                let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
                self.tables.rows(&rest, self.bounds, &mut |row| {
                    matching += u64::from(test.passes(&row));
                    Ok(true)
                })?;
                return Ok(count + matching);
            }
        }
        test.words = None;
        let wants_data = !self.query.filter.is_empty();
        self.each_with_words(stream, wants_data, &mut |row| {
            matching += u64::from(!wants_data || test.passes(&row));
            Ok(true)
        })?;
        Ok(matching)
    }

    /// Passes all records of a stream that have the words to `more`, in any order, until it returns false.
    fn each_with_words(
        &self,
        stream: &StreamRow,
        wants_data: bool,
        more: &mut dyn FnMut(ScanRow<'_>) -> Result<bool, T::Error>,
    ) -> Result<(), T::Error> {
        match self.words {
            None => self.each(stream, None, wants_data, more),
            Some(words) => {
                let scan = WordScan { stream: stream.row, words, wants_data };
                self.tables.scan_with_words(&scan, self.bounds, more)
            }
        }
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

//! The records of one stream that pass the filter of a list and have its words, in the order of the list.
//!
//! Few records are read in the order of the stream at first. If they do not fill the page, columns tell which records are in the
//! list. Without columns all records are read, or those that the tables select by the words.

use fetchwell_source::{Direction, RecordsQuery};
use serde_json::Value;

use super::super::columns::{filter, in_columns};
use super::super::field_reader::{FieldReader, FieldValues};
use super::super::interrupt::ReadBounds;
use super::super::predicate::{Predicate, bounds};
use super::super::sort_position::SortPosition;
use super::super::stream_row::StreamRow;
use super::super::tables::{RowScan, Scan, ScanRow, ScanStart, Tables, WordScan};
use super::order::{FirstPlaces, ListOrder, PageStart};
use crate::lexical::word_filter::WordFilter;

/// Number of records that are read in the order of the stream before the columns are asked which records are in the list.
const MAX_SCANNED: usize = 250;

/// The same before the tables are asked which records have the words, if there are no columns.
const MAX_SCANNED_FOR_WORDS: usize = 2_000;

/// Test of the JSON of records: the filter and the words of a list.
pub(super) struct RecordTest<'a> {
    pub(super) reader: FieldReader,
    pub(super) predicate: Predicate,
    words: Option<&'a WordFilter>,
    picked: FieldValues,
}

impl<'a> RecordTest<'a> {
    pub(super) fn new(query: &RecordsQuery, words: Option<&'a WordFilter>) -> Self {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        Self { reader, predicate, words, picked: Vec::new() }
    }

    /// Returns true if a record passes. Its selected fields are then picked.
    pub(super) fn passes(&mut self, row: &ScanRow<'_>) -> bool {
        self.reader.read(row.data, &mut self.picked);
        self.predicate.passes(&self.picked) && self.words.is_none_or(|words| words.passes(row.key, row.data))
    }

    /// Returns the value of a selected field of the record that was read last.
    pub(super) fn value(&self, field: usize) -> Option<&Value> {
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

/// Reader of the records of a list.
pub(super) struct ListScan<'a, T> {
    pub(super) tables: &'a T,
    pub(super) query: &'a RecordsQuery,
    pub(super) order: ListOrder<'a>,
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
        let field = self.order.field(stream);
        let start = PageStart { stream, after, question };
        if field.is_some() {
            let found = self.places_in_columns(field, start)?;
            return found.map_or_else(|| self.places_by(field, stream, after, question), Ok);
        }
        let mut scan = OrderedScan::default();
        self.scan_in_order(stream, after, question, MAX_SCANNED, &mut scan)?;
        let Some(stop) = scan.stop.take() else { return Ok(scan.places) };
        // Few records pass.
        if let Some(places) = self.places_in_columns(None, start)? {
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
        let wants_data = at.is_some() || !self.query.filter.is_empty();
        let mut first = FirstPlaces::new(self.query, after);
        self.each_with_words(stream, wants_data, &mut |row| {
            if wants_data && !test.passes(&row) {
                return Ok(true);
            }
            let value = match at {
                Some(at) => self.order.value(test.value(at)),
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

    /// Returns true if the record of a stream with the value and the key of a position is behind the position: records of two
    /// connections with equal value and key are ordered by their stream.
    pub(super) fn is_inclusive(&self, stream: &StreamRow, place: &SortPosition) -> bool {
        match self.query.direction {
            Direction::Descending => stream.row < place.stream,
            Direction::Ascending => stream.row > place.stream,
        }
    }

    /// Passes the rows of one stream after a position to `more`, in order, until it returns false.
    pub(super) fn each(
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
            is_inclusive: self.is_inclusive(stream, place),
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

//! The first records of a list of one stream, from columns.
//!
//! Columns tell the values that order records, and their row ids. Records with the value of the cursor, or with that of the end
//! of the page, are ordered by their keys, which only the tables have: a few keys are looked up, and the first ones of many are
//! found by reading keys in their order until the page is full.

use std::collections::HashMap;

use fetchwell_core::record::SortValue;
use serde_json::Value;

use super::super::columns::filter::matching_rows;
use super::super::columns::order::{Candidates, ColumnOrder};
use super::super::columns::row_set::RowSet;
use super::super::columns::{ColumnarStream, in_columns};
use super::super::sort_position::SortPosition;
use super::super::tables::{KeyScan, KeyStart, RowScan, ScanRow, Tables};
use super::order::{FirstPlaces, PageStart};
use super::stream_scan::{ListScan, RecordTest};

/// A key is read in the order of the keys at least so many times as fast as it is looked up.
const LOOKUP_COST: usize = 4;

/// Records that share the value that orders them, at most `wanted` of which are read.
struct TiedRecords<'a> {
    value: &'a SortValue,
    rows: Vec<i64>,
    /// Position before the first of them, if it has the same value.
    after: Option<&'a SortPosition>,
    wanted: usize,
    max_lookups: usize,
}

impl<T: Tables> ListScan<'_, T> {
    /// Returns the positions from columns, by a field or in the order of the stream; `None` if there are no columns or too many
    /// texts to compare.
    pub(super) fn places_in_columns(
        &self,
        field: Option<&str>,
        start: PageStart<'_>,
    ) -> Result<Option<Vec<SortPosition>>, T::Error> {
        let mut test = RecordTest::new(self.query, self.words);
        let at = field.map(|field| test.reader.select(field));
        let columns = self.tables.columns(start.stream.row, &test.reader.names(), self.words)?;
        let Some(columns) = columns else { return Ok(None) };
        let Some(at) = at else { return self.places_among(&columns, &mut test, start) };
        let value_of = |value: Option<&Value>| self.order.value(value);
        let order = ColumnOrder {
            predicate: &test.predicate,
            field: at,
            direction: self.query.direction,
            after: start.after.map(|after| &after.value),
            wanted: self.query.limit + 1,
            value_of: &value_of,
        };
        let found = order.candidates(&columns.segments, self.bounds.interrupt);
        let Some(found) = in_columns(found)?.flatten() else { return Ok(None) };
        let mut first = FirstPlaces::new(self.query, start.after);
        self.add_candidates(found, columns.max_lookups, start, &mut first)?;
        let rest = RowScan { stream: start.stream.row, rows: &columns.rest, wants_data: true };
        self.tables.rows(&rest, self.bounds, &mut |row| {
            if test.passes(&row) {
                first.add(start.place(value_of(test.value(at)), row.key));
            }
            Ok(true)
        })?;
        Ok(Some(first.finish()))
    }

    /// Adds the first records of those in columns.
    fn add_candidates(
        &self,
        candidates: Candidates,
        max_lookups: usize,
        start: PageStart<'_>,
        first: &mut FirstPlaces<'_>,
    ) -> Result<(), T::Error> {
        let Candidates { ties, leading, last } = candidates;
        let mut wanted = first.wanted;
        if let Some(after) = start.after {
            let tied =
                TiedRecords { value: &after.value, rows: ties, after: Some(after), wanted, max_lookups };
            wanted -= self.add_tied(&tied, start, first)?.min(wanted);
        }
        if wanted == 0 {
            return Ok(());
        }
        let rows: Vec<i64> = leading.iter().map(|candidate| candidate.row).collect();
        wanted -= rows.len().min(wanted);
        let mut values: HashMap<i64, SortValue> =
            leading.into_iter().map(|candidate| (candidate.row, candidate.value)).collect();
        let scan = RowScan { stream: start.stream.row, rows: &rows, wants_data: false };
        self.tables.rows(&scan, self.bounds, &mut |row| {
            let value = values.remove(&row.id).unwrap_or(SortValue::Missing);
            first.add(start.place(value, row.key));
            Ok(true)
        })?;
        if let Some((value, rows)) = last.filter(|_| wanted > 0) {
            let tied = TiedRecords { value: &value, rows, after: None, wanted, max_lookups };
            self.add_tied(&tied, start, first)?;
        }
        Ok(())
    }

    /// Adds the first ones of records with one value, by their keys. Returns their number.
    fn add_tied(
        &self,
        tied: &TiedRecords<'_>,
        start: PageStart<'_>,
        first: &mut FirstPlaces<'_>,
    ) -> Result<usize, T::Error> {
        let (mut added, count) = (0, tied.rows.len());
        let mut add = |key: &str| added += usize::from(first.add(start.place(tied.value.clone(), key)));
        let max_read = if count <= tied.wanted {
            0
        } else if count <= tied.max_lookups {
            count * LOOKUP_COST
        } else {
            usize::MAX
        };
        if let Some(keys) = self.first_keys(tied, max_read, start)? {
            keys.iter().for_each(|key| add(key));
            return Ok(added);
        }
        let scan = RowScan { stream: start.stream.row, rows: &tied.rows, wants_data: false };
        self.tables.rows(&scan, self.bounds, &mut |row| {
            add(row.key);
            Ok(true)
        })?;
        Ok(added)
    }

    /// Returns the first keys of records in the order of the keys of the stream; `None` if more than `max_read` keys are to be
    /// read.
    fn first_keys(
        &self,
        tied: &TiedRecords<'_>,
        max_read: usize,
        start: PageStart<'_>,
    ) -> Result<Option<Vec<String>>, T::Error> {
        if max_read == 0 {
            return Ok(None);
        }
        let (rows, mut keys, mut read) = (RowSet::new(&tied.rows), Vec::new(), 0);
        let after = tied
            .after
            .map(|after| KeyStart { key: &after.key, is_inclusive: self.is_inclusive(start.stream, after) });
        let scan = KeyScan { stream: start.stream.row, direction: self.query.direction, after };
        self.tables.keys(&scan, self.bounds, &mut |row| {
            read += 1;
            if rows.has(row.id) {
                keys.push(row.key.to_owned());
            }
            Ok(keys.len() < tied.wanted && read <= max_read)
        })?;
        Ok((read <= max_read).then_some(keys))
    }

    /// Returns the first records in the order of the stream that are in the list, of those that columns tell of.
    fn places_among(
        &self,
        columns: &ColumnarStream<'_>,
        test: &mut RecordTest<'_>,
        start: PageStart<'_>,
    ) -> Result<Option<Vec<SortPosition>>, T::Error> {
        let PageStart { stream, after, .. } = start;
        let rows = matching_rows(&columns.segments, &test.predicate, self.bounds.interrupt);
        let Some(mut rows) = in_columns(rows)? else { return Ok(None) };
        let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
        self.tables.rows(&rest, self.bounds, &mut |row| {
            if test.passes(&row) {
                rows.push(row.id);
            }
            Ok(true)
        })?;
        let place = |row: &ScanRow<'_>| start.place(row.value.into(), row.key);
        let mut first = FirstPlaces::new(self.query, after);
        if rows.len() <= columns.max_lookups {
            let scan = RowScan { stream: stream.row, rows: &rows, wants_data: false };
            self.tables.rows(&scan, self.bounds, &mut |row| {
                first.add(place(&row));
                Ok(true)
            })?;
            return Ok(Some(first.finish()));
        }
        let (rows, mut places) = (RowSet::new(&rows), Vec::new());
        self.each(stream, after, false, |row| {
            if rows.has(row.id) {
                places.push(place(&row));
            }
            Ok(places.len() < first.wanted)
        })?;
        Ok(Some(places))
    }
}

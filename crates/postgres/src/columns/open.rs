//! Opens the columns of a stream for a read, at the state that its transaction sees.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::relational::columns::{
    ColumnError, ColumnPath, ColumnSegment as _, ColumnarStream, MAX_CHANGED, MAX_LOOKUPS, MIN_RECORDS,
    in_columns,
};
use fetchwell_source::SourceError;
use tokio_postgres::Row;

use super::block::{FORMAT, MIN_FORMAT};
use super::loader::{BlockLoader, BlockName, unreadable};
use super::marks::{Bits, add_marked, bit_of, part_of};
use super::outdated::mark_outdated;
use super::rows::{SEGMENT_COLUMNS, SegmentRow, are_contiguous};
use super::segment::{OpenColumn, OpenSegment};
use super::segment_writer::{KEYS, MARKS, key_hash};
use crate::queries::Queries;

/// Streams whose columns a read uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnUse {
    /// Streams with many records.
    Large,
    /// Streams of any size.
    #[cfg(test)]
    All,
    /// No streams: all records are read, also by words.
    #[cfg(test)]
    None,
}

impl ColumnUse {
    /// Returns the maximum number of records whose keys are looked up one by one.
    fn max_lookups(self) -> usize {
        match self {
            Self::Large => MAX_LOOKUPS,
            #[cfg(test)]
            Self::All | Self::None => 30,
        }
    }

    /// Returns the number of records that a stream must have; `None` if columns are not used.
    pub(crate) fn min_records(self) -> Option<i64> {
        match self {
            Self::Large => Some(MIN_RECORDS),
            #[cfg(test)]
            Self::All => Some(0),
            #[cfg(test)]
            Self::None => None,
        }
    }
}

/// Opens the columns of some fields of a stream. Returns `None` if all records are to be read.
pub(crate) fn open_columns<'a>(
    queries: Queries<'a>,
    columns: ColumnUse,
    stream: i64,
    fields: &[&str],
) -> Result<Option<ColumnarStream<'a>>, SourceError> {
    let Some(min_records) = columns.min_records() else { return Ok(None) };
    let paths = fields.iter().map(|field| ColumnPath::for_field(field)).collect::<Option<Vec<_>>>();
    let Some(paths) = paths else { return Ok(None) };
    let Some(count) = usable_count(queries, stream)?.filter(|count| *count >= min_records) else {
        return Ok(None);
    };
    let opening = Opening { queries, stream, paths, max_lookups: columns.max_lookups() };
    in_columns(opening.open(count)).map(Option::flatten)
}

/// Returns the number of records of a stream; `None` if the role may not read columns, or the index of versions is missing.
fn usable_count(queries: Queries<'_>, stream: i64) -> Result<Option<i64>, SourceError> {
    // A refused statement would end the transaction.
    let sql = "SELECT record_count FROM fetchwell.streams WHERE id = $1
         AND to_regclass('fetchwell.records_by_version') IS NOT NULL
         AND has_table_privilege(to_regclass('fetchwell.column_segments'), 'SELECT')
         AND has_table_privilege(to_regclass('fetchwell.column_blocks'), 'SELECT')";
    let rows = queries.query(sql, &[&stream])?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()))
}

/// Columns that are being opened.
struct Opening<'a> {
    queries: Queries<'a>,
    stream: i64,
    paths: Vec<ColumnPath>,
    max_lookups: usize,
}

/// Segment with what the read needs of it.
struct ChosenSegment {
    row: SegmentRow,
    /// For each path, whether the segment has its column.
    has_column: Vec<bool>,
    /// Records that are read as JSON.
    marked: Bits,
}

impl<'a> Opening<'a> {
    fn open(self, count: i64) -> Result<Option<ColumnarStream<'a>>, ColumnError> {
        let mut segments = self.segments()?;
        let rows: Vec<SegmentRow> = segments.iter().map(|segment| segment.row.clone()).collect();
        let is_readable = |row: &SegmentRow| (MIN_FORMAT..=FORMAT).contains(&row.format) && row.is_intact();
        let is_readable = are_contiguous(&rows) && rows.iter().all(is_readable);
        let Some(covered) = rows.last().map(|row| row.range.last).filter(|_| is_readable) else {
            return Ok(None);
        };
        let loader = Rc::new(BlockLoader::new(self.queries));
        let Some(mut rest) = self.leave_out_changed(covered, &mut segments, &loader)? else {
            return Ok(None);
        };
        self.mark(&mut segments, &loader)?;
        let mut columns =
            ColumnarStream { segments: Vec::new(), rest: Vec::new(), max_lookups: self.max_lookups };
        for segment in segments {
            let ChosenSegment { row, has_column, marked } = segment;
            let all = 0..u32::try_from(row.records).unwrap_or_default();
            let current = all.filter(|doc| !row.outdated.has(*doc));
            let (unread, docs): (Vec<u32>, Vec<u32>) = current.partition(|doc| marked.has(*doc));
            let names = self.paths.iter().zip(has_column);
            let names = names.map(|(path, has_column)| has_column.then(|| path.column.clone()));
            let open = OpenSegment {
                id: row.id,
                records: row.records,
                docs,
                columns: names.map(OpenColumn::new).collect(),
                loader: Rc::clone(&loader),
            };
            open.rows(&unread, &mut rest)?;
            columns.segments.push(Box::new(open));
        }
        let in_columns: usize = columns.segments.iter().map(|segment| segment.docs().len()).sum();
        let found = in_columns + rest.len();
        Ok(ColumnarStream { rest, ..columns }.for_count(found, count))
    }

    /// Returns the segments of the stream, sorted by their ranges.
    fn segments(&self) -> Result<Vec<ChosenSegment>, ColumnError> {
        let sql = format!(
            "SELECT {SEGMENT_COLUMNS}, ARRAY(
                 SELECT n.name = ANY (g.columns) FROM unnest($2::text[]) WITH ORDINALITY AS n (name, place) ORDER BY place
             ) FROM fetchwell.column_segments g WHERE stream = $1 ORDER BY after_version, last_version"
        );
        let names: Vec<&str> = self.paths.iter().map(|path| path.column.as_str()).collect();
        let chosen = |row: &Row| {
            let segment = SegmentRow::read(row).ok()?;
            let (has_column, marked) = (row.try_get(8).ok()?, Bits::new(segment.records));
            Some(ChosenSegment { row: segment, has_column, marked })
        };
        let rows = self.queries.query(&sql, &[&self.stream, &names])?;
        rows.iter().map(chosen).collect::<Option<_>>().ok_or_else(|| unreadable("of a segment"))
    }

    /// Marks the records that changed after a version as outdated. Returns the rows of those that are not deleted; `None` if too
    /// many changed.
    fn leave_out_changed(
        &self,
        covered: i64,
        segments: &mut [ChosenSegment],
        loader: &BlockLoader<'_>,
    ) -> Result<Option<Vec<i64>>, ColumnError> {
        // By its statistics the server expects changes in a stream if only others have some, and would read all records. The order
        // is that of an index.
        let sql = "SELECT version, key, data IS NOT NULL FROM fetchwell.records
             WHERE stream = $1 AND version > $2 ORDER BY version LIMIT $3";
        let limit = saturated::<i64>(MAX_CHANGED + 1);
        let rows = self.queries.query(sql, &[&self.stream, &covered, &limit])?;
        if rows.len() > MAX_CHANGED {
            return Ok(None);
        }
        let (mut rest, mut keys) = (Vec::new(), HashSet::new());
        for row in &rows {
            let (version, exists) = (row.try_get::<_, i64>(0).ok(), row.try_get::<_, bool>(2).ok());
            let key = row.try_get::<_, &str>(1).ok();
            let (Some(version), Some(key), Some(exists)) = (version, key, exists) else {
                return Err(unreadable("of a change"));
            };
            keys.insert(key_hash(key));
            rest.extend(Some(version).filter(|_| exists));
        }
        if keys.is_empty() {
            return Ok(Some(rest));
        }
        for ChosenSegment { row, .. } in segments {
            let name = BlockName { segment: row.id, name: KEYS.to_owned() };
            loader.parts(&name, &[0], |_, block| {
                mark_outdated(row, block, &keys).ok_or_else(|| unreadable(KEYS))
            })?;
        }
        Ok(Some(rest))
    }

    /// Marks the records that are read as JSON for some of the fields.
    fn mark(&self, segments: &mut [ChosenSegment], loader: &BlockLoader<'_>) -> Result<(), ColumnError> {
        let marks: BTreeSet<u64> = self.paths.iter().flat_map(|path| path.marks.iter().copied()).collect();
        let parts: BTreeSet<i32> = marks.iter().map(|mark| part_of(*mark)).collect();
        for ChosenSegment { row, marked, .. } in segments {
            let existing = parts.iter().copied().filter(|part| row.mark_parts & bit_of(*part) != 0);
            let existing: Vec<i32> = existing.collect();
            if !existing.is_empty() {
                let name = BlockName { segment: row.id, name: MARKS.to_owned() };
                loader.parts(&name, &existing, |_, block| {
                    add_marked(block, &marks, marked).ok_or_else(|| unreadable(MARKS))
                })?;
            }
        }
        Ok(())
    }
}

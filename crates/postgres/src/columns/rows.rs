//! Rows of segments.

use deadpool_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::block::{FORMAT, sealed, unsealed};
use super::marks::Bits;
use super::segment_writer::SegmentBlocks;
use crate::bulk::copy::{CopyRow, copy_rows};

/// Columns of a segment's row, in the order in which they are read.
pub(super) const SEGMENT_COLUMNS: &str =
    "id, after_version, last_version, records, outdated, format, mark_parts, as_of";

/// Row of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentRow {
    pub(super) id: i64,
    pub(super) range: VersionRange,
    /// Number of records, with those that are outdated.
    pub(super) records: usize,
    /// Records that were changed or deleted since.
    pub(super) outdated: Bits,
    pub(super) format: i16,
    pub(super) mark_parts: i64,
    /// Version of the store up to which `outdated` is complete.
    pub(super) as_of: i64,
}

/// Versions after one up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VersionRange {
    pub(super) after: i64,
    pub(super) last: i64,
}

impl SegmentRow {
    /// Reads a row of [`SEGMENT_COLUMNS`].
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.try_get(0)?,
            range: VersionRange { after: row.try_get(1)?, last: row.try_get(2)? },
            records: usize::try_from(row.try_get::<_, i32>(3)?).unwrap_or_default(),
            outdated: Bits { bytes: unsealed(row.try_get(4)?).unwrap_or_default().to_vec() },
            format: row.try_get(5)?,
            mark_parts: row.try_get(6)?,
            as_of: row.try_get(7)?,
        })
    }

    /// Returns true if the bits of the outdated records are those that were written.
    pub(super) fn is_intact(&self) -> bool {
        self.outdated.bytes.len() == self.records.div_ceil(8)
    }

    /// Returns the number of records that are not outdated.
    pub(super) fn current(&self) -> usize {
        self.records.saturating_sub(self.outdated.count())
    }
}

/// Returns the ranges up to `newest` that segments, sorted by their ranges, do not cover.
pub(super) fn gaps(segments: &[SegmentRow], newest: i64) -> Vec<VersionRange> {
    let (mut gaps, mut after) = (Vec::new(), 0);
    for VersionRange { after: start, last } in segments.iter().map(|segment| segment.range) {
        if start > after {
            gaps.push(VersionRange { after, last: start });
        }
        after = after.max(last);
    }
    if newest > after {
        gaps.push(VersionRange { after, last: newest });
    }
    gaps
}

/// Returns true if segments, sorted by their ranges, follow each other from the first version on.
pub(super) fn are_contiguous(segments: &[SegmentRow]) -> bool {
    let mut after = 0;
    segments.iter().all(|segment| {
        let follows = segment.range.after == after && segment.range.last >= after;
        after = segment.range.last;
        follows
    })
}

/// Returns the segments of a stream, sorted by their ranges.
pub(super) async fn read_segments(
    transaction: &Transaction<'_>,
    stream: i64,
) -> Result<Vec<SegmentRow>, Error> {
    let sql = format!(
        "SELECT {SEGMENT_COLUMNS} FROM fetchwell.column_segments WHERE stream = $1 ORDER BY after_version, last_version"
    );
    transaction.query(sql.as_str(), &[&stream]).await?.iter().map(SegmentRow::read).collect()
}

/// Segment that is not written yet.
pub(super) struct NewSegment {
    pub(super) stream: i64,
    pub(super) range: VersionRange,
    /// Version of the store that its records were read at.
    pub(super) as_of: i64,
    pub(super) blocks: SegmentBlocks,
}

/// Inserts a segment with its blocks.
pub(super) async fn put_segment(transaction: &Transaction<'_>, segment: &NewSegment) -> Result<(), Error> {
    let sql = "INSERT INTO fetchwell.column_segments
             (stream, after_version, last_version, as_of, records, outdated, format, mark_parts, columns)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id";
    let NewSegment { stream, range: VersionRange { after, last }, as_of, blocks } = segment;
    let SegmentBlocks { records, mark_parts, columns, blocks } = blocks;
    let outdated = sealed(Bits::new(*records).bytes);
    let records = i32::try_from(*records).unwrap_or(i32::MAX);
    let values: [&(dyn ToSql + Sync); 9] =
        [stream, after, last, as_of, &records, &outdated, &FORMAT, mark_parts, columns];
    let row = transaction.query_one(sql, &values).await?;
    let id: i64 = row.try_get(0)?;
    let types = [Type::INT8, Type::TEXT, Type::INT4, Type::BYTEA];
    let rows: Vec<CopyRow<'_, 4>> =
        blocks.iter().map(|block| [&id as _, &block.name as _, &block.part as _, &block.data as _]).collect();
    copy_rows(transaction, "fetchwell.column_blocks (segment, name, part, data)", &types, &rows).await
}

/// Deletes segments with their blocks.
pub(super) async fn delete_segments(transaction: &Transaction<'_>, ids: &[i64]) -> Result<(), Error> {
    transaction.execute("DELETE FROM fetchwell.column_segments WHERE id = ANY ($1)", &[&ids]).await?;
    Ok(())
}

/// Deletes the segments that have, or may have had, a record that is being removed.
pub(crate) async fn delete_segments_of_record(
    transaction: &Transaction<'_>,
    stream: i64,
    key: &str,
) -> Result<(), Error> {
    let sql = "DELETE FROM fetchwell.column_segments WHERE stream = $1
             AND after_version < (SELECT version FROM fetchwell.records WHERE stream = $1 AND key = $2)";
    transaction.execute(sql, &[&stream, &key]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Ranges = &'static [(i64, i64)];

    #[test]
    fn gaps_are_what_segments_do_not_cover() {
        let segment = |after, last| SegmentRow {
            id: 1,
            range: VersionRange { after, last },
            records: 0,
            outdated: Bits::default(),
            format: FORMAT,
            mark_parts: 0,
            as_of: 90,
        };
        let cases: [(Ranges, Ranges); 6] = [
            (&[], &[(0, 90)]),
            (&[(0, 90)], &[]),
            (&[(0, 40)], &[(40, 90)]),
            (&[(0, 10), (10, 40)], &[(40, 90)]),
            (&[(5, 10), (20, 30)], &[(0, 5), (10, 20), (30, 90)]),
            (&[(0, 30), (20, 90)], &[]),
        ];
        for (ranges, expect) in cases {
            let segments: Vec<SegmentRow> =
                ranges.iter().map(|(after, last)| segment(*after, *last)).collect();
            let found: Vec<(i64, i64)> =
                gaps(&segments, 90).iter().map(|gap| (gap.after, gap.last)).collect();
            assert_eq!(found, expect, "{ranges:?}");
            let is_first = ranges.first().is_none_or(|(after, _)| *after == 0);
            let follow = ranges.windows(2).all(|pair| pair[0].1 == pair[1].0);
            assert_eq!(are_contiguous(&segments), is_first && follow, "{ranges:?}");
        }
    }
}

//! Columns of the fields of records in the search index.
//!
//! They are part of the entries of records, so a commit has the words and the columns of one version of the store. A read looks at
//! the version that its transaction sees. Records that changed since the commit, and those whose values no column can hold, are
//! read from SQLite. If anything prevents the use of columns, all records are.
//!
//! * `segment`: the columns of a segment

mod segment;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::relational::columns::{ColumnPath, ColumnarStream, MAX_CHANGED, MIN_RECORDS};
use rusqlite::{Connection, OptionalExtension};

use self::segment::{SegmentColumns, SegmentSelection};
use super::index::CurrentIndex;
use crate::database::{Database, identity};
use crate::read::tables::OpenColumns;

/// Columns of a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexColumns<'a> {
    database: &'a Database,
    index: &'a CurrentIndex,
    min_records: i64,
}

impl<'a> IndexColumns<'a> {
    /// Creates the columns of a store with its index.
    pub(crate) fn new(database: &'a Database, index: &'a CurrentIndex) -> Self {
        Self { database, index, min_records: MIN_RECORDS }
    }

    /// Returns columns that are used for streams of any size.
    #[cfg(test)]
    pub(crate) fn of_all_streams(self) -> Self {
        Self { min_records: 0, ..self }
    }
}

impl OpenColumns for IndexColumns<'_> {
    fn open(
        &self,
        sqlite: &Connection,
        stream: i64,
        fields: &[&str],
    ) -> Result<Option<ColumnarStream<'static>>, rusqlite::Error> {
        let Some(paths) = fields.iter().map(|field| ColumnPath::for_field(field)).collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let count = "SELECT record_count FROM streams WHERE id = ?1";
        let count: Option<i64> = sqlite.query_row(count, [stream], |row| row.get(0)).optional()?;
        let Some(count) = count.filter(|count| *count >= self.min_records) else { return Ok(None) };
        let (uuid, newest) = identity(sqlite)?;
        let Some(snapshot) = self.index.with_field_columns(self.database, &uuid, newest) else {
            return Ok(None);
        };
        let Some(changes) = changes_since(sqlite, snapshot.version, newest)? else { return Ok(None) };
        let changed: HashSet<u64> = changes.iter().map(|change| change.record.unsigned_abs()).collect();
        let changes = changes.iter().filter(|change| change.stream == stream && !change.is_deleted);
        let mut columns =
            ColumnarStream { segments: Vec::new(), rest: changes.map(|change| change.record).collect() };
        let selection =
            SegmentSelection { fields: snapshot.fields, stream, paths: &paths, changed: &changed };
        for segment in snapshot.searcher.segment_readers() {
            match SegmentColumns::open(segment, &selection) {
                Ok((segment, mut rest)) => {
                    columns.rest.append(&mut rest);
                    columns.segments.push(Box::new(segment));
                }
                Err(error) => {
                    tracing::debug!(?error, "the columns of the search index are not used");
                    return Ok(None);
                }
            }
        }
        Ok(columns.for_count(count))
    }
}

/// Change of a record after the commit of the index.
#[derive(Debug, Clone, Copy)]
struct Change {
    record: i64,
    stream: i64,
    is_deleted: bool,
}

/// Returns the changes after a version; `None` if there are too many.
fn changes_since(
    sqlite: &Connection,
    version: i64,
    newest: i64,
) -> Result<Option<Vec<Change>>, rusqlite::Error> {
    if version == newest {
        return Ok(Some(Vec::new()));
    }
    let sql = "SELECT id, stream, data IS NULL FROM records WHERE version > ?1 LIMIT ?2";
    let mut statement = sqlite.prepare_cached(sql)?;
    let limit = saturated::<i64>(MAX_CHANGED + 1);
    let rows = statement.query_map((version, limit), |row| {
        Ok(Change { record: row.get(0)?, stream: row.get(1)?, is_deleted: row.get(2)? })
    })?;
    let changes = rows.collect::<Result<Vec<_>, _>>()?;
    Ok((changes.len() <= MAX_CHANGED).then_some(changes))
}

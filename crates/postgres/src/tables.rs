//! The tables as one transaction sees them: queries, and the texts and records in their rows.

use deadpool_postgres::Transaction;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::tables::{EachRow, RecordKey, RecordRow, ScanRow, SizedRecord};
use fetchwell_source::SourceError;
use tokio_postgres::Row;

use super::columns::ColumnUse;
use super::queries::{DatabaseWaiter, Queries, Values};
use super::sort_key::sort_column;

/// Maximum length in bytes of a text that is read together with others. A longer one is read by itself, after the read has
/// memory for it: a batch has at most a few hundred of them.
const MAX_INLINE_BYTES: i32 = 64 * 1024;

/// Tables of a store, as one transaction sees them.
#[derive(Debug)]
pub(crate) struct PostgresTables<'a> {
    pub(crate) queries: Queries<'a>,
    pub(crate) columns: ColumnUse,
}

/// Query for some records of a stream.
#[derive(Debug)]
pub(crate) struct RowsOfStream<'a> {
    pub(crate) stream: i64,
    pub(crate) sql: &'a str,
    pub(crate) values: &'a Values<'a>,
    /// True if the query reads the text of the records.
    pub(crate) wants_data: bool,
}

impl<'a> PostgresTables<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, waiting: &'a DatabaseWaiter) -> Self {
        Self { queries: Queries::new(transaction, waiting), columns: ColumnUse::Large }
    }

    /// Returns the same tables with columns that are used for other streams.
    #[cfg(test)]
    pub(crate) fn with_columns(&self, columns: ColumnUse) -> Self {
        Self { columns, ..*self }
    }

    /// Passes the text of a record to `each`. `column` is that of the length, before that of the text.
    pub(crate) fn with_text<Answer>(
        &self,
        row: &Row,
        column: usize,
        key: RecordKey<'_>,
        each: impl FnOnce(&str) -> Answer,
    ) -> Result<Answer, SourceError> {
        if length(row, column) <= MAX_INLINE_BYTES {
            return Ok(each(text(row, column + 1)));
        }
        let sql = "SELECT data FROM fetchwell.records WHERE stream = $1 AND key = $2";
        let rows = self.queries.query(sql, &[&key.stream, &key.key])?;
        Ok(each(rows.first().map(|row| text(row, 0)).unwrap_or_default()))
    }

    /// Passes the records of a stream that a query selects to `each`, until it returns false or the read exceeds its memory
    /// limit. The query has the columns of [`scan_columns`].
    pub(crate) fn scan_rows(
        &self,
        scan: &RowsOfStream<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, SourceError>,
    ) -> Result<(), SourceError> {
        self.queries.batches(scan.sql, scan.values, &mut |row| {
            bounds.interrupt.check()?;
            // The read exceeded its memory limit, so its result is discarded.
            if !bounds.allowance.has_room_for(usize::try_from(length(row, 2)).unwrap_or_default()) {
                return Ok(false);
            }
            let key = text(row, 1);
            let value = sort_column(row.try_get(0).unwrap_or_default());
            let id = row.try_get(4).unwrap_or_default();
            if !scan.wants_data {
                return each(ScanRow { id, key, value, data: "" });
            }
            let place = RecordKey { stream: scan.stream, key };
            self.with_text(row, 2, place, |data| each(ScanRow { id, key, value, data }))?
        })
    }

    /// Builds a record from the columns of [`record_columns`], of which the first is at `at`.
    pub(crate) fn record(
        &self,
        row: &Row,
        at: usize,
        allowance: &Allowance,
    ) -> Result<SizedRecord, SourceError> {
        let bytes = usize::try_from(length(row, at + 6)).unwrap_or_default();
        let is_deleted = row.try_get::<_, Option<i32>>(at + 6).ok().flatten().is_none();
        if !allowance.take(bytes) || is_deleted {
            return Ok(SizedRecord { record: None, bytes });
        }
        let key = RecordKey { stream: row.try_get(at + 5).unwrap_or_default(), key: text(row, at) };
        let record = self.with_text(row, at + 6, key, |data| {
            let columns = RecordRow {
                key: key.key,
                data,
                emitted_at: optional_text(row, at + 8),
                stream: text(row, at + 1),
                connection_id: text(row, at + 2),
                display_name: text(row, at + 3),
                connector_key: text(row, at + 4),
            };
            columns.record()
        })?;
        Ok(SizedRecord { record, bytes })
    }
}

/// Returns the columns for the length of a record's text and for the text, if it is short.
pub(crate) fn text_columns() -> String {
    format!("octet_length(r.data), CASE WHEN octet_length(r.data) <= {MAX_INLINE_BYTES} THEN r.data END")
}

/// Returns the columns of the row of a scan. The id of a row is the version of its record.
pub(crate) fn scan_columns(wants_data: bool) -> String {
    let data = if wants_data { text_columns() } else { "0, NULL".to_owned() };
    format!("r.sort_value, r.key, {data}, r.version")
}

/// Columns of a record with the names of its stream and connection.
pub(crate) fn record_columns() -> String {
    format!(
        "r.key, s.name, c.connection_id, c.display_name, c.connector_key, r.stream, {}, r.emitted_at",
        text_columns()
    )
}

/// Returns the length in a column, or 0 for a deleted record.
pub(crate) fn length(row: &Row, column: usize) -> i32 {
    row.try_get::<_, Option<i32>>(column).ok().flatten().unwrap_or_default()
}

pub(crate) fn optional_text(row: &Row, column: usize) -> Option<&str> {
    row.try_get::<_, Option<&str>>(column).ok().flatten()
}

pub(crate) fn text(row: &Row, column: usize) -> &str {
    optional_text(row, column).unwrap_or_default()
}

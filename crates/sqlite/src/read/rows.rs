//! Rows of the `records` table: their columns, and the records that are built from them.

use std::str::FromStr;

use fetchwell_core::record::Record;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::tables::RecordRow;
use rusqlite::Row;

/// Columns of a record in the order that [`record_of`] reads. SQLite returns the length without loading the text.
pub(crate) const RECORD_COLUMNS: &str = "r.key, r.data, r.emitted_at, s.name, c.connection_id, c.display_name, c.connector_key, octet_length(r.data)";

/// Tables of [`RECORD_COLUMNS`], for queries that know the row of the record or of its stream.
pub(crate) const RECORD_TABLES: &str =
    "records r JOIN streams s ON s.id = r.stream JOIN connections c ON c.id = s.connection";

/// Returns the length in bytes of a record's text, or 0 for a deleted record.
pub(super) fn bytes_of_row(row: &Row<'_>) -> Result<usize, rusqlite::Error> {
    length_at(row, 7)
}

/// Reads a length from a column, or 0 if it is NULL.
pub(crate) fn length_at(row: &Row<'_>, column: usize) -> Result<usize, rusqlite::Error> {
    let length = row.get::<_, Option<i64>>(column)?;
    Ok(length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0))
}

/// Builds a record from a row. Returns `None` if it was deleted, exceeds the memory limit, or was damaged by another
/// program.
pub(crate) fn record_of(row: &Row<'_>, allowance: &Allowance) -> Result<Option<Record>, rusqlite::Error> {
    if !allowance.take(bytes_of_row(row)?) {
        return Ok(None);
    }
    let Some(data) = row.get_ref(1)?.as_str_or_null()? else { return Ok(None) };
    let columns = RecordRow {
        key: row.get_ref(0)?.as_str()?,
        data,
        emitted_at: row.get_ref(2)?.as_str_or_null()?,
        stream: row.get_ref(3)?.as_str()?,
        connection_id: row.get_ref(4)?.as_str()?,
        display_name: row.get_ref(5)?.as_str()?,
        connector_key: row.get_ref(6)?.as_str()?,
    };
    Ok(columns.record())
}

/// Returns the JSON of a record's row, empty for a deleted record.
pub(crate) fn json_of<'a>(row: &'a Row<'_>) -> Result<&'a str, rusqlite::Error> {
    Ok(row.get_ref(1)?.as_str_or_null()?.unwrap_or_default())
}

/// Parses a name of a column. Returns `None` for an invalid name, which another program wrote.
pub(crate) fn name<Name: FromStr>(row: &Row<'_>, column: usize) -> Result<Option<Name>, rusqlite::Error> {
    Ok(row.get_ref(column)?.as_str()?.parse().ok())
}

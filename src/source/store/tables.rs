//! Tables of a store that are made when they are first needed.

use rusqlite::Connection;

/// Returns true if a store has a table, also if another connection has just created it: `Connection::table_exists` would
/// answer from the schema that this connection last read.
pub(super) fn has_table(sqlite: &Connection, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    sqlite.prepare_cached(sql)?.exists([name])
}

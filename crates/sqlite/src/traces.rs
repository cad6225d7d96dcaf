//! Text of removed records in the free pages and the log of a file.

use rusqlite::Connection;

use super::tables::has_table;

/// Rewrites the file without free pages and empties the write-ahead log. Both can have earlier versions of the
/// records.
pub(crate) fn overwrite_free_pages(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    sqlite.execute_batch("VACUUM")?;
    let is_busy: bool = sqlite.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    if is_busy {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        return Err(rusqlite::Error::SqliteFailure(busy, None));
    }
    Ok(())
}

/// Marks a store with text of removed records in its free pages or its log. [`overwrite_removed`] deletes the mark.
pub(crate) fn mark_removal(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    sqlite.execute_batch(
        "CREATE TABLE IF NOT EXISTS unfinished_removal (id INTEGER PRIMARY KEY) STRICT;
         INSERT OR IGNORE INTO unfinished_removal VALUES (1)",
    )
}

/// Returns true if free pages or the log can have text of removed records, because a removal was interrupted.
pub(crate) fn is_removal_unfinished(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM unfinished_removal";
    Ok(has_table(sqlite, "unfinished_removal")? && sqlite.prepare_cached(sql)?.exists(())?)
}

/// Overwrites free pages and the log after a removal. The mark stays if that fails.
pub(crate) fn overwrite_removed(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    overwrite_free_pages(sqlite)?;
    sqlite.execute("DELETE FROM unfinished_removal", ()).map(drop)
}

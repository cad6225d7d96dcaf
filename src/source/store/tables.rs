//! Tables of a store that are made when they are first needed.

use rusqlite::Connection;

/// SQL for the present time in RFC 3339.
pub(super) const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// Returns true if a store has a table, also if another connection has just created it: `Connection::table_exists` would
/// answer from the schema that this connection last read.
pub(super) fn has_table(sqlite: &Connection, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    sqlite.prepare_cached(sql)?.exists([name])
}

/// Returns true if the store has a project.
pub(super) fn has_projects(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    Ok(has_table(sqlite, "projects")?
        && sqlite.prepare_cached("SELECT 1 FROM projects LIMIT 1")?.exists(())?)
}

/// Raises the version of all projects, after something else than their documents changed the answers.
pub(super) fn raise_versions(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    if has_projects(sqlite)? {
        let sql = format!("UPDATE projects SET corpus_version = corpus_version + 1, updated_at = {NOW}");
        sqlite.execute(&sql, ())?;
    }
    Ok(())
}

/// Removes the vectors of the queries of all searches.
pub(in crate::source::store) fn remove_query_vectors(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE search_history SET query_embedding = NULL WHERE query_embedding IS NOT NULL";
    sqlite.execute(sql, ()).map(drop)
}

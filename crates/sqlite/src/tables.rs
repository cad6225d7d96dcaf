//! Tables of a store that are made when they are first needed.

use rusqlite::Connection;

/// SQL for the present time in RFC 3339.
pub(crate) const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/// Returns true if a store has a table, also if another connection has just created it: `Connection::table_exists` would
/// answer from the schema that this connection last read.
pub(crate) fn has_table(sqlite: &Connection, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    sqlite.prepare_cached(sql)?.exists([name])
}

/// Returns true if the store has a project.
pub(crate) fn has_projects(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    Ok(has_table(sqlite, "projects")?
        && sqlite.prepare_cached("SELECT 1 FROM projects LIMIT 1")?.exists(())?)
}

/// Raises the versions of all projects, since their searches find other chunks, and notes the model in their settings.
pub(crate) fn raise_versions(sqlite: &Connection, model: &str) -> Result<(), rusqlite::Error> {
    if has_projects(sqlite)? {
        let sql = format!(
            "UPDATE projects SET corpus_version = corpus_version + 1, updated_at = {NOW},
                 settings = json_set(settings, '$.embedding_model', ?1)"
        );
        sqlite.execute(&sql, [model])?;
    }
    Ok(())
}

/// Removes what projects have of a model: its name in their settings, and the vectors of the queries of searches. Raises the
/// versions of these projects, since their searches find other chunks.
pub(crate) fn remove_model(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    let transaction = sqlite.unchecked_transaction()?;
    let sql = format!(
        "UPDATE projects SET corpus_version = corpus_version + 1, updated_at = {NOW},
             settings = json_remove(settings, '$.embedding_model')
         WHERE settings ->> '$.embedding_model' IS NOT NULL"
    );
    transaction.execute(&sql, ())?;
    let sql = "UPDATE search_history SET query_embedding = NULL WHERE query_embedding IS NOT NULL";
    transaction.execute(sql, ())?;
    transaction.commit()
}

/// Creates the view `chunks`, or replaces that of an earlier release, which lacks columns.
pub(crate) fn update_view(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    let is_current = "SELECT 1 FROM pragma_table_info('chunks') WHERE name = 'content_tsv'";
    if !has_table(sqlite, "chunk_ranges")? || sqlite.prepare(is_current)?.exists(())? {
        return Ok(());
    }
    let transaction = sqlite.is_autocommit().then(|| sqlite.unchecked_transaction()).transpose()?;
    sqlite.execute_batch(include_str!("documents/chunks_view.sql"))?;
    transaction.map_or(Ok(()), rusqlite::Transaction::commit)
}

//! Resolves the names of a scope to rows of a store.

use std::path::Path;

use fetchwell_core::handle::{RecordId, RecordScope, StreamName};
use fetchwell_source::contract::{ExportedStream, RecordRow, ScopeError, ScopeLookup, ScopeRows};
use rusqlite::{Connection, OptionalExtension, params};

use super::database::Database;

/// Opens a store and resolves a scope.
pub(crate) fn open(store: &Path, scope: &RecordScope) -> Result<(Database, ScopeRows), ScopeError> {
    let database = Database::open(store)?;
    let rows = resolve(&database, scope)?;
    Ok((database, rows))
}

/// Resolves a scope.
pub(crate) fn resolve(database: &Database, scope: &RecordScope) -> Result<ScopeRows, ScopeError> {
    database.read(|sqlite| look_up(sqlite, scope))?.resolve(scope)
}

fn look_up(sqlite: &Connection, scope: &RecordScope) -> Result<ScopeLookup, rusqlite::Error> {
    let find = "SELECT id FROM connections WHERE connection_id = ?1";
    let connection: Option<i64> =
        sqlite.query_row(find, [scope.connection.as_str()], |row| row.get(0)).optional()?;
    let mut known_connections = Vec::new();
    if connection.is_none() {
        let mut known = sqlite.prepare("SELECT connection_id FROM connections ORDER BY id")?;
        known_connections = known.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    }
    let mut streams =
        sqlite.prepare("SELECT id, name, record_count FROM streams WHERE connection = ?1 ORDER BY id")?;
    let streams = streams.query_map([connection], |row| {
        Ok(ExportedStream::new(row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.try_into().unwrap_or(0)))
    })?;
    let find = "SELECT r.id, r.data IS NULL FROM records r JOIN streams s ON s.id = r.stream
         WHERE s.connection = ?1 AND s.name = ?2 AND r.key = ?3";
    let names = (scope.stream.as_ref().map(StreamName::as_str), scope.record.as_ref().map(RecordId::as_str));
    let record = sqlite.query_row(find, params![connection, names.0, names.1], |row| {
        Ok(RecordRow { row: row.get(0)?, is_deleted: row.get(1)? })
    });
    Ok(ScopeLookup {
        connection,
        known_connections,
        streams: streams.collect::<Result<_, _>>()?,
        record: record.optional()?,
    })
}

//! Reads the schema of a store: its connections with their streams and routes.

use rusqlite::{Connection, OptionalExtension};

use super::rows::name;
use crate::handle::{ConnectionId, StreamName};
use crate::record::{ConnectionSchema, Schema, StreamSchema};
use crate::source::SourceError;
use crate::source::store::database::Database;
use crate::source::store::manifest::Manifest;

/// Returns all connections with the names of their streams.
pub(in crate::source::store) fn schema(database: &Database) -> Result<Schema, SourceError> {
    Ok(database.read(read_schema)?)
}

fn read_schema(sqlite: &Connection) -> Result<Schema, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count, c.manifest
         FROM connections c LEFT JOIN streams s ON s.connection = c.id ORDER BY c.id, s.id",
    )?;
    let mut rows = statement.query(())?;
    let mut schema = Schema::default();
    while let Some(row) = rows.next()? {
        let Some(connection_id) = name::<ConnectionId>(row, 0)? else { continue };
        if schema.connections.last().is_none_or(|last| last.connection_id != connection_id) {
            let manifest = row.get_ref(5)?.as_str_or_null()?.and_then(Manifest::cached);
            schema.connections.push(ConnectionSchema {
                connection_id,
                source: None,
                display_name: Some(row.get(1)?),
                connector_key: Some(row.get(2)?),
                streams: Vec::new(),
                routes: manifest.map(|manifest| manifest.routes().to_vec()).unwrap_or_default(),
            });
        }
        let Some(last) = schema.connections.last_mut() else { continue };
        if let Some(stream) =
            row.get_ref(3)?.as_str_or_null()?.and_then(|stream| stream.parse::<StreamName>().ok())
        {
            let record_count = row.get::<_, i64>(4)?.try_into().ok();
            last.streams.push(StreamSchema { name: stream, record_count });
        }
    }
    Ok(schema)
}

/// Returns the row id of a connection.
pub(in crate::source::store) fn connection_row(
    sqlite: &Connection,
    id: &ConnectionId,
) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached("SELECT id FROM connections WHERE connection_id = ?1")?;
    statement.query_row([id.as_str()], |row| row.get(0)).optional()
}

//! The row of a connection.

use fetchwell_source::contract::NewConnection;
use rusqlite::{Connection, params};

/// Inserts or updates a connection. Returns its row id and manifest.
pub(crate) fn put_connection(
    sqlite: &Connection,
    connection: &NewConnection,
) -> Result<(i64, Option<String>), rusqlite::Error> {
    let NewConnection { connection_id, connector_key, display_name, manifest } = connection;
    sqlite.query_row(
        "INSERT INTO connections (connection_id, connector_key, display_name, manifest)
         VALUES (?1, ?2, coalesce(?3, ?1), ?4)
         ON CONFLICT (connection_id) DO UPDATE SET
             display_name = coalesce(?3, display_name), manifest = coalesce(?4, manifest)
         RETURNING id, manifest",
        params![connection_id.as_str(), connector_key, display_name, manifest],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

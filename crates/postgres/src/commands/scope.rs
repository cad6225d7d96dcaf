//! Looks up the names of a scope.

use deadpool_postgres::Transaction;
use fetchwell_core::handle::{RecordId, RecordScope, StreamName};
use fetchwell_source::contract::{ExportedStream, RecordRow, ScopeLookup};
use tokio_postgres::{Error, Row};

/// Returns the rows that a database has for the names of a scope.
pub(super) async fn look_up(
    transaction: &Transaction<'_>,
    scope: &RecordScope,
) -> Result<ScopeLookup, Error> {
    let sql = "SELECT id FROM fetchwell.connections WHERE connection_id = $1";
    let connection = transaction.query_opt(sql, &[&scope.connection.as_str()]).await?;
    let connection: Option<i64> = connection.map(|row| row.get(0));
    let mut known_connections = Vec::new();
    if connection.is_none() {
        let sql = "SELECT connection_id FROM fetchwell.connections ORDER BY id";
        known_connections = transaction.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect();
    }
    let sql = "SELECT id, name, record_count FROM fetchwell.streams WHERE connection = $1 ORDER BY id";
    let stream =
        |row: &Row| ExportedStream::new(row.get(0), row.get(1), row.get::<_, i64>(2).try_into().unwrap_or(0));
    let streams = transaction.query(sql, &[&connection]).await?.iter().map(stream).collect();
    let sql = "SELECT r.version, r.data IS NULL FROM fetchwell.records r JOIN fetchwell.streams s ON s.id = r.stream
         WHERE s.connection = $1 AND s.name = $2 AND r.key = $3";
    let names = (scope.stream.as_ref().map(StreamName::as_str), scope.record.as_ref().map(RecordId::as_str));
    let record = transaction.query_opt(sql, &[&connection, &names.0, &names.1]).await?;
    let record = record.map(|row| RecordRow { row: row.get(0), is_deleted: row.get(1) });
    Ok(ScopeLookup { connection, known_connections, streams, record })
}

//! Description of a store in PostgreSQL: its sizes, and the numbers of its records.

use serde::Serialize;
use tokio_postgres::Row;

use crate::source::contract::{ConnectionInfo, PostgresError, StreamInfo};
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::transaction::begin_read;

/// Description of a store in PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostgresInfo {
    /// Host, port and name of the database.
    pub database: String,
    /// Version of the server.
    pub server: String,
    /// Version of the tables.
    pub format: i32,
    /// Number of changes since the store was created.
    pub version: i64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records that `changes_since` tells of.
    pub deleted: u64,
    /// Sizes of the tables with their indexes.
    pub bytes: PostgresBytes,
    /// Connections in the order in which they were imported first.
    pub connections: Vec<ConnectionInfo>,
}

/// Sizes in bytes of the tables with their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PostgresBytes {
    /// Records with their indexes.
    pub records: u64,
    /// Words of records, for search.
    pub words: u64,
    /// All tables of fetchwell.
    pub total: u64,
}

/// Reads the description of a store. Nothing is written.
///
/// # Errors
///
/// The database cannot be read.
pub async fn postgres_info(pool: &PostgresPool) -> Result<PostgresInfo, PostgresError> {
    let mut connection = pool.connection().await?;
    let failed = |error| pool.failure(&error);
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let sql = "SELECT current_setting('server_version'), (SELECT max(version) FROM fetchwell.migrations),
            (SELECT version FROM fetchwell.store), pg_total_relation_size('fetchwell.records'),
            pg_total_relation_size('fetchwell.texts') + pg_total_relation_size('fetchwell.terms')
                + pg_total_relation_size('fetchwell.term_changes'),
            (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'fetchwell' AND c.relkind = 'r')";
    let store = transaction.query_one(sql, &[]).await.map_err(failed)?;
    let sql = "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count,
            (SELECT count(*) FROM fetchwell.records r WHERE r.stream = s.id)
         FROM fetchwell.connections c LEFT JOIN fetchwell.streams s ON s.connection = c.id ORDER BY c.id, s.id";
    let mut connections: Vec<ConnectionInfo> = Vec::new();
    for row in transaction.query(sql, &[]).await.map_err(failed)? {
        add(&mut connections, &row);
    }
    let streams = || connections.iter().flat_map(|connection| &connection.streams);
    let bytes = |at: usize| store.get::<_, i64>(at).unsigned_abs();
    let server: String = store.get(0);
    Ok(PostgresInfo {
        database: pool.url().to_string(),
        server: server.split(' ').next().unwrap_or_default().to_owned(),
        format: store.get(1),
        version: store.get(2),
        records: streams().map(|stream| stream.records).sum(),
        deleted: streams().map(|stream| stream.deleted).sum(),
        bytes: PostgresBytes { records: bytes(3), words: bytes(4), total: bytes(5) },
        connections,
    })
}

fn add(connections: &mut Vec<ConnectionInfo>, row: &Row) {
    let connection_id: String = row.get(0);
    if connections.last().is_none_or(|last| last.connection_id != connection_id) {
        let (display_name, connector_key) = (row.get(1), row.get(2));
        connections.push(ConnectionInfo { connection_id, display_name, connector_key, streams: Vec::new() });
    }
    let (Some(last), Some(name)) = (connections.last_mut(), row.get::<_, Option<String>>(3)) else { return };
    let records = row.get::<_, i64>(4).unsigned_abs();
    let rows = row.get::<_, i64>(5).unsigned_abs();
    last.streams.push(StreamInfo { name, records, deleted: rows.saturating_sub(records) });
}

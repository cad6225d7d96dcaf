//! Description of a store in PostgreSQL: its sizes, and the numbers of its records.

use fetchwell_source::contract::{ConnectionInfo, PostgresError, StoreInfo, StorePart, StreamInfo};
use tokio_postgres::Row;

use crate::pool::PostgresPool;
use crate::transaction::begin_read;

/// Reads the description of a store. Nothing is written.
pub(super) async fn postgres_info(pool: &PostgresPool) -> Result<StoreInfo, PostgresError> {
    let mut connection = pool.connection().await?;
    let failed = |error| pool.failure(&error);
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let sql = "SELECT current_setting('server_version'), (SELECT max(version) FROM fetchwell.migrations),
            (SELECT version FROM fetchwell.store), pg_total_relation_size('fetchwell.records'),
            pg_total_relation_size('fetchwell.texts') + pg_total_relation_size('fetchwell.term_runs')
                + pg_total_relation_size('fetchwell.term_blocks'),
            (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'fetchwell' AND c.relkind = 'r')";
    let store = transaction.query_one(sql, &[]).await.map_err(failed)?;
    let sql = "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count,
            (SELECT count(*) FROM fetchwell.records r WHERE r.stream = s.id)
         FROM fetchwell.connections c LEFT JOIN fetchwell.streams s ON s.connection = c.id ORDER BY c.id, s.id";
    let rows = transaction.query(sql, &[]).await.map_err(failed)?.iter().map(connection_of).collect();
    let bytes = [("records", 3), ("words", 4), ("total", 5)];
    let bytes = bytes.map(|(name, at)| StorePart { name, bytes: store.get::<_, i64>(at).unsigned_abs() });
    let server: String = store.get(0);
    Ok(StoreInfo {
        database: Some(pool.url().to_string()),
        server: server.split(' ').next().map(str::to_owned),
        bytes: bytes.to_vec(),
        ..StoreInfo::new(store.get::<_, i32>(1).into(), store.get(2), rows)
    })
}

/// Returns a connection with one of its streams.
fn connection_of(row: &Row) -> ConnectionInfo {
    let name: Option<String> = row.get(3);
    let stream = name.map(|name| StreamInfo::new(name, row.get(4), row.get(5)));
    ConnectionInfo {
        connection_id: row.get(0),
        display_name: row.get(1),
        connector_key: row.get(2),
        streams: stream.into_iter().collect(),
    }
}

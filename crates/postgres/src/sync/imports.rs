//! The imports that a database remembers.

use std::path::PathBuf;

use deadpool_postgres::Transaction;
use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::{
    ImportId, ImportStatus, NewConnection, NewImport, PostgresError, RememberedImport, Tally,
};
use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::pool::PostgresPool;
use crate::preparation::without_nul;
use crate::tables::{optional_text, text};
use crate::transaction::begin_read;

/// Returns the imports that a database remembers, in the order in which they were added. Nothing is written.
///
/// # Errors
///
/// The database cannot be read.
pub async fn postgres_imports(pool: &PostgresPool) -> Result<Vec<RememberedImport>, PostgresError> {
    let mut connection = pool.connection().await?;
    let read = async {
        let transaction = begin_read(&mut connection, pool.url()).await?;
        imports(transaction.client()).await
    };
    read.await.map_err(|error| pool.failure(&error))
}

/// Returns all imports in the order in which they were added.
pub(super) async fn imports(client: &Client) -> Result<Vec<RememberedImport>, Error> {
    let sql = "SELECT i.id, c.connection_id, c.connector_key, c.manifest, i.origin, i.kind, i.options,
             i.last_attempt, i.last_sync, i.added, i.changed, i.deleted, i.held, i.problem,
             (SELECT count(*) FROM fetchwell.import_items t WHERE t.import = i.id AND t.problem IS NOT NULL)
         FROM fetchwell.imports i JOIN fetchwell.connections c ON c.id = i.connection ORDER BY i.id";
    Ok(client.query(sql, &[]).await?.iter().filter_map(import_of).collect())
}

/// Reads an import. Returns `None` if its connection has no valid id.
fn import_of(row: &Row) -> Option<RememberedImport> {
    let owned = |column: usize| optional_text(row, column).map(str::to_owned);
    let time = |column: usize| -> Option<Timestamp> { optional_text(row, column)?.parse().ok() };
    let number = |column: usize| row.try_get::<_, i64>(column).unwrap_or_default().unsigned_abs();
    Some(RememberedImport {
        id: ImportId(row.try_get(0).ok()?),
        connection_id: text(row, 1).parse().ok()?,
        connector_key: text(row, 2).to_owned(),
        manifest: owned(3),
        settings: NewImport {
            origin: PathBuf::from(text(row, 4)),
            kind: text(row, 5).to_owned(),
            options: text(row, 6).to_owned(),
        },
        status: ImportStatus {
            last_attempt: time(7),
            last_sync: time(8),
            tally: Tally { added: number(9), changed: number(10), deleted: number(11), unchanged: 0 },
            held: number(12),
            problem: owned(13),
            unreadable: number(14),
        },
    })
}

/// Inserts or updates a connection. Returns its row id and manifest.
pub(super) async fn put_connection(
    transaction: &Transaction<'_>,
    connection: &NewConnection,
) -> Result<(i64, Option<String>), Error> {
    let NewConnection { connection_id, connector_key, display_name, manifest } = connection;
    let sql = "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name, manifest)
         VALUES ($1, $2, coalesce($3, $1), $4)
         ON CONFLICT (connection_id) DO UPDATE SET
             display_name = coalesce($3, connections.display_name), manifest = coalesce($4, connections.manifest)
         RETURNING id, manifest";
    let display_name = display_name.as_deref().map(without_nul);
    let values: [&(dyn ToSql + Sync); 4] =
        [&connection_id.as_str(), &without_nul(connector_key), &display_name, manifest];
    let row = transaction.query_one(sql, &values).await?;
    Ok((row.get(0), row.get(1)))
}

/// Inserts an import and its connection, or replaces the settings of that of the connection.
pub(super) async fn put_import(
    transaction: &Transaction<'_>,
    connection: &NewConnection,
    new: &NewImport,
) -> Result<ImportId, Error> {
    let (connection, _manifest) = put_connection(transaction, connection).await?;
    let (origin, NewImport { kind, options, .. }) = (new.origin.to_string_lossy(), new);
    let values: [&(dyn ToSql + Sync); 4] = [&connection, &origin, kind, options];
    // Items that were read with other settings are read again.
    let again =
        "UPDATE fetchwell.import_items SET stamp = NULL WHERE import IN (SELECT id FROM fetchwell.imports
         WHERE connection = $1 AND (origin <> $2 OR kind <> $3 OR options <> $4))";
    transaction.execute(again, &values).await?;
    let sql = "INSERT INTO fetchwell.imports (connection, origin, kind, options) VALUES ($1, $2, $3, $4)
         ON CONFLICT (connection) DO UPDATE SET origin = $2, kind = $3, options = $4 RETURNING id";
    Ok(ImportId(transaction.query_one(sql, &values).await?.get(0)))
}

/// Saves the result of a synchronization.
pub(super) async fn save_status(client: &Client, id: ImportId, status: &ImportStatus) -> Result<(), Error> {
    let ImportStatus { last_attempt, last_sync, tally, held, problem, .. } = status;
    let shown = |time: &Option<Timestamp>| time.map(|time| time.to_string());
    let number = |count: u64| saturated::<i64>(count);
    let sql =
        "UPDATE fetchwell.imports SET last_attempt = $2, last_sync = coalesce($3, last_sync), added = $4,
             changed = $5, deleted = $6, held = $7, problem = $8 WHERE id = $1";
    let problem = problem.as_deref().map(without_nul);
    let values: [&(dyn ToSql + Sync); 8] = [
        &id.0,
        &shown(last_attempt),
        &shown(last_sync),
        &number(tally.added),
        &number(tally.changed),
        &number(tally.deleted),
        &number(*held),
        &problem,
    ];
    client.execute(sql, &values).await.map(drop)
}

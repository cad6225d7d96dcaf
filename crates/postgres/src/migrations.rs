//! The tables and their versions. Each version is a file of SQL; a version is never changed after a release.
//!
//! Migrations run in one transaction under an advisory lock, so any number of processes can start on an empty database.

use deadpool_postgres::Object;
use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::PostgresError;
use tokio_postgres::{Client, Error};

use super::failure::failure;
use super::transaction::{begin_read, begin_write};
use super::url::PostgresUrl;

/// SQL of each version, from version 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_records.sql"),
    include_str!("migrations/0002_search.sql"),
    include_str!("migrations/0003_imports.sql"),
    include_str!("migrations/0004_large_stores.sql"),
    include_str!("migrations/0005_term_runs.sql"),
    include_str!("migrations/0006_columns.sql"),
];

/// Key of the advisory lock: `fwel` and `migr`.
pub(crate) const LOCK: i64 = 0x6677_656C_6D69_6772;

/// Version of the tables that this release reads and writes.
pub(crate) fn known_version() -> i32 {
    saturated::<i32>(MIGRATIONS.len())
}

/// Creates the tables, or brings them to this release's version.
///
/// # Errors
///
/// The tables are of a newer release, or the role may not change them.
pub(crate) async fn migrate(connection: &mut Object, url: &PostgresUrl) -> Result<(), PostgresError> {
    let failed = |error: Error| failure(url, &error);
    let database = || url.to_string();
    let transaction = begin_read(connection, url).await.map_err(failed)?;
    let found = found_version(transaction.client()).await.map_err(failed)?;
    if check(found, url)? {
        return Ok(());
    }
    let encoding: String =
        transaction.query_one("SELECT current_setting('server_encoding')", &[]).await.map_err(failed)?.get(0);
    drop(transaction);
    if encoding != "UTF8" {
        return Err(PostgresError::Encoding { database: database(), encoding });
    }
    let forbidden = |error: Error| match failure(url, &error) {
        PostgresError::NoPermission { .. } | PostgresError::ReadOnly { .. } => match found {
            None => PostgresError::NoTables { database: database() },
            Some(found) => PostgresError::Older { database: database(), found, known: known_version() },
        },
        other => other,
    };
    let transaction = begin_write(connection, url).await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    // Another process may have migrated the tables before this one had the lock.
    let found = found_version(transaction.client()).await.map_err(failed)?;
    if check(found, url)? {
        return Ok(());
    }
    if found.is_none() {
        // The owner of the database may have created the schema for a role that cannot.
        let exists = transaction
            .query_one("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'fetchwell')", &[])
            .await
            .map_err(failed)?;
        if !exists.get::<_, bool>(0) {
            transaction.batch_execute("CREATE SCHEMA fetchwell").await.map_err(forbidden)?;
        }
        let table = "CREATE TABLE fetchwell.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await.map_err(forbidden)?;
    }
    for (sql, version) in MIGRATIONS.iter().zip(1_i32..).filter(|(_, version)| found < Some(*version)) {
        transaction.batch_execute(sql).await.map_err(forbidden)?;
        transaction
            .execute("INSERT INTO fetchwell.migrations (version) VALUES ($1)", &[&version])
            .await
            .map_err(forbidden)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns true if no migration is missing.
fn check(found: Option<i32>, url: &PostgresUrl) -> Result<bool, PostgresError> {
    match found {
        Some(found) if found > known_version() => {
            Err(PostgresError::Newer { database: url.to_string(), found, known: known_version() })
        }
        found => Ok(found == Some(known_version())),
    }
}

/// Returns the version of the tables, or `None` if there are none.
async fn found_version(client: &Client) -> Result<Option<i32>, Error> {
    if !has_tables(client).await? {
        return Ok(None);
    }
    Ok(client.query_one("SELECT max(version) FROM fetchwell.migrations", &[]).await?.get(0))
}

/// Returns the versions of the tables with the times at which they were reached, in order.
pub(crate) async fn applied_versions(client: &Client) -> Result<Vec<(i32, String)>, Error> {
    if !has_tables(client).await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT version, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
         FROM fetchwell.migrations ORDER BY version";
    Ok(client.query(sql, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn has_tables(client: &Client) -> Result<bool, Error> {
    // Tables and not `to_regclass`: that function answers from a cache, which does not yet have the tables that another
    // process created before it released the lock.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'fetchwell' AND c.relname = 'migrations')";
    Ok(client.query_one(exists, &[]).await?.get(0))
}

//! The tables of documents and their versions. They exist only where pgvector can be used, so they have versions of their
//! own.

use deadpool_postgres::Object;
use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::PostgresError;
use tokio_postgres::{Client, Error, Row};

use crate::extension::state::{PGVECTOR_COLUMNS, PgvectorState};
use crate::failure::failure;
use crate::migrations::LOCK;
use crate::transaction::{begin_read, begin_write};
use crate::url::PostgresUrl;

/// SQL of each version, from version 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/documents/0001_documents.sql"),
    include_str!("../migrations/documents/0002_record_vectors.sql"),
];

/// State of the tables of documents.
struct Found {
    pgvector: PgvectorState,
    /// Version of the tables; `None` if there are none.
    version: Option<i32>,
    /// True if the role may create tables.
    is_writable: bool,
}

/// Version of the tables that this release reads and writes.
fn known_version() -> i32 {
    saturated::<i32>(MIGRATIONS.len())
}

/// Creates the tables of documents, or brings them to this release's version, if pgvector can be used. Creates the
/// extension if the role may. Without pgvector, or with a role that only reads, nothing changes: records do not need it.
///
/// # Errors
///
/// The tables are of a newer release.
pub(crate) async fn migrate_documents(
    connection: &mut Object,
    url: &PostgresUrl,
) -> Result<(), PostgresError> {
    let failed = |error: Error| failure(url, &error);
    let found = {
        let transaction = begin_read(connection, url).await.map_err(failed)?;
        found(transaction.client()).await.map_err(failed)?
    };
    if !is_missing(&found, url)? {
        return Ok(());
    }
    match migrate(connection, url).await {
        // Another role can do it later.
        Err(PostgresError::NoPermission { .. } | PostgresError::ReadOnly { .. }) => Ok(()),
        migrated => migrated,
    }
}

async fn migrate(connection: &mut Object, url: &PostgresUrl) -> Result<(), PostgresError> {
    let failed = |error: Error| failure(url, &error);
    let transaction = begin_write(connection, url).await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    // Another process may have created the tables before this one had the lock.
    let found = found(transaction.client()).await.map_err(failed)?;
    if !is_missing(&found, url)? {
        return Ok(());
    }
    transaction.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await.map_err(failed)?;
    use_extension(transaction.client()).await.map_err(failed)?;
    if found.version.is_none() {
        let table = "CREATE TABLE fetchwell.document_migrations
             (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await.map_err(failed)?;
    }
    for (sql, version) in MIGRATIONS.iter().zip(1_i32..).filter(|(_, version)| found.version < Some(*version))
    {
        transaction.batch_execute(sql).await.map_err(failed)?;
        let insert = "INSERT INTO fetchwell.document_migrations (version) VALUES ($1)";
        transaction.execute(insert, &[&version]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns true if a version is missing that can be applied.
fn is_missing(found: &Found, url: &PostgresUrl) -> Result<bool, PostgresError> {
    let known = known_version();
    if let Some(found) = found.version.filter(|found| *found > known) {
        return Err(PostgresError::Newer { database: url.to_string(), found, known });
    }
    let has_extension = match found.pgvector {
        PgvectorState::Created(_) => true,
        PgvectorState::NotCreated { can_create } => can_create,
        PgvectorState::Unavailable | PgvectorState::TooOld(_) => false,
    };
    Ok(found.version != Some(known) && found.is_writable && has_extension)
}

/// Returns the reason why there are no tables of documents of this release; `None` if there are.
pub(crate) async fn problem(client: &Client) -> Result<Option<String>, Error> {
    let Found { pgvector, version, .. } = found(client).await?;
    Ok(match (pgvector.problem(), version == Some(known_version())) {
        (Some(problem), _) => Some(problem),
        (None, true) => None,
        (None, false) => Some(
            "its tables of documents are missing or of an earlier release; run `fetchwell project list --store` on it once \
             with the role that owns the schema fetchwell"
                .to_owned(),
        ),
    })
}

/// Returns a SQL expression that is true if the role owns a table. Members of the owner and superusers count as owners.
/// `place` is a SQL expression for the name of the table. A table that does not exist has no owner.
pub(crate) fn owns_table(place: &str) -> String {
    format!(
        "coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass({place})), false)"
    )
}

async fn found(client: &Client) -> Result<Found, Error> {
    let sql = format!(
        "SELECT {PGVECTOR_COLUMNS},
             EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'fetchwell' AND c.relname = 'document_migrations'),
             NOT pg_is_in_recovery() AND NOT current_setting('default_transaction_read_only')::boolean
                 AND has_schema_privilege('fetchwell', 'CREATE')"
    );
    let row: Row = client.query_one(&sql, &[]).await?;
    let version = if row.get(3) {
        client.query_one("SELECT max(version) FROM fetchwell.document_migrations", &[]).await?.get(0)
    } else {
        None
    };
    Ok(Found { pgvector: PgvectorState::from_row(&row, 0), version, is_writable: row.get(4) })
}

/// Makes the types and operators of the extension visible in a transaction, whatever its schema is.
pub(crate) async fn use_extension(client: &Client) -> Result<(), Error> {
    client.query_one(USE_EXTENSION, &[]).await.map(drop)
}

/// Statement of [`use_extension`].
pub(crate) const USE_EXTENSION: &str =
    "SELECT set_config('search_path', quote_ident(n.nspname) || ', pg_catalog', true)
     FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'";

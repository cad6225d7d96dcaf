//! Versions of the tables, for `fetchwell store status` and `migrate`.

use fetchwell_source::contract::{PostgresError, TableVersions};

use crate::bulk::indexes::build_missing_indexes;
use crate::columns::{BuildLimits, build_columns, warn_not_built};
use crate::migrations::{applied_versions, known_version};
use crate::pool::PostgresPool;
use crate::terms::{drop_earlier_tables, merge_terms};
use crate::transaction::begin_read;

/// Reads the versions of the tables, and changes nothing.
pub(super) async fn table_versions(pool: &PostgresPool) -> Result<TableVersions, PostgresError> {
    let mut connection = pool.unchecked_connection().await?;
    let failed = |error| pool.failure(&error);
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let applied = applied_versions(transaction.client()).await.map_err(failed)?;
    Ok(TableVersions { found: applied.last().map(|(version, _)| *version), known: known_version(), applied })
}

/// Creates the tables, or brings them to the version of this release. Also builds missing indexes and columns, merges numbers of
/// words, and drops tables that only processes of an earlier release use, if nothing else was to be migrated. Returns the versions before and after.
pub(super) async fn migrate_tables(
    pool: &PostgresPool,
) -> Result<(TableVersions, TableVersions), PostgresError> {
    let before = table_versions(pool).await?;
    let mut connection = pool.connection().await?;
    build_missing_indexes(&mut connection, pool.url()).await.map_err(|error| pool.failure(&error))?;
    merge_terms(&mut connection, pool).await?;
    warn_not_built(build_columns(&mut connection, pool, BuildLimits::default()).await);
    if before.found == Some(before.known) {
        drop_earlier_tables(&mut connection, pool).await?;
    }
    drop(connection);
    Ok((before, table_versions(pool).await?))
}

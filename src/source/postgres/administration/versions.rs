//! Versions of the tables, for `fetchwell store status` and `migrate`.

use serde::Serialize;

use crate::source::contract::PostgresError;
use crate::source::postgres::bulk::indexes::build_missing_indexes;
use crate::source::postgres::migrations::{applied_versions, known_version};
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::search::terms::merge_terms;
use crate::source::postgres::transaction::begin_read;

/// Versions of the tables of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableVersions {
    /// Version of the tables; `None` if there are none.
    pub found: Option<i32>,
    /// Version that this release reads and writes.
    pub known: i32,
    /// Time at which each version was reached.
    pub applied: Vec<(i32, String)>,
}

impl TableVersions {
    /// Returns true if this release reads and writes the tables as they are.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.found == Some(self.known)
    }
}

/// Reads the versions of the tables, and changes nothing.
///
/// # Errors
///
/// The database cannot be read.
pub async fn table_versions(pool: &PostgresPool) -> Result<TableVersions, PostgresError> {
    let mut connection = pool.unchecked_connection().await?;
    let failed = |error| pool.failure(&error);
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let applied = applied_versions(transaction.client()).await.map_err(failed)?;
    Ok(TableVersions { found: applied.last().map(|(version, _)| *version), known: known_version(), applied })
}

/// Creates the tables, or brings them to the version of this release. Also builds missing indexes, and merges the pending
/// changes of words. Returns the versions before and after.
///
/// # Errors
///
/// The tables are of a newer release, or the role may not change them.
pub async fn migrate_tables(pool: &PostgresPool) -> Result<(TableVersions, TableVersions), PostgresError> {
    let before = table_versions(pool).await?;
    let mut connection = pool.connection().await?;
    build_missing_indexes(&mut connection, pool.url()).await.map_err(|error| pool.failure(&error))?;
    merge_terms(&mut connection, pool).await?;
    drop(connection);
    Ok((before, table_versions(pool).await?))
}

//! Opening the store of imports that stay current, a file or a database.

use std::path::Path;

use super::failure::Failure;
use super::imports::ImportStore;
use super::secret::postgres_pool;
use crate::config::Environment;
use crate::source::SyncTarget;
use crate::source::postgres::{PostgresPool, PostgresSyncStore, PostgresUrl};
use crate::source::store::{StoreError, SyncStore};

/// Returns the connections to the database that a path names; `None` for the path of a file.
pub(crate) fn database_at(path: &Path, environment: &Environment) -> Result<Option<PostgresPool>, Failure> {
    let Some(url) = PostgresUrl::in_place_of(path) else { return Ok(None) };
    let url = url.map_err(|error| Failure::usage(&error))?;
    Ok(Some(postgres_pool(&url, environment).map_err(StoreError::from)?))
}

/// Opens an existing store of imports. Called on a thread that is not one of a runtime.
pub(crate) fn open_sync_target(
    store: &ImportStore,
    environment: &Environment,
) -> Result<SyncTarget, Failure> {
    match store {
        ImportStore::File(path) => Ok(SyncStore::open(path)?.into()),
        ImportStore::Postgres(url) => open_database(url, environment),
    }
}

/// Opens a store of imports, and creates a file that does not exist.
pub(crate) fn create_sync_target(
    store: &ImportStore,
    environment: &Environment,
) -> Result<SyncTarget, Failure> {
    match store {
        ImportStore::File(path) => Ok(SyncStore::open_or_create(path)?.into()),
        ImportStore::Postgres(url) => open_database(url, environment),
    }
}

fn open_database(url: &PostgresUrl, environment: &Environment) -> Result<SyncTarget, Failure> {
    let pool = postgres_pool(url, environment).map_err(StoreError::from)?;
    Ok(SyncTarget::Postgres(Box::new(PostgresSyncStore::open(pool)?)))
}

//! The store of projects that a command means, a file or a database.

use crate::app::failure::Failure;
use crate::cli::backup::StorePlace;
use crate::source::documents::DocumentStore;
use crate::source::pdpp::DEFAULT_DEADLINE;
use crate::source::postgres::{PostgresPool, PostgresStore};
use crate::source::sqlite::SqliteStore;

/// Opens a store of projects.
pub(super) fn open(place: &StorePlace) -> Result<Box<dyn DocumentStore>, Failure> {
    match place {
        StorePlace::File(path) => {
            let name = "store".parse().map_err(|error| Failure::usage(&error))?;
            Ok(Box::new(SqliteStore::open(name, path)?))
        }
        StorePlace::Postgres(pool) => Ok(Box::new(database(pool)?)),
    }
}

/// Returns the store in a database. The first call connects.
pub(super) fn database(pool: &PostgresPool) -> Result<PostgresStore, Failure> {
    let name = "store".parse().map_err(|error| Failure::usage(&error))?;
    Ok(PostgresStore::new(name, pool.clone(), DEFAULT_DEADLINE))
}

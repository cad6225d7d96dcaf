//! The database that an import to its end writes to.

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{IndexProgress, NewConnection, StoreError};
use fetchwell_source::documents::{ChunkIds, Project};
use fetchwell_source::sync::{ImportTarget, ImportWriter};
use tokio::runtime::Handle;

use super::tables::PostgresImportTables;
use super::waiter::Waiter;
use crate::administration::import_in_progress;
use crate::documents::put_copied_project;
use crate::pool::PostgresPool;

/// A database that an import writes to. Its methods block, so they are called on a thread that is not one of the runtime.
#[derive(Debug, Clone)]
pub struct PostgresTarget {
    waiter: Waiter,
}

impl PostgresTarget {
    /// Creates the target with connections to a database, which a runtime drives on another thread than that of the import.
    #[must_use]
    pub fn new(pool: PostgresPool, runtime: Handle) -> Self {
        Self { waiter: Waiter::new(pool, runtime) }
    }
}

impl ImportTarget for PostgresTarget {
    fn import_in_progress(&self, connection: &ConnectionId) -> Result<Option<String>, StoreError> {
        let holder = import_in_progress(self.waiter.pool(), self.waiter.runtime(), connection)?;
        let address = self.waiter.address();
        Ok(holder.map(|holder| format!("{holder} imports into `{connection}` of {address}")))
    }

    fn put_project(&self, project: &Project) -> Result<(), StoreError> {
        put_copied_project(self.waiter.pool(), project)
    }

    fn open(
        &self,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
        _progress: IndexProgress<'_>,
    ) -> Result<ImportWriter, StoreError> {
        Ok(PostgresImportTables::open_connection(self.waiter.clone(), connection, chunks)?.into_writer())
    }
}

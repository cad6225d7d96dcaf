//! The database that an import to its end writes to.

use tokio::runtime::Handle;

use super::tables::PostgresImportTables;
use super::waiter::Waiter;
use crate::handle::ConnectionId;
use crate::source::contract::{IndexProgress, NewConnection, StoreError};
use crate::source::documents::{ChunkIds, Project};
use crate::source::postgres::administration::import_in_progress;
use crate::source::postgres::documents::put_copied_project;
use crate::source::postgres::pool::PostgresPool;
use crate::source::sync::{ImportTarget, ImportWriter};

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

//! A database with synchronized imports.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_postgres::Error;

use super::{imports, items};
use crate::handle::ConnectionId;
use crate::source::contract::{
    ImportId, ImportStatus, ItemId, KnownItem, NewConnection, NewImport, PostgresError, RememberedImport,
    StoreError,
};
use crate::source::documents::{DOCS_KIND, KnownDocument};
use crate::source::postgres::administration::{Job, Lease, LeaseAttempt};
use crate::source::postgres::document_rows::is_project;
use crate::source::postgres::documents::known_documents;
use crate::source::postgres::extension::problem;
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::transaction::begin_write;
use crate::source::postgres::url::PostgresUrl;
use crate::source::postgres::writer::INDEX_TIMEOUT;

/// Maximum time of a step, in which it may also wait for the batch of another import.
const STEP_TIMEOUT: Duration = Duration::from_secs(300);

/// Number of attempts to get a lease, and the pause between two. The server may not have noticed the end of the last session that
/// had it.
const LEASE_ATTEMPTS: u32 = 5;
const LEASE_PAUSE: Duration = Duration::from_millis(200);

/// A database with synchronized imports. Its methods block, so they are called on a thread that is not one of a runtime.
pub struct PostgresSyncStore {
    pool: PostgresPool,
    /// Runtime that drives the connections; `None` while the store is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for PostgresSyncStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSyncStore").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Drop for PostgresSyncStore {
    fn drop(&mut self) {
        // A runtime that is dropped within another one would wait for its threads there.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresSyncStore {
    /// Connects, and creates the tables if they do not exist. Nothing else uses the connections of `pool`.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn open(pool: PostgresPool) -> Result<Self, StoreError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let unavailable = |_error| PostgresError::Timeout { database: pool.url().to_string() };
        let runtime = runtime.map_err(unavailable)?;
        let store = Self { pool, runtime: Some(runtime) };
        drop(store.connection()?);
        Ok(store)
    }

    /// Returns the address of the database in place of a path.
    pub(super) fn place(&self) -> PathBuf {
        self.pool.url().to_string().into()
    }

    /// Returns a connection.
    pub(super) fn connection(&self) -> Result<Object, StoreError> {
        self.wait(async { self.pool.connection().await })
    }

    /// Runs a step in a transaction of its own.
    pub(super) fn run<Answer>(
        &self,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<Answer, Error>,
    ) -> Result<Answer, StoreError> {
        self.wait(async {
            let mut connection = self.pool.connection().await?;
            let run = async {
                let transaction = begin_write(&mut connection, self.pool.url()).await?;
                let answer = step(&transaction).await?;
                transaction.commit().await?;
                Ok(answer)
            };
            run.await.map_err(|error| self.pool.failure(&error))
        })
    }

    /// Waits for a step on a thread that is not one of a runtime.
    pub(super) fn wait<Answer>(
        &self,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        self.wait_within(STEP_TIMEOUT, step)
    }

    /// Waits for an index of vectors or a merge of words, which can take long.
    pub(super) fn wait_long<Answer>(
        &self,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        self.wait_within(INDEX_TIMEOUT, step)
    }

    fn wait_within<Answer>(
        &self,
        limit: Duration,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        let late = || PostgresError::Timeout { database: self.pool.url().to_string() };
        let Some(runtime) = &self.runtime else { return Err(late().into()) };
        let answer = runtime.block_on(async { timeout(limit, step).await });
        Ok(answer.unwrap_or_else(|_elapsed| Err(late()))?)
    }

    /// Returns the connections to the database.
    pub(super) fn pool(&self) -> &PostgresPool {
        &self.pool
    }

    pub(super) fn url(&self) -> &PostgresUrl {
        self.pool.url()
    }

    /// Converts an error of a statement.
    pub(super) fn failure(&self, error: &Error) -> PostgresError {
        self.pool.failure(error)
    }

    /// Returns the imports that the store remembers, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        self.run(async |database| imports::imports(database.client()).await)
    }

    /// Remembers an import of a connection, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn remember(
        &self,
        connection: &NewConnection,
        new: &NewImport,
    ) -> Result<RememberedImport, StoreError> {
        let connection_id = &connection.connection_id;
        let is_project = self.run(async |database| is_project(database.client(), connection_id).await)?;
        match (is_project, new.kind == DOCS_KIND) {
            (true, false) => return Err(StoreError::IsProject(connection_id.to_string())),
            (false, true) => return Err(StoreError::NoProject(connection_id.to_string())),
            (true, true) | (false, false) => {}
        }
        let import = self.run(async |database| {
            let id = imports::put_import(database, connection, new).await?;
            let all = imports::imports(database.client()).await?;
            Ok(all.into_iter().find(|import| import.id == id))
        });
        import?.ok_or_else(|| StoreError::ImportRemoved(self.place()))
    }

    /// Schedules the items of an import of which records were removed to be read again, so that the next synchronization
    /// brings these records back.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn restore_removed(&self, import: ImportId) -> Result<(), StoreError> {
        self.run(async |database| items::read_removed_again(database.client(), import).await)
    }

    /// Returns the documents of the project that has the id of a connection, or `None` if the connection is no project.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or has no pgvector.
    pub fn known_documents(
        &self,
        connection: &ConnectionId,
    ) -> Result<Option<Vec<KnownDocument>>, StoreError> {
        if let Some(problem) = self.run(async |database| problem(database.client()).await)? {
            let database = self.pool.url().to_string();
            return Err(PostgresError::NoPgvector { database, problem }.into());
        }
        self.run(async |database| known_documents(database.client(), connection.as_str()).await)
    }

    /// Acquires the lease of imports into a connection, or returns `None` if another process has it.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn try_lock(&self, connection: &ConnectionId) -> Result<Option<Lease>, StoreError> {
        self.try_lease(Job::Import(connection), LEASE_ATTEMPTS)
    }

    /// Acquires the lease to follow an import, or returns `None` if another process has it.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn try_follow(&self, connection: &ConnectionId) -> Result<Option<Lease>, StoreError> {
        self.try_lease(Job::Follow(connection), 1)
    }

    /// Returns true if this process still holds a lease.
    #[must_use]
    pub fn confirm(&self, lease: &Lease) -> bool {
        self.wait(async { Ok(lease.confirm().await) }).unwrap_or(false)
    }

    fn try_lease(&self, job: Job<'_>, attempts: u32) -> Result<Option<Lease>, StoreError> {
        self.wait(async {
            for attempt in 1..=attempts {
                // The holder is read first, because an attempt opens a connection of its own.
                if Lease::holder(&self.pool, job).await?.is_none()
                    && let LeaseAttempt::Taken(lease) = Lease::try_take(&self.pool, job).await?
                {
                    return Ok(Some(lease));
                }
                if attempt < attempts {
                    sleep(LEASE_PAUSE).await;
                }
            }
            Ok(None)
        })
    }

    /// Returns the items of an import by path.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError> {
        self.run(async |database| items::items(database.client(), import).await)
    }

    /// Returns the paths of the items that could not be read completely, with the reasons.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError> {
        self.run(async |database| items::unreadable(database.client(), import).await)
    }

    /// Returns the given items, and all that share a record with one of them, directly or through others.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn related(
        &self,
        import: ImportId,
        items: &BTreeSet<ItemId>,
    ) -> Result<BTreeSet<ItemId>, StoreError> {
        self.run(async |database| items::related(database.client(), import, items).await)
    }

    /// Saves the result of a synchronization.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError> {
        self.run(async |database| imports::save_status(database.client(), import, status).await)
    }
}

//! A database with synchronized imports.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{
    ImportId, ImportStatus, ItemId, KnownItem, NewConnection, NewImport, PostgresError, RememberedImport,
    StoreError,
};
use fetchwell_source::documents::KnownDocument;
use fetchwell_source::sync::{ImportLock, ImportWriter, SyncStore};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::tables::PostgresImportTables;
use super::waiter::Waiter;
use super::{imports, items};
use crate::administration::{Job, Lease, LeaseAttempt};
use crate::document_rows::is_project;
use crate::documents::known_documents;
use crate::extension::problem;
use crate::pool::PostgresPool;

/// Number of attempts to get a lease, and the pause between two. The server may not have noticed the end of the last session that
/// had it.
const LEASE_ATTEMPTS: u32 = 5;
const LEASE_PAUSE: Duration = Duration::from_millis(200);

/// A database with synchronized imports. Its methods block, so they are called on a thread that is not one of a runtime.
#[derive(Debug)]
pub struct PostgresSyncStore {
    /// Right to follow an import. Dropped before the connections.
    following: Mutex<Option<Lease>>,
    waiter: Waiter,
}

/// Lease of imports into a connection.
#[derive(Debug)]
struct PostgresImportLock {
    lease: Arc<Lease>,
    waiter: Waiter,
}

impl PostgresSyncStore {
    /// Connects, and creates the tables if they do not exist. Nothing else uses the connections of `pool`.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub fn open(pool: PostgresPool) -> Result<Self, StoreError> {
        let store = Self { following: Mutex::new(None), waiter: Waiter::with_own_runtime(pool)? };
        drop(store.waiter.connection()?);
        Ok(store)
    }

    fn try_lease(&self, job: Job<'_>, attempts: u32) -> Result<Option<Lease>, StoreError> {
        let pool = self.waiter.pool();
        self.waiter.wait(async {
            for attempt in 1..=attempts {
                // The holder is read first, because an attempt opens a connection of its own.
                if Lease::holder(pool, job).await?.is_none()
                    && let LeaseAttempt::Taken(lease) = Lease::try_take(pool, job).await?
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
}

impl SyncStore for PostgresSyncStore {
    fn place(&self) -> PathBuf {
        self.waiter.place()
    }

    fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        self.waiter.run(async |database| imports::imports(database.client()).await)
    }

    fn is_project(&self, connection: &ConnectionId) -> Result<bool, StoreError> {
        self.waiter.run(async |database| is_project(database.client(), connection).await)
    }

    fn put_import(
        &self,
        connection: &NewConnection,
        new: &NewImport,
    ) -> Result<Option<RememberedImport>, StoreError> {
        self.waiter.run(async |database| {
            let id = imports::put_import(database, connection, new).await?;
            let all = imports::imports(database.client()).await?;
            Ok(all.into_iter().find(|import| import.id == id))
        })
    }

    fn restore_removed(&self, import: ImportId) -> Result<(), StoreError> {
        self.waiter.run(async |database| items::read_removed_again(database.client(), import).await)
    }

    fn known_documents(&self, connection: &ConnectionId) -> Result<Option<Vec<KnownDocument>>, StoreError> {
        if let Some(problem) = self.waiter.run(async |database| problem(database.client()).await)? {
            return Err(PostgresError::NoPgvector { database: self.waiter.address(), problem }.into());
        }
        self.waiter.run(async |database| known_documents(database.client(), connection.as_str()).await)
    }

    fn follow(&self, connection: &ConnectionId) -> Result<bool, StoreError> {
        let mut following = self.following.lock();
        if let Some(lease) = &*following
            && self.waiter.wait(async { Ok(lease.confirm().await) }).unwrap_or(false)
        {
            return Ok(true);
        }
        // The old lease is released first, because its session could still block the new attempt.
        *following = None;
        *following = self.try_lease(Job::Follow(connection), 1)?;
        Ok(following.is_some())
    }

    fn try_lock(&self, import: &RememberedImport) -> Result<Option<Box<dyn ImportLock>>, StoreError> {
        let lease = self.try_lease(Job::Import(&import.connection_id), LEASE_ATTEMPTS)?;
        Ok(lease.map(|lease| {
            let lock = PostgresImportLock { lease: Arc::new(lease), waiter: self.waiter.clone() };
            Box::new(lock) as Box<dyn ImportLock>
        }))
    }

    fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError> {
        self.waiter.run(async |database| items::items(database.client(), import).await)
    }

    fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError> {
        self.waiter.run(async |database| items::unreadable(database.client(), import).await)
    }

    fn related(&self, import: ImportId, items: &BTreeSet<ItemId>) -> Result<BTreeSet<ItemId>, StoreError> {
        self.waiter.run(async |database| items::related(database.client(), import, items).await)
    }

    fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError> {
        self.waiter.run(async |database| imports::save_status(database.client(), import, status).await)
    }
}

impl ImportLock for PostgresImportLock {
    fn writer(&self, import: &RememberedImport) -> Result<ImportWriter, StoreError> {
        let lease = Arc::clone(&self.lease);
        Ok(PostgresImportTables::open_import(self.waiter.clone(), import, lease)?.into_writer())
    }
}

//! The store of an import that is kept current. Only one process at a time follows an import in a database.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::super::failure::Failure;
use super::super::secret::postgres_pool;
use crate::config::{Environment, SourcePlace};
use crate::handle::ConnectionId;
use crate::source::contract::{RememberedImport, StoreError};
use crate::source::postgres::{Lease, PostgresSyncStore, PostgresUrl, postgres_imports};
use crate::source::sqlite::SqliteSyncStore;
use crate::source::{ImportTarget, SyncTarget};

/// The place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportStore {
    File(PathBuf),
    Postgres(PostgresUrl),
}

/// An open store, with the lease to follow an import of it.
pub(super) struct OpenImportStore {
    // Dropped before the connections of the store.
    lease: Option<Lease>,
    pub(super) target: SyncTarget,
}

impl ImportStore {
    /// Returns the store of a source, or `None` for a record server.
    pub(crate) fn from_source(place: &SourcePlace) -> Option<Self> {
        match place {
            SourcePlace::Store { path } => Some(Self::File(path.clone())),
            SourcePlace::Postgres { url, .. } => Some(Self::Postgres(url.clone())),
            SourcePlace::Provider { .. } => None,
        }
    }

    /// Returns the store at the path of a file or the URL of a database.
    ///
    /// # Errors
    ///
    /// The URL is not valid.
    pub(crate) fn from_place(place: &Path) -> Result<Self, Failure> {
        Ok(match PostgresUrl::in_place_of(place) {
            None => Self::File(place.to_owned()),
            Some(url) => Self::Postgres(url.map_err(|error| Failure::usage(&error))?),
        })
    }

    /// Returns the imports that the store remembers. A role that may only read the database is enough.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn imports(
        &self,
        environment: &Environment,
    ) -> Result<Vec<RememberedImport>, StoreError> {
        match self {
            Self::File(path) => SqliteSyncStore::open(path)?.imports(),
            Self::Postgres(url) => Ok(postgres_imports(&postgres_pool(url, environment)?).await?),
        }
    }

    /// Returns the path of a file, or the address of a database.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Postgres(url) => url.to_string().into(),
        }
    }

    /// Opens the store, and creates it if it does not exist. Must not be called on a thread of an async runtime.
    pub(super) fn open(&self, environment: &Environment) -> Result<OpenImportStore, StoreError> {
        Ok(OpenImportStore { lease: None, target: self.create_target(environment)? })
    }

    /// Opens an existing store. Must not be called on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// The store does not exist or cannot be used.
    pub(crate) fn open_target(&self, environment: &Environment) -> Result<SyncTarget, StoreError> {
        self.target(environment, SqliteSyncStore::open)
    }

    /// Opens the store, and creates a file that does not exist. Must not be called on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub(crate) fn create_target(&self, environment: &Environment) -> Result<SyncTarget, StoreError> {
        self.target(environment, SqliteSyncStore::open_or_create)
    }

    /// Returns the target of an import that runs on another thread than those of the runtime, which the caller is in.
    ///
    /// # Errors
    ///
    /// The password of the database cannot be read.
    pub(crate) fn import_target(&self, environment: &Environment) -> Result<ImportTarget, StoreError> {
        Ok(match self {
            Self::File(path) => ImportTarget::File(path.clone()),
            Self::Postgres(url) => {
                ImportTarget::Postgres { pool: postgres_pool(url, environment)?, runtime: Handle::current() }
            }
        })
    }

    fn target(
        &self,
        environment: &Environment,
        open_file: fn(&Path) -> Result<SqliteSyncStore, StoreError>,
    ) -> Result<SyncTarget, StoreError> {
        match self {
            Self::File(path) => Ok(open_file(path)?.into()),
            Self::Postgres(url) => {
                let pool = postgres_pool(url, environment)?;
                Ok(SyncTarget::Postgres(Box::new(PostgresSyncStore::open(pool)?)))
            }
        }
    }
}

impl OpenImportStore {
    /// Returns true if this process follows the import of a connection. Always true for a file, in which processes take turns.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub(super) fn follows(&mut self, connection: &ConnectionId) -> Result<bool, StoreError> {
        let SyncTarget::Postgres(store) = &self.target else { return Ok(true) };
        if self.lease.as_ref().is_some_and(|lease| store.confirm(lease)) {
            return Ok(true);
        }
        // The old lease is released first, because its session could still block the new attempt.
        self.lease = None;
        self.lease = store.try_follow(connection)?;
        Ok(self.lease.is_some())
    }
}

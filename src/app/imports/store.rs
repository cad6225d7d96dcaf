//! The store of an import that is kept current. In a database, one process of all replicas does it.

use std::path::{Path, PathBuf};

use super::super::secret::postgres_pool;
use crate::config::{Environment, SourcePlace};
use crate::handle::ConnectionId;
use crate::source::SyncTarget;
use crate::source::postgres::{Lease, PostgresSyncStore, PostgresUrl};
use crate::source::store::{StoreError, SyncStore};

/// The place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportStore {
    File(PathBuf),
    Postgres(PostgresUrl),
}

/// An open store, with the right to keep an import of it current.
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
    pub(crate) fn from_place(place: &Path) -> Result<Self, StoreError> {
        Ok(match PostgresUrl::in_place_of(place) {
            None => Self::File(place.to_owned()),
            Some(url) => Self::Postgres(url?),
        })
    }

    /// Returns the path of a file. That of a database is its address.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Postgres(url) => url.to_string().into(),
        }
    }

    /// Opens the store, and creates it if it does not exist. Called on a thread that is not one of a runtime.
    pub(super) fn open(&self, environment: &Environment) -> Result<OpenImportStore, StoreError> {
        let target = match self {
            Self::File(path) => SyncStore::open_or_create(path)?.into(),
            Self::Postgres(url) => {
                let pool = postgres_pool(url, environment)?;
                SyncTarget::Postgres(Box::new(PostgresSyncStore::open(pool)?))
            }
        };
        Ok(OpenImportStore { lease: None, target })
    }
}

impl OpenImportStore {
    /// Returns true if this process keeps the import of a connection current. In a file every process may, one after the other.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub(super) fn follows(&mut self, connection: &ConnectionId) -> Result<bool, StoreError> {
        let SyncTarget::Postgres(store) = &self.target else { return Ok(true) };
        if self.lease.as_ref().is_some_and(|lease| store.confirm(lease)) {
            return Ok(true);
        }
        // Released first, so that this process does not wait for itself.
        self.lease = None;
        self.lease = store.try_follow(connection)?;
        Ok(self.lease.is_some())
    }
}

//! The place of a store that imports write to.

use std::fmt;
use std::path::{Path, PathBuf};

use fetchwell_postgres::{PostgresSyncStore, PostgresTarget, PostgresUrl, postgres_imports};
use fetchwell_source::contract::{RememberedImport, StoreError};
use fetchwell_source::{ImportTarget, SyncStore};
use fetchwell_sqlite::{SqliteSyncStore, SqliteTarget};
use tokio::runtime::Handle;

use super::super::failure::Failure;
use super::super::secret::postgres_pool;
use crate::config::{Environment, SourcePlace};

/// The place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportStore {
    File(PathBuf),
    Postgres(PostgresUrl),
}

impl fmt::Display for ImportStore {
    /// Writes the path or the URL, without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

impl ImportStore {
    /// Returns the store of a source, or `None` for a record server.
    pub(crate) fn from_source(place: &SourcePlace) -> Option<Self> {
        let file = place.file().map(|path| Self::File(path.to_owned()));
        file.or_else(|| place.database().map(|url| Self::Postgres(url.clone())))
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

    /// Opens an existing store. Must not be called on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// The store does not exist or cannot be used.
    pub(crate) fn open(&self, environment: &Environment) -> Result<Box<dyn SyncStore>, StoreError> {
        self.open_with(environment, SqliteSyncStore::open)
    }

    /// Opens the store, and creates a file that does not exist. Must not be called on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub(crate) fn open_or_create(&self, environment: &Environment) -> Result<Box<dyn SyncStore>, StoreError> {
        self.open_with(environment, SqliteSyncStore::open_or_create)
    }

    /// Returns the target of an import that runs on another thread than those of the runtime, which the caller is in.
    ///
    /// # Errors
    ///
    /// The password of the database cannot be read.
    pub(crate) fn import_target(
        &self,
        environment: &Environment,
    ) -> Result<Box<dyn ImportTarget>, StoreError> {
        Ok(match self {
            Self::File(path) => Box::new(SqliteTarget::new(path)),
            Self::Postgres(url) => {
                Box::new(PostgresTarget::new(postgres_pool(url, environment)?, Handle::current()))
            }
        })
    }

    fn open_with(
        &self,
        environment: &Environment,
        open_file: fn(&Path) -> Result<SqliteSyncStore, StoreError>,
    ) -> Result<Box<dyn SyncStore>, StoreError> {
        Ok(match self {
            Self::File(path) => Box::new(open_file(path)?),
            Self::Postgres(url) => Box::new(PostgresSyncStore::open(postgres_pool(url, environment)?)?),
        })
    }
}

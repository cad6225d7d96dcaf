//! A store with synchronized imports.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::contract::{
    ImportId, ImportStatus, ItemId, KnownItem, NewConnection, NewImport, RememberedImport, StoreError,
};
use fetchwell_source::documents::KnownDocument;
use fetchwell_source::sync::{ImportLock, SyncStore};
use rusqlite::OptionalExtension;

use super::imports::{self, has_tables};
use super::items;
use super::lock::SqliteImportLock;
use super::shared::SharedStore;
use crate::database::Database;
use crate::documents::{DocumentWriter, is_project, known_documents};
use crate::import::put_connection;

/// A store with synchronized imports. Keeps what was verified of its search index between synchronizations.
#[derive(Debug)]
pub struct SqliteSyncStore {
    pub(super) shared: Arc<SharedStore>,
}

impl SqliteSyncStore {
    /// Opens an existing store.
    ///
    /// # Errors
    ///
    /// The store cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { shared: Arc::new(Database::open(path)?.into()) })
    }

    /// Opens a store, or creates one if there is no file.
    ///
    /// # Errors
    ///
    /// The store cannot be opened or created.
    pub fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        let (database, _lock) = Database::open_or_create(path)?;
        Ok(Self { shared: Arc::new(database.into()) })
    }
}

impl SyncStore for SqliteSyncStore {
    fn path(&self) -> Option<&Path> {
        Some(self.shared.path())
    }

    fn place(&self) -> PathBuf {
        self.shared.path().to_owned()
    }

    fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        self.shared
            .database
            .read(|sqlite| if has_tables(sqlite)? { imports::imports(sqlite) } else { Ok(Vec::new()) })
    }

    fn is_project(&self, connection: &ConnectionId) -> Result<bool, StoreError> {
        self.shared.database.read(|sqlite| is_project(sqlite, connection))
    }

    fn put_import(
        &self,
        connection: &NewConnection,
        new: &NewImport,
    ) -> Result<Option<RememberedImport>, StoreError> {
        self.shared.write(|sqlite| {
            sqlite.execute_batch(include_str!("schema.sql"))?;
            let (row, _manifest) = put_connection(sqlite, connection)?;
            let id = imports::put_import(sqlite, row, new)?;
            imports::import(sqlite, id)
        })
    }

    fn restore_removed(&self, import: ImportId) -> Result<(), StoreError> {
        self.shared.write(|sqlite| items::read_removed_again(sqlite, import))
    }

    fn known_documents(&self, connection: &ConnectionId) -> Result<Option<Vec<KnownDocument>>, StoreError> {
        self.shared.database.read(|sqlite| {
            let sql = "SELECT id FROM connections WHERE connection_id = ?1";
            let row = sqlite.query_row(sql, [connection.as_str()], |row| row.get(0)).optional()?;
            let Some(row) = row else { return Ok(None) };
            let project = DocumentWriter::find(sqlite, row)?;
            project.map(|project| known_documents(sqlite, project.project())).transpose()
        })
    }

    fn try_lock(&self, import: &RememberedImport) -> Result<Option<Box<dyn ImportLock>>, StoreError> {
        let lock = SqliteImportLock::try_take(&self.shared, import.id)?;
        Ok(lock.map(|lock| Box::new(lock) as Box<dyn ImportLock>))
    }

    fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError> {
        self.shared.database.read(|sqlite| items::items(sqlite, import))
    }

    fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError> {
        self.shared.database.read(|sqlite| items::unreadable(sqlite, import))
    }

    fn related(&self, import: ImportId, items: &BTreeSet<ItemId>) -> Result<BTreeSet<ItemId>, StoreError> {
        self.shared.database.read(|sqlite| items::related(sqlite, import, items))
    }

    fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError> {
        self.shared.write(|sqlite| imports::save_status(sqlite, import, status))
    }
}

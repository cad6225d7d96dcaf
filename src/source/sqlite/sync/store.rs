//! A store with synchronized imports.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::imports::{self, has_tables};
use super::items;
use super::lock::SqliteSyncLock;
use crate::handle::ConnectionId;
use crate::source::contract::{
    ImportId, ImportStatus, ItemId, KnownItem, NewConnection, NewImport, RememberedImport, StoreError,
};
use crate::source::documents::{DOCS_KIND, KnownDocument};
use crate::source::sqlite::database::Database;
use crate::source::sqlite::documents::{DocumentWriter, is_project, known_documents};
use crate::source::sqlite::fulltext::index::{CurrentIndex, IndexProgress, IndexState, Verification};
use crate::source::sqlite::import::put_connection;
use crate::source::sqlite::traces::is_removal_unfinished;
use crate::source::sqlite::write_lock::{LOCK_TIMEOUT, WriteLock};

/// A store with synchronized imports. Keeps what was verified of its search index between synchronizations.
#[derive(Debug)]
pub struct SqliteSyncStore {
    pub(super) database: Database,
    index: CurrentIndex,
}

impl SqliteSyncStore {
    /// Opens an existing store.
    ///
    /// # Errors
    ///
    /// The store cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Database::open(path)?, index: CurrentIndex::default() })
    }

    /// Opens a store, or creates one if there is no file.
    ///
    /// # Errors
    ///
    /// The store cannot be opened or created.
    pub fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        let (database, _lock) = Database::open_or_create(path)?;
        Ok(Self { database, index: CurrentIndex::default() })
    }

    /// Returns the path of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Returns the imports that the store remembers, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        self.database
            .read(|sqlite| if has_tables(sqlite)? { imports::imports(sqlite) } else { Ok(Vec::new()) })
    }

    /// Remembers an import of a connection, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn remember(
        &self,
        connection: &NewConnection,
        new: &NewImport,
    ) -> Result<RememberedImport, StoreError> {
        let connection_id = &connection.connection_id;
        match (self.database.read(|sqlite| is_project(sqlite, connection_id))?, new.kind == DOCS_KIND) {
            (true, false) => return Err(StoreError::IsProject(connection_id.to_string())),
            (false, true) => return Err(StoreError::NoProject(connection_id.to_string())),
            (true, true) | (false, false) => {}
        }
        let _lock = self.write_lock()?;
        let mut sqlite = self.database.writer()?;
        let mut remember = || {
            let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(include_str!("schema.sql"))?;
            let (row, _manifest) = put_connection(&transaction, connection)?;
            let id = imports::put_import(&transaction, row, new)?;
            let import = imports::import(&transaction, id)?;
            transaction.commit()?;
            Ok(import)
        };
        let import: Result<_, rusqlite::Error> = remember();
        import
            .map_err(|error| self.database.error(&error))?
            .ok_or_else(|| StoreError::ImportRemoved(self.path().to_owned()))
    }

    /// Schedules the items of an import of which records were removed to be read again, so that the next synchronization
    /// brings these records back.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn restore_removed(&self, import: ImportId) -> Result<(), StoreError> {
        self.write(|sqlite| items::read_removed_again(sqlite, import))
    }

    /// Returns the documents of the project that has the id of a connection, or `None` if the connection is no project.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn known_documents(
        &self,
        connection: &ConnectionId,
    ) -> Result<Option<Vec<KnownDocument>>, StoreError> {
        self.database.read(|sqlite| {
            let sql = "SELECT id FROM connections WHERE connection_id = ?1";
            let row = sqlite.query_row(sql, [connection.as_str()], |row| row.get(0)).optional()?;
            let Some(row) = row else { return Ok(None) };
            let project = DocumentWriter::find(sqlite, row)?;
            project.map(|project| known_documents(sqlite, project.project())).transpose()
        })
    }

    /// Acquires the lock of an import, or returns `None` if it is being synchronized.
    ///
    /// # Errors
    ///
    /// The lock file cannot be created.
    pub fn try_lock(&self, import: ImportId) -> Result<Option<SqliteSyncLock>, StoreError> {
        SqliteSyncLock::try_take(self.path(), import)
    }

    /// Returns the items of an import by path.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError> {
        self.database.read(|sqlite| items::items(sqlite, import))
    }

    /// Returns the paths of the items that could not be read completely, with the reasons.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError> {
        self.database.read(|sqlite| items::unreadable(sqlite, import))
    }

    /// Returns the given items, and all that share a record with one of them, directly or through others.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn related(
        &self,
        import: ImportId,
        items: &BTreeSet<ItemId>,
    ) -> Result<BTreeSet<ItemId>, StoreError> {
        self.database.read(|sqlite| items::related(sqlite, import, items))
    }

    /// Saves the result of a synchronization.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError> {
        self.write(|sqlite| imports::save_status(sqlite, import, status))
    }

    /// Adds all changes to the search index. Another process that writes to the store does it otherwise, or the next
    /// search. Calls `progress` with the numbers of added and of missing changes.
    ///
    /// # Errors
    ///
    /// The index cannot be written.
    pub fn complete_index(&self, progress: IndexProgress<'_>) -> Result<IndexState, StoreError> {
        self.index.complete(&self.database, Verification::Quick, progress)
    }

    /// Overwrites what an interrupted removal left in the file.
    pub(super) fn finish_removal(&self) -> Result<(), StoreError> {
        if self.database.read(is_removal_unfinished)? {
            self.database.finish_removal(&self.write_lock()?)?;
        }
        Ok(())
    }

    /// Waits for the write lock of the store.
    pub(super) fn write_lock(&self) -> Result<WriteLock, StoreError> {
        WriteLock::take_within(self.path(), LOCK_TIMEOUT)
    }

    /// Runs a small change in a transaction, under the write lock.
    pub(super) fn write(
        &self,
        change: impl Fn(&Connection) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StoreError> {
        let _lock = self.write_lock()?;
        let mut sqlite = self.database.writer()?;
        let mut run = || {
            let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change(&transaction)?;
            transaction.commit()
        };
        run().map_err(|error: rusqlite::Error| self.database.error(&error))
    }
}

//! Stores that imports write to: open ones with synchronized imports, and places that an import creates.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use fetchwell_core::handle::ConnectionId;

use super::writer::ImportWriter;
use crate::contract::{
    ImportId, ImportStatus, IndexProgress, ItemId, KnownItem, NewConnection, NewImport, RememberedImport,
    StoreError,
};
use crate::documents::{ChunkIds, DOCS_KIND, KnownDocument, Project};

/// An open store with synchronized imports. Its methods block, so they are called on a thread that is not one of a runtime.
/// Each fails if the store cannot be read or written.
pub trait SyncStore: fmt::Debug + Send + Sync {
    /// Returns the path of a file. A database has none.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the path of a file, or the address of a database.
    fn place(&self) -> PathBuf;

    /// Returns the imports that the store remembers, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn imports(&self) -> Result<Vec<RememberedImport>, StoreError>;

    /// Returns true if a connection is a project.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn is_project(&self, connection: &ConnectionId) -> Result<bool, StoreError>;

    /// Inserts an import and its connection, or replaces the settings of that of the connection. Returns `None` if it was
    /// removed meanwhile.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn put_import(
        &self,
        connection: &NewConnection,
        new: &NewImport,
    ) -> Result<Option<RememberedImport>, StoreError>;

    /// Remembers an import of a connection, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The store cannot be written, or the connection is a project and the import is not one of documents, or the reverse.
    fn remember(&self, connection: &NewConnection, new: &NewImport) -> Result<RememberedImport, StoreError> {
        let id = &connection.connection_id;
        match (self.is_project(id)?, new.kind == DOCS_KIND) {
            (true, false) => return Err(StoreError::IsProject(id.to_string())),
            (false, true) => return Err(StoreError::NoProject(id.to_string())),
            (true, true) | (false, false) => {}
        }
        self.put_import(connection, new)?.ok_or_else(|| StoreError::ImportRemoved(self.place()))
    }

    /// Schedules the items of an import of which records were removed to be read again, so that the next synchronization
    /// brings these records back.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn restore_removed(&self, import: ImportId) -> Result<(), StoreError>;

    /// Returns the documents of the project that has the id of a connection, or `None` if the connection is no project.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or cannot have projects.
    fn known_documents(&self, connection: &ConnectionId) -> Result<Option<Vec<KnownDocument>>, StoreError>;

    /// Returns true if this process follows the import of a connection, of which a store follows one. Always true for a file,
    /// in which processes take turns.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn follow(&self, _connection: &ConnectionId) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Acquires the lock of an import, or returns `None` if another process synchronizes it.
    ///
    /// # Errors
    ///
    /// The lock cannot be taken.
    fn try_lock(&self, import: &RememberedImport) -> Result<Option<Box<dyn ImportLock>>, StoreError>;

    /// Returns the items of an import by path.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError>;

    /// Returns the paths of the items that are present and could not be read completely, with the reasons.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError>;

    /// Returns the given items, and all items of the import that share a record with one of them, directly or through others.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn related(&self, import: ImportId, items: &BTreeSet<ItemId>) -> Result<BTreeSet<ItemId>, StoreError>;

    /// Saves the result of a synchronization.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError>;
}

/// Right to synchronize an import of a store, which ends when it is dropped.
pub trait ImportLock: fmt::Debug {
    /// Opens the writer of the import.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the import was removed.
    fn writer(&self, import: &RememberedImport) -> Result<ImportWriter, StoreError>;
}

/// Store that an import writes to. It is created when it is opened, with the first record.
pub trait ImportTarget: fmt::Debug + Send {
    /// Returns the path of a file. A database has none.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Describes the session that imports into a connection of a database now. `None` if there is none, and for a file.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn import_in_progress(&self, _connection: &ConnectionId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Creates a copied project with its id, or changes the one with this id.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or has another project or connection of the name.
    fn put_project(&self, project: &Project) -> Result<(), StoreError>;

    /// Opens the store and the connection, creating either if it does not exist. Only the copy of a project has the ids of its
    /// `chunks`. Calls `progress` with the numbers of changes that were added to the search index, and of those that it lacks.
    ///
    /// # Errors
    ///
    /// The store cannot be used, another import writes to the connection, or it is a project and `chunks` is `None`.
    fn open(
        &self,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
        progress: IndexProgress<'_>,
    ) -> Result<ImportWriter, StoreError>;
}

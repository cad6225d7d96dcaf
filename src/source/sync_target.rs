//! The store of imports that stay current: a file or a database.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::documents::KnownDocument;
use super::postgres::{Lease, PostgresSyncStore, PostgresSyncWriter};
use super::sqlite::{IndexProgress, SqliteSyncLock, SqliteSyncStore, SqliteSyncWriter};
use crate::handle::{ConnectionId, RecordId, StreamName};
use crate::source::contract::{
    Fingerprint, ImportId, ImportResult, ImportStatus, IncomingRecord, ItemId, ItemState, KnownItem,
    MissingCounts, NewConnection, NewImport, RememberedImport, StoreError, Tally,
};

/// A store with synchronized imports.
#[derive(Debug)]
pub enum SyncTarget {
    /// Imports into a file.
    File(Box<SqliteSyncStore>),
    /// Imports into a database.
    Postgres(Box<PostgresSyncStore>),
}

/// Right to synchronize an import of a store, which ends when it is dropped.
#[derive(Debug)]
pub enum ImportLock<'s> {
    /// Lock of a file.
    File(&'s SqliteSyncStore, SqliteSyncLock),
    /// Lease of imports into the connection.
    Postgres(&'s PostgresSyncStore, Box<Lease>),
}

/// Writer for one import of a store.
#[derive(Debug)]
pub enum SyncTargetWriter<'s> {
    /// Writer of a file.
    File(Box<SqliteSyncWriter<'s>>),
    /// Writer of a database.
    Postgres(Box<PostgresSyncWriter<'s>>),
}

/// Calls a method of either store or writer.
macro_rules! either {
    ($kind:ident, $self:expr, $each:ident => $call:expr) => {
        match $self {
            $kind::File($each) => $call,
            $kind::Postgres($each) => $call,
        }
    };
}

impl From<SqliteSyncStore> for SyncTarget {
    fn from(store: SqliteSyncStore) -> Self {
        Self::File(Box::new(store))
    }
}

impl SyncTarget {
    /// Returns the path of a file. A database has none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(store) => Some(store.path()),
            Self::Postgres(_) => None,
        }
    }

    /// Returns the imports that the store remembers, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        either!(Self, self, store => store.imports())
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
        either!(Self, self, store => store.remember(connection, new))
    }

    /// Schedules the items of which records were removed to be read again.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn restore_removed(&self, import: ImportId) -> Result<(), StoreError> {
        either!(Self, self, store => store.restore_removed(import))
    }

    /// Returns the documents of a project, or `None` if the connection is no project.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn known_documents(
        &self,
        connection: &ConnectionId,
    ) -> Result<Option<Vec<KnownDocument>>, StoreError> {
        either!(Self, self, store => store.known_documents(connection))
    }

    /// Acquires the lock of an import, or returns `None` if it is being synchronized.
    ///
    /// # Errors
    ///
    /// The lock cannot be taken.
    pub fn try_lock(&self, import: &RememberedImport) -> Result<Option<ImportLock<'_>>, StoreError> {
        Ok(match self {
            Self::File(store) => store.try_lock(import.id)?.map(|lock| ImportLock::File(store, lock)),
            Self::Postgres(store) => {
                let lease = store.try_lock(&import.connection_id)?;
                lease.map(|lease| ImportLock::Postgres(store, Box::new(lease)))
            }
        })
    }

    /// Returns the items of an import by path.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn items(&self, import: ImportId) -> Result<HashMap<String, KnownItem>, StoreError> {
        either!(Self, self, store => store.items(import))
    }

    /// Returns the paths of the items that could not be read completely, with the reasons.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn unreadable(&self, import: ImportId) -> Result<Vec<(String, String)>, StoreError> {
        either!(Self, self, store => store.unreadable(import))
    }

    /// Returns the given items, and all that share a record with one of them.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn related(
        &self,
        import: ImportId,
        items: &BTreeSet<ItemId>,
    ) -> Result<BTreeSet<ItemId>, StoreError> {
        either!(Self, self, store => store.related(import, items))
    }

    /// Saves the result of a synchronization.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn save_status(&self, import: ImportId, status: &ImportStatus) -> Result<(), StoreError> {
        either!(Self, self, store => store.save_status(import, status))
    }
}

impl ImportLock<'_> {
    /// Opens the writer of the import.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the import was removed.
    pub fn writer(&self, import: &RememberedImport) -> Result<SyncTargetWriter<'_>, StoreError> {
        Ok(match self {
            Self::File(store, _lock) => {
                SyncTargetWriter::File(Box::new(SqliteSyncWriter::open(store, import)?))
            }
            Self::Postgres(store, lease) => {
                SyncTargetWriter::Postgres(Box::new(PostgresSyncWriter::open(store, import, lease)?))
            }
        })
    }
}

impl SyncTargetWriter<'_> {
    /// Saves the states of items with unchanged content.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.save_states(states))
    }

    /// Begins a pass over items.
    pub fn begin_pass(&mut self, scheduled: BTreeSet<ItemId>, has_others: bool) {
        either!(Self, self, writer => writer.begin_pass(scheduled, has_others));
    }

    /// Returns and clears the items that share keys with items outside of the pass.
    #[must_use]
    pub fn take_conflicts(&mut self) -> BTreeSet<ItemId> {
        either!(Self, self, writer => writer.take_conflicts())
    }

    /// Begins an item.
    pub fn begin_item(&mut self, path: &str) {
        either!(Self, self, writer => writer.begin_item(path));
    }

    /// Adds a record of the current item to the next batch.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written, or a project got a record that is no document.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.write(record, bytes))
    }

    /// Notes that the current item has another record with the key of this one.
    pub fn depend(&mut self, stream: StreamName, key: RecordId) {
        either!(Self, self, writer => writer.depend(stream, key));
    }

    /// Ends the current item.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written.
    pub fn end_item(&mut self, state: ItemState) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.end_item(state))
    }

    /// Returns the number of records written, by effect.
    #[must_use]
    pub fn tally(&self) -> Tally {
        either!(Self, self, writer => writer.tally())
    }

    /// Writes the last batch and completes the search index.
    ///
    /// # Errors
    ///
    /// The last batch could not be written.
    pub fn finish(self, progress: IndexProgress<'_>) -> Result<ImportResult, StoreError> {
        match self {
            Self::File(writer) => writer.finish(progress),
            Self::Postgres(writer) => writer.finish(),
        }
    }

    /// Writes the steps that were added, if they are a full batch.
    ///
    /// # Errors
    ///
    /// They could not be written. Earlier batches stay written.
    pub fn flush_full(&mut self) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.flush_full())
    }

    /// Writes the steps that were added and not yet written.
    ///
    /// # Errors
    ///
    /// They could not be written. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.flush())
    }

    /// Returns the numbers of records and items that the import gives now.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn present(&self, has_missing: bool) -> Result<MissingCounts, StoreError> {
        either!(Self, self, writer => writer.present(has_missing))
    }

    /// Returns true if an earlier synchronization was interrupted before it deleted what is stale.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn has_stale(&self) -> Result<bool, StoreError> {
        either!(Self, self, writer => writer.has_stale())
    }

    /// Returns the fingerprints of the present items that were read without a problem and give records.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub fn fingerprints(&mut self, missing: &HashSet<ItemId>) -> Result<HashSet<Fingerprint>, StoreError> {
        either!(Self, self, writer => writer.fingerprints(missing))
    }

    /// Marks the items that are missing at the origin. Returns what would be deleted.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub fn mark_missing(
        &mut self,
        gone: &[ItemId],
        moved: &[ItemId],
        unreadable: &[ItemId],
        present: MissingCounts,
    ) -> Result<MissingCounts, StoreError> {
        either!(Self, self, writer => writer.mark_missing(gone, moved, unreadable, present))
    }

    /// Deletes the records that no item gives any more, and the items that are missing.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written. Earlier batches stay written.
    pub fn remove_missing(&mut self, deleted_at: &str) -> Result<(), StoreError> {
        either!(Self, self, writer => writer.remove_missing(deleted_at))
    }
}

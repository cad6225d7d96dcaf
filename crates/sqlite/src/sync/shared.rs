//! The file that a store and its writers use.

use std::path::Path;

use fetchwell_source::contract::{IndexProgress, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::database::Database;
use crate::fulltext::index::{CurrentIndex, IndexState, Verification};
use crate::traces::is_removal_unfinished;
use crate::write_lock::{LOCK_TIMEOUT, WriteLock};

/// An open file with what was verified of its search index.
#[derive(Debug)]
pub(super) struct SharedStore {
    pub(super) database: Database,
    index: CurrentIndex,
}

impl From<Database> for SharedStore {
    fn from(database: Database) -> Self {
        Self { database, index: CurrentIndex::default() }
    }
}

impl SharedStore {
    pub(super) fn path(&self) -> &Path {
        self.database.path()
    }

    /// Adds all changes to the search index. Another process that writes to the store does it otherwise, or the next
    /// search. Calls `progress` with the numbers of added and of missing changes.
    pub(super) fn complete_index(&self, progress: IndexProgress<'_>) -> Result<IndexState, StoreError> {
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
    pub(super) fn write<Answer>(
        &self,
        change: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StoreError> {
        let _lock = self.write_lock()?;
        let mut sqlite = self.database.writer()?;
        let run = || {
            let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = change(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        run().map_err(|error: rusqlite::Error| self.database.error(&error))
    }
}

//! Queue of the searches to be remembered, so that no answer waits for a store that another process writes.
//!
//! A search gets its id when it is queued. Feedback and reads of the history write the queue first, so that they find every
//! search that was answered before them.

use std::mem::take;

use fetchwell_source::contract::StoreError;
use fetchwell_source::documents::{NewSearch, Uuid};
use parking_lot::Mutex;
use rusqlite::MAIN_DB;
use rusqlite::ffi::{Error, SQLITE_READONLY};

use super::database::Database;

/// Maximum number of searches that wait to be written. Searches beyond it are not remembered.
const MAX_QUEUED: usize = 64;

/// A search with the id of its project.
pub(crate) type QueuedSearch = (Uuid, NewSearch);

/// The searches to be remembered.
#[derive(Debug, Default)]
pub(crate) struct HistoryQueue {
    queued: Mutex<Vec<QueuedSearch>>,
    /// Held by the one that writes.
    writing: Mutex<()>,
}

/// The place of a search in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuePlace {
    /// It is the first, and the queue has to be written.
    First,
    /// It is written with those before it.
    Behind,
    /// The queue is full.
    Full,
}

impl HistoryQueue {
    /// Adds a search.
    pub(crate) fn push(&self, project: Uuid, search: NewSearch) -> QueuePlace {
        let mut queued = self.queued.lock();
        if queued.len() >= MAX_QUEUED {
            return QueuePlace::Full;
        }
        queued.push((project, search));
        if queued.len() == 1 { QueuePlace::First } else { QueuePlace::Behind }
    }

    /// Writes all queued searches at once, in their order. Searches that cannot be written are lost.
    pub(crate) fn write(&self, write: impl FnOnce(&[QueuedSearch]) -> Result<(), StoreError>) {
        let _one_at_a_time = self.writing.lock();
        let queued = take(&mut *self.queued.lock());
        if queued.is_empty() {
            return;
        }
        let written = write(&queued);
        if let Err(error) = written {
            tracing::debug!(%error, searches = queued.len(), "searches are not remembered");
        }
    }
}

/// Returns an error if the store cannot be written. Does not wait for other writers.
pub(crate) fn check_writable(database: &Database) -> Result<(), StoreError> {
    let sqlite = database.writer()?;
    let is_readonly = sqlite.is_readonly(MAIN_DB).map_err(|error| database.error(&error))?;
    if is_readonly {
        let error = rusqlite::Error::SqliteFailure(Error::new(SQLITE_READONLY), None);
        return Err(database.error(&error));
    }
    Ok(())
}

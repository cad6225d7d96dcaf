//! Advisory file lock that lets one process at a time write to a store and its index.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use super::StoreError;
use crate::state::{LockFileError, beside, open_lock_file};

/// Interval at which a waiting process tries to get the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Held by a process that writes to the store, or by a reader that updates the index. The system releases it when the process ends, even after
/// a crash.
#[derive(Debug)]
pub(super) struct WriteLock {
    _file: File,
}

/// Opens and locks a file of the store at `store`, or returns `None` if another process holds the lock.
pub(super) fn try_lock_file(store: &Path, path: &Path) -> Result<Option<File>, StoreError> {
    let unwritable = |problem: std::io::Error| StoreError::unwritable(store, &problem);
    let file = open_lock_file(path).map_err(|error| match error {
        LockFileError::Foreign(foreign) => StoreError::from(foreign),
        LockFileError::Io(problem) => unwritable(problem),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(problem)) => Err(unwritable(problem)),
    }
}

impl WriteLock {
    /// Acquires the lock of the store at `store`, or returns `None` if another process holds it.
    pub(super) fn try_take(store: &Path) -> Result<Option<Self>, StoreError> {
        // The path is resolved, so that all links to a store share one lock. A store that does not exist yet is
        // created at this very path.
        let place = std::fs::canonicalize(store).unwrap_or_else(|_missing| store.to_owned());
        Ok(try_lock_file(store, &beside(&place, "-lock"))?.map(|file| Self { _file: file }))
    }

    /// Acquires the lock of the store at `store`, and waits at most `patience` while another process holds it.
    pub(super) fn take_within(store: &Path, patience: Duration) -> Result<Self, StoreError> {
        let deadline = Instant::now() + patience;
        loop {
            match Self::try_take(store)? {
                Some(lock) => return Ok(lock),
                None if Instant::now() < deadline => park_timeout(RETRY_INTERVAL),
                None => return Err(StoreError::Locked(store.to_owned())),
            }
        }
    }
}

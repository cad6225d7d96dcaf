//! Advisory file lock that lets one process at a time synchronize an import.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::imports::ImportId;
use crate::source::store::StoreError;
use crate::state::{LockFileError, beside, open_lock_file};

/// Held while an import is synchronized. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub struct SyncLock {
    _file: File,
}

impl SyncLock {
    /// Acquires the lock of an import of the store at `store`, or returns `None` if another process holds it.
    pub(super) fn try_take(store: &Path, import: ImportId) -> Result<Option<Self>, StoreError> {
        let unwritable = |problem: std::io::Error| StoreError::unwritable(store, &problem);
        let place = std::fs::canonicalize(store).map_err(unwritable)?;
        let file = open_lock_file(&beside(&place, &format!("-sync-{}-lock", import.0)));
        let file = file.map_err(|error| match error {
            LockFileError::Foreign(foreign) => StoreError::from(foreign),
            LockFileError::Io(problem) => unwritable(problem),
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(problem)) => Err(unwritable(problem)),
        }
    }
}

//! The lock of the vectors of a store. One process at a time builds or deletes them.

use std::fs::TryLockError;
use std::path::Path;

use fetchwell_source::contract::VectorError;
use fetchwell_source::vectors::wait_while_busy;
use fetchwell_state::{LockFileError, LockedFile, beside, open_lock_file};

use super::error::io_error;

/// Acquires the lock of a file of vectors, which is released when it is dropped.
pub(super) fn lock(vectors: &Path) -> Result<LockedFile, VectorError> {
    let file = open_lock_file(&beside(vectors, "-lock")).map_err(|error| match error {
        LockFileError::Foreign(foreign) => {
            VectorError::Foreign { path: foreign.path, problem: foreign.problem }
        }
        LockFileError::Io(error) => io_error(vectors, &error),
    })?;
    match LockedFile::try_lock(file) {
        Ok(locked) => Ok(locked),
        Err(TryLockError::WouldBlock) => Err(VectorError::Busy(vectors.to_owned())),
        Err(TryLockError::Error(error)) => Err(io_error(vectors, &error)),
    }
}

/// Acquires the lock, and waits for the batch of another process if that has it.
pub(super) async fn lock_or_wait(vectors: &Path) -> Result<LockedFile, VectorError> {
    wait_while_busy(|| async { lock(vectors) }).await
}

/// Returns true if a process has the lock. Creates no file.
pub(super) fn is_locked(vectors: &Path) -> bool {
    let path = beside(vectors, "-lock");
    path.is_file() && matches!(lock(vectors), Err(VectorError::Busy(_)))
}

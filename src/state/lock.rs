//! The lock of a state directory, held while one of its files is created or replaced.

use std::fs::File;
use std::path::Path;

use super::StateError;
use super::foreign::{LockFileError, open_lock_file};

/// An exclusive lock between processes. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

impl StateLock {
    /// Waits for the lock, without a timeout: a holder keeps it only while it writes a small file.
    ///
    /// # Errors
    ///
    /// The lock file cannot be created, or another file has its name.
    pub fn acquire(directory: &Path) -> Result<Self, StateError> {
        let path = directory.join("lock");
        let unwritable = |error| StateError::unwritable(&path, &error);
        let file = open_lock_file(&path).map_err(|error| match error {
            LockFileError::Foreign(foreign) => StateError::from_foreign(foreign),
            LockFileError::Io(error) => unwritable(error),
        })?;
        file.lock().map_err(unwritable)?;
        Ok(Self { _file: file })
    }
}

//! Locks between processes: a locked file, and the lock of a state directory.
//!
//! The latter is held while one of the directory's files is created or replaced.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::StateError;
use super::foreign::{LockFileError, open_lock_file};

/// A file with an exclusive lock between processes. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Waits for the lock, without a timeout.
    pub fn lock(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    /// Acquires the lock, or returns `WouldBlock` if another holder has it.
    pub fn try_lock(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Drop for LockedFile {
    /// Releases the lock. Closing the file is not enough: a process that is being started has the open files of this one
    /// for a moment, and would keep the lock.
    fn drop(&mut self) {
        // Closing the file releases the lock soon after if this fails.
        let _ = self.0.unlock();
    }
}

/// The lock of a state directory.
#[derive(Debug)]
pub struct StateLock {
    _file: LockedFile,
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
        Ok(Self { _file: LockedFile::lock(file).map_err(unwritable)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_is_released_while_a_started_process_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let open = || open_lock_file(&folder.path().join("lock")).unwrap();
        let locked = LockedFile::try_lock(open()).unwrap();
        let inherited = locked.0.try_clone().unwrap();
        assert!(matches!(LockedFile::try_lock(open()), Err(TryLockError::WouldBlock)));
        drop(locked);
        assert!(LockedFile::try_lock(open()).is_ok());
        drop(inherited);
    }
}

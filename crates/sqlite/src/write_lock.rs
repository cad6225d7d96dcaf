//! Advisory file locks between the processes that write to a store and to its search index.
//!
//! * `WriteLock`: one process at a time writes records. It is held for one batch.
//! * `IndexLock`: one process at a time writes the search index. An import holds it to its end, and indexes what other
//!   processes write meanwhile.
//! * `ConnectionLock`: one import at a time writes to a connection.
//!
//! **Invariant:** a process that holds the write lock does not wait for another lock.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::hex::hexadecimal;
use fetchwell_source::contract::StoreError;
use fetchwell_state::{LockFileError, LockedFile, beside, open_lock_file};
use sha2::{Digest, Sha256};

use crate::error::write_error;

/// Interval at which a waiting process tries to get the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum time that a write waits for the lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Suffix of the file of the index lock.
pub(crate) const INDEX_LOCK: &str = "-index-lock";

/// Held by a process that writes records. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: LockedFile,
}

/// Held by a process that writes the search index. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub(crate) struct IndexLock {
    _file: LockedFile,
}

/// Held by an import into a connection. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub(crate) struct ConnectionLock {
    _file: LockedFile,
}

/// Opens and locks a file of the store at `store`, or returns `None` if another process holds the lock.
pub(crate) fn try_lock_file(store: &Path, path: &Path) -> Result<Option<LockedFile>, StoreError> {
    let unwritable = |problem: std::io::Error| write_error(store, &problem);
    let file = open_lock_file(path).map_err(|error| match error {
        LockFileError::Foreign(foreign) => StoreError::from(foreign),
        LockFileError::Io(problem) => unwritable(problem),
    })?;
    match LockedFile::try_lock(file) {
        Ok(locked) => Ok(Some(locked)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(problem)) => Err(unwritable(problem)),
    }
}

impl WriteLock {
    /// Acquires the lock of the store at `store`, or returns `None` if another process holds it.
    pub(crate) fn try_take(store: &Path) -> Result<Option<Self>, StoreError> {
        Ok(try_lock_file(store, &lock_path(store, "-lock"))?.map(|file| Self { _file: file }))
    }

    /// Acquires the lock of the store at `store`, and waits at most `timeout` while other processes hold it.
    ///
    /// Processes wait in a queue of one: a process that writes batch after batch lets the one that waits go first.
    pub(crate) fn take_within(store: &Path, timeout: Duration) -> Result<Self, StoreError> {
        let deadline = Instant::now() + timeout;
        let queue = lock_path(store, "-lock-queue");
        let _first = wait_for(store, deadline, || try_lock_file(store, &queue))?;
        wait_for(store, deadline, || Self::try_take(store))
    }
}

impl IndexLock {
    /// Acquires the lock of the index of the store at `store`, or returns `None` if another process holds it.
    pub(crate) fn try_take(store: &Path) -> Result<Option<Self>, StoreError> {
        Ok(try_lock_file(store, &lock_path(store, INDEX_LOCK))?.map(|file| Self { _file: file }))
    }
}

impl ConnectionLock {
    /// Acquires the lock of a connection of the store at `store`, or returns `None` if another import holds it.
    pub(crate) fn try_take(store: &Path, connection: &ConnectionId) -> Result<Option<Self>, StoreError> {
        // An id can be longer than the name of a file.
        let digest = Sha256::digest(connection.as_str().as_bytes());
        let name = hexadecimal(digest.iter().take(8));
        let path = lock_path(store, &format!("-import-{name}-lock"));
        Ok(try_lock_file(store, &path)?.map(|file| Self { _file: file }))
    }
}

/// Returns the path of a lock file. All links to a store share its locks. A store that does not exist yet is created at this
/// very path.
fn lock_path(store: &Path, suffix: &str) -> PathBuf {
    let place = std::fs::canonicalize(store).unwrap_or_else(|_missing| store.to_owned());
    beside(&place, suffix)
}

/// Tries to acquire a lock until the deadline.
fn wait_for<Lock>(
    store: &Path,
    deadline: Instant,
    try_take: impl Fn() -> Result<Option<Lock>, StoreError>,
) -> Result<Lock, StoreError> {
    loop {
        match try_take()? {
            Some(lock) => return Ok(lock),
            None if Instant::now() < deadline => park_timeout(RETRY_INTERVAL),
            None => return Err(StoreError::Locked(store.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_process_that_waits_goes_before_one_that_writes_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let take = || WriteLock::take_within(&store, LOCK_TIMEOUT).unwrap();
        let mut lock = take();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(take()));
            let queue = lock_path(&store, "-lock-queue");
            while try_lock_file(&store, &queue).unwrap().is_some() {
                park_timeout(RETRY_INTERVAL);
            }
            // Without the queue, the lock is taken again at once, and the other one waits for its whole time.
            for batch in 0.. {
                drop(lock);
                lock = take();
                if waiting.is_finished() {
                    break;
                }
                assert!(batch < 3, "the process that waits is passed over");
            }
        });
    }

    #[test]
    fn a_lock_is_of_a_connection() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let take = |id: &str| ConnectionLock::try_take(&store, &id.parse().unwrap()).unwrap();
        let mail = take("mail");
        assert!(mail.is_some() && take("mail").is_none() && take("notes").is_some());
        drop(mail);
        assert!(take("mail").is_some());
    }
}

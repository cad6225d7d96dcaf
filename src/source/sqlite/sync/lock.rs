//! Advisory file lock that lets one process at a time synchronize an import.

use std::path::Path;

use crate::source::contract::{ImportId, StoreError};
use crate::source::sqlite::error::write_error;
use crate::source::sqlite::write_lock::try_lock_file;
use crate::state::{LockedFile, beside};

/// Held while an import is synchronized. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub struct SqliteSyncLock {
    _file: LockedFile,
}

impl SqliteSyncLock {
    /// Acquires the lock of an import of the store at `store`, or returns `None` if another process holds it.
    pub(super) fn try_take(store: &Path, import: ImportId) -> Result<Option<Self>, StoreError> {
        let place = std::fs::canonicalize(store).map_err(|problem| write_error(store, &problem))?;
        let path = beside(&place, &format!("-sync-{}-lock", import.0));
        Ok(try_lock_file(store, &path)?.map(|file| Self { _file: file }))
    }
}

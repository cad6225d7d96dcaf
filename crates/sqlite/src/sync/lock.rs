//! Advisory file lock that lets one process at a time synchronize an import.

use std::sync::Arc;

use fetchwell_source::contract::{ImportId, RememberedImport, StoreError};
use fetchwell_source::sync::{ImportLock, ImportWriter};
use fetchwell_state::{LockedFile, beside};

use super::shared::SharedStore;
use super::tables::SqliteImportTables;
use crate::error::write_error;
use crate::write_lock::try_lock_file;

/// Held while an import is synchronized. The system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub(super) struct SqliteImportLock {
    store: Arc<SharedStore>,
    file: Arc<LockedFile>,
}

impl SqliteImportLock {
    /// Acquires the lock of an import, or returns `None` if another process holds it.
    pub(super) fn try_take(store: &Arc<SharedStore>, import: ImportId) -> Result<Option<Self>, StoreError> {
        let path = store.path();
        let place = std::fs::canonicalize(path).map_err(|problem| write_error(path, &problem))?;
        let file = try_lock_file(path, &beside(&place, &format!("-sync-{}-lock", import.0)))?;
        Ok(file.map(|file| Self { store: Arc::clone(store), file: Arc::new(file) }))
    }
}

impl ImportLock for SqliteImportLock {
    fn writer(&self, import: &RememberedImport) -> Result<ImportWriter, StoreError> {
        Ok(SqliteImportTables::open_import(&self.store, import, Some(Arc::clone(&self.file)))?.into_writer())
    }
}

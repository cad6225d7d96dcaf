//! Copies the pages of a database with SQLite's backup API.

use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_source::contract::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::ffi::{self, Error as SqliteError};
use rusqlite::{Connection, ErrorCode};

use super::destination::StagedFile;
use super::error::BackupError;
use crate::database::Database;

/// Pages copied between two checks for cancellation: 8 MB.
const PAGES_AT_ONCE: c_int = 2_000;

/// Error of copying pages.
#[derive(Debug)]
pub(super) enum CopyError {
    Stopped,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Returns an error if the user has cancelled the operation.
pub(super) fn check(stop: &AtomicBool) -> Result<(), BackupError> {
    if stop.load(Ordering::Relaxed) { Err(BackupError::Stopped) } else { Ok(()) }
}

/// Replaces the contents of one database with those of another, in one transaction.
pub(super) fn copy_pages(from: &Connection, to: &mut Connection, stop: &AtomicBool) -> Result<(), CopyError> {
    let backup = Backup::new(from, to)?;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError::Stopped);
        }
        match backup.step(PAGES_AT_ONCE)? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // Both connections have a busy timeout, which has passed when this is returned.
            _ => return Err(rusqlite::Error::SqliteFailure(SqliteError::new(ffi::SQLITE_BUSY), None).into()),
        }
    }
}

/// Copies a snapshot of a store into a staged file. Imports continue meanwhile and do not affect the copy.
pub(super) fn snapshot_into(
    database: &Database,
    staged: &StagedFile,
    stop: &AtomicBool,
) -> Result<(), BackupError> {
    let mut to = staged.connect()?;
    let copied = database.read(|store| {
        let snapshot = store.unchecked_transaction()?;
        // A transaction begins with its first read.
        snapshot.query_one("SELECT version FROM store WHERE id = 1", (), |row| row.get::<_, i64>(0))?;
        Ok(copy_pages(&snapshot, &mut to, stop))
    })?;
    copied.map_err(|error| match error {
        CopyError::Stopped => BackupError::Stopped,
        CopyError::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged { path: database.path().to_owned(), problem: error.to_string() }.into()
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Locked(database.path().to_owned()).into()
            }
            _ => staged.unwritable(&error),
        },
    })
}

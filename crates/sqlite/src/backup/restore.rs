//! Replaces the contents of a store with those of a backup.
//!
//! The contents are replaced within the store's own file and in one transaction, so a running server continues: it
//! reads the earlier records until then and the restored ones afterwards. The store gets a new id, because its
//! versions start again at an earlier one: the search index is rebuilt, and change tokens expire instead of skipping
//! changes.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fetchwell_source::contract::StoreError;
use fetchwell_state::{beside, foreign_beside_database, orphan_of_database};
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::copy::{self, CopyError, copy_pages};
use super::create::back_up_store;
use super::destination::{Destination, StagedFile, is_same_file, set_new_id};
use super::error::BackupError;
use super::verify::{Contents, OpenBackup};
use crate::database::{Database, connect, identity, use_write_ahead_log};
use crate::error::sqlite_error;
use crate::write_lock::{IndexLock, WriteLock};

/// Result of a restore.
#[derive(Debug)]
pub struct RestoreReport {
    /// Contents of the store after the restore.
    pub contents: Contents,
    /// Backup of the earlier contents, or `None` if none was made.
    pub earlier: Option<PathBuf>,
}

/// Replaces the contents of the store at `store` with those of the backup at `file`. A missing store is created. The
/// current records are kept in a backup beside the store, unless `discards` is true. Setting `stop` cancels the
/// operation.
///
/// # Errors
///
/// Returns an error if the backup is incomplete, another process is writing to the store, or the store cannot be
/// written. Then the store is unchanged.
pub fn restore_store(
    file: &Path,
    store: &Path,
    discards: bool,
    stop: &AtomicBool,
) -> Result<RestoreReport, BackupError> {
    if is_same_file(file, store) {
        return Err(BackupError::SameFile(file.to_owned()));
    }
    let backup = OpenBackup::open(file)?;
    let contents = backup.verify()?;
    copy::check(stop)?;
    let found = match Database::open(store) {
        Err(StoreError::Missing(_)) => None,
        Err(damaged @ StoreError::Damaged { .. }) => Some(Err(damaged)),
        found => Some(Ok(found?)),
    };
    let locked = || StoreError::Locked(store.to_owned());
    let _lock = WriteLock::try_take(store)?.ok_or_else(locked)?;
    // An import holds it to its end.
    let _index_lock = IndexLock::try_take(store)?.ok_or_else(locked)?;
    let earlier = match found {
        None => {
            create(&backup.connection, store, stop)?;
            return Ok(RestoreReport { contents, earlier: None });
        }
        Some(_) if discards => None,
        Some(Err(damaged)) => return Err(BackupError::NotKept { problem: Box::new(damaged.into()) }),
        Some(Ok(found)) => keep(&found, stop)?,
    };
    replace(&backup.connection, store, stop)?;
    Ok(RestoreReport { contents, earlier })
}

/// Backs up the current contents of a store beside it, unless it never had a record.
fn keep(found: &Database, stop: &AtomicBool) -> Result<Option<PathBuf>, BackupError> {
    let (_, version) = found.read(identity)?;
    if version == 0 {
        return Ok(None);
    }
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut attempt = 1;
    loop {
        let number = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let earlier = beside(found.path(), &format!("-before-restore-{now}{number}"));
        return match back_up_store(found.path(), &earlier, false, stop) {
            Ok(_contents) => Ok(Some(earlier)),
            Err(BackupError::Stopped) => Err(BackupError::Stopped),
            // Another restore ran within the same second.
            Err(BackupError::Exists(_)) if attempt < MAX_BACKUPS_PER_SECOND => {
                attempt += 1;
                continue;
            }
            Err(problem) => Err(BackupError::NotKept { problem: Box::new(problem) }),
        };
    }
}

/// Maximum number of such backups within one second.
const MAX_BACKUPS_PER_SECOND: u32 = 100;

/// Creates a store that does not exist.
fn create(backup: &Connection, store: &Path, stop: &AtomicBool) -> Result<(), BackupError> {
    if let Some(foreign) = orphan_of_database(store).or_else(|| foreign_beside_database(store)) {
        return Err(StoreError::from(foreign).into());
    }
    let as_store = |error| match error {
        BackupError::Unwritable { path, problem } => StoreError::Unwritable { path, problem }.into(),
        BackupError::Exists(path) => StoreError::Foreign(path).into(),
        other => other,
    };
    let create = || {
        let destination = Destination::for_store(store)?;
        let staged = stage(backup, &destination, stop)?;
        staged.finish(true)?;
        staged.publish(&destination)
    };
    create().map_err(as_store)
}

/// Copies a backup and gives the copy a new id, so that a store gets records and id in one step.
fn stage(
    backup: &Connection,
    destination: &Destination,
    stop: &AtomicBool,
) -> Result<StagedFile, BackupError> {
    let staged = StagedFile::new(destination)?;
    let mut copy = staged.connect()?;
    copy_pages(backup, &mut copy, stop).map_err(|error| match error {
        CopyError::Stopped => BackupError::Stopped,
        CopyError::Sqlite(error) => staged.unwritable(&error),
    })?;
    set_new_id(&copy).map_err(|error| staged.unwritable(&error))?;
    Ok(staged)
}

/// Replaces the contents of an existing store, in its file.
fn replace(backup: &Connection, store: &Path, stop: &AtomicBool) -> Result<(), BackupError> {
    let staged = stage(backup, &Destination::for_store(store)?, stop)?;
    let replace = || {
        let from = connect(staged.file(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut to = connect(store, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let page_size =
            |of: &Connection| of.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0));
        if page_size(&from)? != page_size(&to)? {
            return Ok(Err(BackupError::NotReplaceable {
                path: store.to_owned(),
                problem: "its pages are of another size than those of the backup".to_owned(),
            }));
        }
        use_write_ahead_log(&to)?;
        copy_pages(&from, &mut to, stop)?;
        // Readers use the log, and the next writer checkpoints the rest.
        let _ = to.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        Ok(Ok(()))
    };
    replace().unwrap_or_else(|error| {
        Err(match error {
            CopyError::Stopped => BackupError::Stopped,
            CopyError::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    BackupError::NotReplaceable { path: store.to_owned(), problem: error.to_string() }
                }
                _ => sqlite_error(store, &error).into(),
            },
        })
    })
}

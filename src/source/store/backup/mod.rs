//! Backups of a store, created and restored while other processes use it.
//!
//! A backup is one SQLite file with the records and without the search index, which is derived from them. Both
//! directions use SQLite's backup API on a snapshot, so servers and imports continue, and a backup contains each
//! import batch completely or not at all. Every file is verified before it is used and appears at its path
//! atomically.
//!
//! * `copy`: copies the pages of a database, cancellable
//! * `destination`: the file that a backup is written to
//! * `error`: errors of both directions
//! * `restore`: replaces the contents of a store
//! * `verify`: opens a backup and checks all of it

mod copy;
mod destination;
mod error;
mod restore;
mod verify;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

pub use error::BackupError;
pub use restore::{RestoreReport, restore_store};

use self::copy::snapshot_into;
use self::destination::{Destination, StagedFile};
use self::verify::OpenBackup;
use super::database::Database;

/// The number of connections, records and bytes in a store or a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Number of connections.
    pub connections: u64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Writes a backup of the store at `store` to `file`. `replaces` allows an earlier backup of that name to be
/// replaced. Setting `stop` cancels the operation.
///
/// # Errors
///
/// Returns an error if the store cannot be read, or if the backup cannot be written, is not allowed at that path, or
/// was cancelled. Then there is no new file, and an earlier backup is unchanged.
pub fn back_up_store(
    store: &Path,
    file: &Path,
    replaces: bool,
    stop: &AtomicBool,
) -> Result<Contents, BackupError> {
    let database = Database::open(store)?;
    let destination = Destination::check(file, store, replaces)?;
    let staged = StagedFile::new(&destination)?;
    snapshot_into(&database, &staged, stop)?;
    staged.finish(false)?;
    let contents = OpenBackup::open(staged.file())
        .and_then(|backup| backup.verify())
        .map_err(|error| error.for_store(store, staged.file()))?;
    copy::check(stop)?;
    staged.publish(&destination)?;
    Ok(contents)
}

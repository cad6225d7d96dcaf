//! Backups of a store, made and put back while other processes use it.
//!
//! A backup is one SQLite file with the records and no search index, which is derived from them. Both directions use
//! SQLite's backup API over a snapshot: a server or an import goes on meanwhile, and a backup has all of a batch or none
//! of it. Nothing is believed before it was verified, and a file appears in its place in one step.
//!
//! * [`copy`]: copying the pages of a database, which can be stopped
//! * [`destination`]: the file that a backup is written to
//! * [`error`]: why there is no backup, or nothing was restored
//! * [`restore`]: replacing the contents of a store
//! * [`verify`]: opening a backup and checking all of it

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
    /// Connections.
    pub connections: u64,
    /// Records, without deleted ones.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a backup of the store at `store` to `file`. `replaces` says whether an earlier backup of that name is replaced.
/// Setting `stop` ends it.
///
/// # Errors
///
/// The store cannot be read, or the backup cannot be written, is not allowed there, or was stopped. Then there is no new
/// file, and an earlier backup is as it was.
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
        .map_err(|error| error.of_store(store, staged.file()))?;
    copy::check(stop)?;
    staged.publish(&destination)?;
    Ok(contents)
}

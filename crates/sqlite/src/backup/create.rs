//! Writes a backup of a store.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::copy::{self, snapshot_into};
use super::destination::{Destination, StagedFile};
use super::error::BackupError;
use super::verify::{Contents, OpenBackup};
use crate::database::Database;

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

//! Backups of a store, created and restored while other processes use it.
//!
//! A backup is one SQLite file with the records and without the search index, which is derived from them. Both
//! directions use SQLite's backup API on a snapshot, so servers and imports continue, and a backup contains each
//! import batch completely or not at all. Every file is verified before it is used and appears at its path
//! atomically.
//!
//! * `copy`: copies the pages of a database, cancellable
//! * `create`: writes a backup
//! * `destination`: the file that a backup is written to
//! * `error`: errors of both directions
//! * `restore`: replaces the contents of a store
//! * `verify`: opens a backup and checks all of it

mod copy;
mod create;
mod destination;
mod error;
mod restore;
mod verify;

pub use create::back_up_store;
pub use error::BackupError;
pub use restore::{RestoreReport, restore_store};
pub use verify::Contents;

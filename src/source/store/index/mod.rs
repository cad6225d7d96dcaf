//! The search index beside the store: how it is kept up to date, and what happens when its files are not as they should
//! be.
//!
//! The index is a tantivy index of three rows and one text per record. Its commits carry, in their payload, the store
//! they belong to and the version of the last change they include; commit and payload are one atomic file. So the index
//! can always be brought up to date from the records with a later version, and an index that is lost or damaged is made
//! again from nothing.
//!
//! * [`folder`]: the owner of the folder, and which files in it may be deleted
//! * [`directory`], [`file`], [`cache`]: reading without a memory map, and writing
//! * [`checksum`]: noticing bytes that are not as they were written
//! * [`open`], [`fault`]: opening, verifying and making an index, and why one cannot be used
//! * [`document`]: the fields, and what of a record is searchable
//! * [`view`], [`editor`]: the index as readers and as its one writer see it
//! * [`follower`]: the index during an import
//! * [`current`]: the open index of a process, kept up to date and rebuilt when it is lost or damaged

mod cache;
mod checksum;
mod current;
mod directory;
mod document;
mod editor;
mod fault;
mod file;
mod folder;
mod follower;
mod open;
mod view;

use std::path::{Path, PathBuf};

pub use current::IndexState;

pub(super) use current::{CurrentIndex, Snapshot, Verification};
pub(super) use document::{Entry, Fields, Rows, row_term};
pub(super) use fault::{IndexFault, guard};
pub(super) use follower::IndexFollower;

use crate::state::beside;

/// Returns the folder of a store's index.
pub(super) fn folder_of(store: &Path) -> PathBuf {
    beside(store, "-index")
}

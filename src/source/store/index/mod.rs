//! The search index beside the store: its updates, verification and recovery.
//!
//! It is a tantivy index with three row ids and one text per record. Each commit has a payload with the id of the
//! store and the version of the last change that it contains; commit and payload are one atomic file. The index can
//! therefore always be updated from records with a later version, and a lost or damaged index is rebuilt.
//!
//! * `folder`: the owner of the folder, and the files that may be deleted
//! * `directory`, `file`, `cache`: file access without a memory map
//! * `checksum`: detection of changed bytes
//! * `open`, `fault`: opens, verifies and creates an index; faults that prevent its use
//! * `document`: the fields and the searchable text of a record
//! * `view`, `editor`: read access and the single writer
//! * `follower`: the index during an import
//! * `current`: the open index of a process, kept up to date and rebuilt when lost or damaged

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

/// Returns whether a folder is the index of any store: it has the marker of one, or the name of one beside a file.
pub(super) fn is_index_folder(folder: &Path) -> bool {
    let store = folder.to_str().and_then(|path| path.strip_suffix("-index"));
    folder.join(folder::MARKER).is_file() || store.is_some_and(|store| Path::new(store).is_file())
}

/// Returns the folder of a store's index.
pub(super) fn folder_of(store: &Path) -> PathBuf {
    beside(store, "-index")
}

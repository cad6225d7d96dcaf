//! The search index beside the store: its updates, verification and recovery.
//!
//! It is a tantivy index with three row ids, the text, some columns and the fields (as columns) of each record. Each commit has a payload with the id of the
//! store and the version of the last change that it contains; commit and payload are one atomic file. The index can
//! therefore always be updated from records with a later version, and a lost or damaged index is rebuilt.
//!
//! * `folder`: the owner of the folder, and the files that may be deleted
//! * `directory`, `file`, `cache`: file access without a memory map
//! * `checksum`: detection of changed bytes
//! * `open`, `payload`, `fault`: opens, verifies and creates an index; the payload of its commits; faults that prevent
//!   its use
//! * `document`: the fields and the searchable text of a record
//! * `tokenizer`: the words of a text as the index takes them
//! * `term_filter`: filters of the words of a segment
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
mod payload;
mod term_filter;
mod tokenizer;
mod view;

pub use current::IndexState;

pub(crate) use current::{CurrentIndex, Verification};
pub(crate) use document::{Fields, PARTS, Rows, SHAPES, TIMES, VALUES, row_term};
pub(crate) use fault::{IndexFault, guard};
pub(crate) use folder::{delete_index, folder_of, is_index_folder};
pub(crate) use follower::{IndexBatch, IndexChange, IndexFollower};
pub(crate) use term_filter::{TermFilter, warm_up};
pub(crate) use view::Snapshot;

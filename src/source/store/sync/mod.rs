//! Imports that stay current: what they read, and which records each file gave.
//!
//! An import has items, the files of its origin, and each item has the records that it gave. A record is deleted when no
//! item gives it any more. All of it is written in the transactions that write the records, so a process that is killed
//! leaves an item either complete or marked to be read again. The write lock of the store is held for one batch at a
//! time; a lock for each import lets one process at a time synchronize it.
//!
//! * `store`: `SyncStore`, a store that is synchronized, and its tables
//! * `imports`: the imports that a store remembers, `lock`: the lock of one
//! * `items`: the items of an import, `role`: their relation to records
//! * `writer`: writes records of items in batches, `document_check`: those of projects must be documents
//! * `removal`: deletes the records that no item gives any more

mod document_check;
mod imports;
mod items;
mod lock;
mod removal;
mod role;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub(in crate::source) use document_check::is_document;
pub use imports::{ImportId, ImportStatus, NewImport, RememberedImport};
pub(super) use items::note_removed_items;
pub use items::{Fingerprint, ItemId, ItemState, KnownItem};
pub use lock::SyncLock;
pub use removal::MissingCounts;
pub(in crate::source) use role::Role;
pub use store::SyncStore;
pub use writer::SyncWriter;

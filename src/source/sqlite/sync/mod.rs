//! Imports that stay current: what they read, and which records each file gave.
//!
//! An import has items, the files of its origin, and each item has the records that it gave. A record is deleted when no
//! item gives it any more. All of it is written in the transactions that write the records, so a process that is killed
//! leaves an item either complete or marked to be read again. The write lock of the store is held for one batch at a
//! time; a lock for each import lets one process at a time synchronize it.
//!
//! * `store`: `SqliteSyncStore`, a store that is synchronized, and its tables
//! * `imports`: the imports that a store remembers, `lock`: the lock of one
//! * `items`: the items of an import
//! * `writer`: writes records of items in batches
//! * `removal`: deletes the records that no item gives any more

mod imports;
mod items;
mod lock;
mod removal;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use items::note_removed_items;
pub use lock::SqliteSyncLock;
pub use store::SqliteSyncStore;
pub use writer::SqliteSyncWriter;

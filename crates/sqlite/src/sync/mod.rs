//! Imports into a SQLite file, with the rules of `source::sync`.
//!
//! The write lock of the store is held for one batch at a time. A lock for each import lets one process at a time synchronize
//! it, and a lock for each connection lets one import to its end at a time write to it.
//!
//! * `store`: `SqliteSyncStore`, a store that is synchronized, `target`: the store of an import to its end
//! * `imports`: the imports that a store remembers, `lock`: the lock of one, `items`: the items of one
//! * `tables`: writes batches and the search index, `batch`: the rows of one
//! * `shared`: the file that a store and its writers use

mod batch;
mod imports;
mod items;
mod lock;
mod shared;
mod store;
mod tables;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use items::note_removed_items;
pub use store::SqliteSyncStore;
pub use target::SqliteTarget;

//! Imports and synchronizations of records, with the rules of all databases.
//!
//! An import that stays current has items, the files of its origin, and each item has the records that it gave. A record is
//! deleted when no item gives it any more. All of it is written in the transactions that write the records, so a process that
//! is killed leaves an item either complete or marked to be read again. An import to its end is the same without items.
//!
//! * `store`: the traits of stores and of the places of imports
//! * `tables`: the queries that each database answers in its own way, `item_sql`: the SQL that they share
//! * `writer`: `ImportWriter`, which collects batches, `removal`: deletes the records that no item gives any more
//!
//! **Invariant:** no database is known here.

mod item_sql;
mod removal;
mod store;
mod tables;
mod writer;

pub use item_sql::{ItemSql, TableNames};
pub use store::{ImportLock, ImportTarget, SyncStore};
pub use tables::{
    ImportTables, ItemChange, ItemPart, ItemStart, RecordBatch, Relation, Removal, WrittenBatch,
};
pub use writer::ImportWriter;

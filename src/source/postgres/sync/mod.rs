//! Imports into PostgreSQL that stay current, with the rules of `sqlite::sync`: an import has items, and each item has the
//! records that it gave. All of it is written in the transactions that write the records.
//!
//! * `store`: `PostgresSyncStore`, a database with synchronized imports, `imports`, `items`: its tables
//! * `writer`: writes records of items in batches, `relations`: their relations to the items
//! * `removal`: deletes the records that no item gives any more

mod imports;
mod items;
mod relations;
mod removal;
mod store;
mod writer;

pub use imports::postgres_imports;
pub use store::PostgresSyncStore;
pub use writer::PostgresSyncWriter;

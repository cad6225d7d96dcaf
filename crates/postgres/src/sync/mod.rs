//! Imports into PostgreSQL, with the rules of `source::sync`. One process at a time imports into a connection, by its lease.
//!
//! * `store`: `PostgresSyncStore`, a database with synchronized imports, `target`: the database of an import to its end
//! * `imports`: the imports that a database remembers, `items`: the items of one, `relations`: their relations to records
//! * `tables`: the tables as one import writes them, `batch_writer`: writes batches, `behind`: on a thread of its own
//! * `bulk_import`: indexes and statistics around an import to its end
//! * `waiter`: waits for steps on threads without a runtime

mod batch_writer;
mod behind;
mod bulk_import;
mod imports;
mod items;
mod relations;
mod store;
mod tables;
mod target;
mod waiter;

pub use imports::postgres_imports;
pub use store::PostgresSyncStore;
pub use target::PostgresTarget;

//! Imports into PostgreSQL, with the rules of `source::sync`. One process at a time imports into a connection, by its lease.
//!
//! * `store`: `PostgresSyncStore`, a database with synchronized imports, `target`: the database of an import to its end
//! * `imports`: the imports that a database remembers, `items`: the items of one, `relations`: their relations to records
//! * `tables`: writes batches, `bulk_import`: indexes and statistics around an import to its end
//! * `waiter`: waits for steps on threads without a runtime

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

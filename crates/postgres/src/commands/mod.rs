//! Commands about a store in PostgreSQL as a whole.
//!
//! * `scope`: the names of a command as rows, `export`: reads all records of a scope, `removal`: removes them
//! * `versions`: the versions of the tables, `info`: sizes and numbers
//! * `record_store`: passes all of these to commands

mod export;
mod info;
mod record_store;
mod removal;
mod scope;
mod versions;

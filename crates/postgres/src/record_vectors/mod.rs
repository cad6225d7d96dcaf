//! Vectors of records in PostgreSQL, by pgvector, and the builds of all vectors of a database.
//!
//! Each generation of vectors is of one model and has a table of its own. Rows of a record are deleted with its words, so no
//! vector is left of a removed record.
//!
//! * `generations`: the generations with their tables and indexes
//! * `changes`, `batch`, `build`: embeds what changed since the last build
//! * `nearest`, `documents`, `search`: the records and documents nearest to a query, and searches with them
//! * `status`: the state of the vectors of records
//! * `database`: all vectors of a database, for commands and for servers, `steps`: the batches of their builds

mod batch;
mod build;
mod changes;
mod database;
mod documents;
mod generations;
mod nearest;
mod search;
mod status;
mod steps;

pub use database::PostgresVectors;

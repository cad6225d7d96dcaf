//! Vectors of records in PostgreSQL, by pgvector, and the builds of all vectors of a database.
//!
//! Each generation of vectors is of one model and has a table of its own. Rows of a record are deleted with its words, so no
//! vector is left of a removed record.
//!
//! * `generations`: the generations with their tables and indexes
//! * `changes`, `batch`, `build`: embeds what changed since the last build
//! * `nearest`, `documents`, `search`: the records and documents nearest to a query, and searches with them
//! * `status`: the state of the vectors of records
//! * `database`, `background`: builds of records and documents, for commands and for servers

mod background;
mod batch;
mod build;
mod changes;
mod database;
mod documents;
mod generations;
mod nearest;
mod search;
mod status;

pub use background::PostgresBackgroundBuild;
pub use database::{
    PostgresVectorBuilder, PostgresVectorStatus, estimate_postgres_build, postgres_vector_status,
    remove_postgres_vectors,
};
pub use status::{RecordVectorStatus, VectorScan};

//! The extension pgvector, and the tables that need it.
//!
//! * `state`: the state of the extension in a database
//! * `tables`: the tables of documents and their versions
//! * `vector`: vectors as values of statements

pub(crate) mod state;
mod tables;
pub(crate) mod vector;

pub use state::PgvectorState;
pub(crate) use tables::{USE_EXTENSION, migrate_documents, owns_table, problem, use_extension};

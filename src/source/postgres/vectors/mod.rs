//! Vectors in PostgreSQL, by pgvector.
//!
//! * `build`: builds of the vectors of documents, `index`: their index
//! * `models`: the models that made vectors
//! * `embedder`: the embedding of queries for a store
//! * `nearest`: the chunks of documents that are nearest to a query

mod build;
pub(super) mod embedder;
pub(super) mod index;
pub(super) mod models;
pub(super) mod nearest;

pub use build::{
    ModelStatus, PostgresVectorBuilder, PostgresVectorStatus, estimate_postgres_build,
    postgres_vector_status, remove_postgres_vectors,
};

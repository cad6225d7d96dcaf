//! Vectors of documents in PostgreSQL, by pgvector.
//!
//! * `build`: builds of the vectors of documents, `index`: their index, `status`: their state and removal
//! * `models`: the models that made vectors, `lease`: one builder at a time
//! * `embedder`: the embedding of queries for a store
//! * `chunk_search`: the search of one table of chunks, `nearest`: the documents that are nearest to a query

pub(crate) mod build;
pub(crate) mod chunk_search;
pub(crate) mod embedder;
pub(crate) mod index;
pub(crate) mod lease;
pub(crate) mod models;
pub(crate) mod nearest;
pub(crate) mod status;

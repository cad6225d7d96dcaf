//! Vectors of documents in PostgreSQL, by pgvector.
//!
//! * `build`: builds of the vectors of documents, `index`: their index, `status`: their state and removal
//! * `models`: the models that made vectors, `lease`: one builder at a time
//! * `embedder`: the embedding of queries for a store
//! * `chunk_search`: the search of one table of chunks, `nearest`: the documents that are nearest to a query

pub(super) mod build;
pub(super) mod chunk_search;
pub(super) mod embedder;
pub(super) mod index;
pub(super) mod lease;
pub(super) mod models;
pub(super) mod nearest;
pub(super) mod status;

//! Vectors of stores, whatever database they are in.
//!
//! * `embedded_query`: the query of a search, with its vector or the reason for a search by words
//! * `builds`: builds of the vectors of a store

mod builds;
mod embedded_query;

pub use builds::{StoreVectors, VectorBuild, build_vectors, wait_while_busy};
pub use embedded_query::{EmbeddedQuery, StoreEmbedder};

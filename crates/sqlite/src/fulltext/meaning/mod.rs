//! Hits by meaning from the vectors of the store.
//!
//! * `nearest`: the records of the vector index that are nearest to a query and pass its operators

mod nearest;

use fetchwell_embedding::QueryVector;

pub(super) use nearest::{NearestError, nearest_records};

use crate::vectors::VectorIndex;

/// The meaning of a query, with the vectors that it is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryMeaning<'a> {
    pub(crate) vector: &'a QueryVector,
    pub(crate) vectors: &'a VectorIndex,
    /// True if records are found by meaning alone, and not by words.
    pub(crate) is_alone: bool,
}

//! Hits by meaning from the vectors of the store.
//!
//! * `nearest`: the records of the vector index that are nearest to a query and pass its operators

mod nearest;

pub(super) use nearest::{NearestError, nearest_records};

use crate::embedding::QueryVector;
use crate::source::sqlite::vectors::VectorIndex;

/// The meaning of a query, with the vectors that it is compared with.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::sqlite) struct QueryMeaning<'a> {
    pub(in crate::source::sqlite) vector: &'a QueryVector,
    pub(in crate::source::sqlite) vectors: &'a VectorIndex,
    /// True if records are found by meaning alone, and not by words.
    pub(in crate::source::sqlite) is_alone: bool,
}

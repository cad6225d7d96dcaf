//! Hits by meaning in the list of a search.
//!
//! * `nearest`: the records of the vector index that are nearest to a query and pass its operators
//! * `fusion`: decides which of them go where in the list
//! * `placements`: these places, for the pages of the list and for its position

mod fusion;
mod nearest;
mod placements;

pub(super) use fusion::{WordHit, place_all, place_among};
pub(super) use nearest::{NearestError, nearest_records};
pub(super) use placements::{MAX_PLACED, Placement, Placements};

use crate::embedding::QueryVector;
use crate::source::store::vectors::VectorIndex;

/// The meaning of a query, with the vectors that it is compared with.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::store) struct QueryMeaning<'a> {
    pub(in crate::source::store) vector: &'a QueryVector,
    pub(in crate::source::store) vectors: &'a VectorIndex,
    /// True if records are found by meaning alone, and not by words.
    pub(in crate::source::store) is_alone: bool,
}

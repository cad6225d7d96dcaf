//! Hits by meaning in the list of a search, for every store.
//!
//! * `nearest`: the records that are nearest to a query, as a store found them
//! * `fusion`: decides which of them go where in the list
//! * `placements`: these places, for the pages of the list and for its position
//! * `passage`: the passage that is shown of such a record
//! * `planned_texts`: texts of records to be embedded
//!
//! **Invariant:** no database and no index is known here.

mod fusion;
mod nearest;
mod passage;
mod placements;
mod planned_texts;

pub(in crate::source) use fusion::{place_all, place_among};
pub(in crate::source) use nearest::{NearestHit, NearestRecords};
pub use nearest::{ScoreSpread, VectorHit};
pub(in crate::source) use passage::{passage_from, passage_of};
pub(in crate::source) use placements::{MAX_PLACED, Placement, Placements};
pub(in crate::source) use planned_texts::{
    ChunkText, PlannedChunk, PlannedTexts, TextDigest, mean_vector, plan_chunks,
};

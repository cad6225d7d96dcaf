//! Hits by meaning in the list of a search, for every store.
//!
//! * `nearest`: the records that are nearest to a query, as a store found them
//! * `nearness`: how far a near record stands out, and the points for it
//! * `fusion`: decides which of them go where in the list
//! * `placements`: these places, for the pages of the list and for its position
//! * `passage`: the passage that is shown of such a record
//! * `planned_texts`: texts of records to be embedded
//!
//! **Invariant:** no database and no index is known here.

mod fusion;
mod nearest;
mod nearness;
mod passage;
mod placements;
mod planned_texts;

pub use fusion::{place_all, place_among};
pub use nearest::{NearestHit, NearestRecords, ScoreSpread, VectorHit};
pub use passage::{passage_from, passage_of};
pub use placements::{MAX_PLACED, Placement, Placements};
pub use planned_texts::{ChunkText, PlannedChunk, PlannedTexts, TextDigest, mean_vector, plan_chunks};

//! The records that are nearest to a query.

use crate::source::lexical::selection::Likeness;

/// Mean and standard deviation of the scores of all chunks in scope. A score is only high if it stands out from these.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScoreSpread {
    /// Mean of the scores.
    pub mean: f32,
    /// Standard deviation of the scores; 0 for fewer than two.
    pub deviation: f32,
}

/// A record that a vector search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// Row of the record in the store. The record may have been deleted since.
    pub record: i64,
    /// Cosine of the query and the best chunk.
    pub score: f32,
    /// First and last byte of the best chunk in the record's text.
    pub first_byte: i64,
    /// End of the best chunk in the record's text.
    pub end_byte: i64,
}

/// Records nearest to a query.
#[derive(Debug, Default)]
pub(in crate::source) struct NearestRecords {
    /// Records, the nearest first.
    pub(in crate::source) hits: Vec<NearestHit>,
    /// Cosines of all chunks in scope.
    pub(in crate::source) spread: ScoreSpread,
    /// True if there may be more records than these.
    pub(in crate::source) is_cut: bool,
}

/// A record near to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::source) struct NearestHit {
    pub(in crate::source) hit: VectorHit,
    /// Likeness to other records; `None` if the index does not have it.
    pub(in crate::source) likeness: Option<Likeness>,
}

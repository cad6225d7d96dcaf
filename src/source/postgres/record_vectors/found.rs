//! The result of a search among vectors of one kind, and the sizes of such a search.

use crate::source::meaning::NearestRecords;

/// Number of nearest chunks to read from the index. Several can be of one record.
pub(super) const NEAREST: usize = 400;

/// Size of the sample of chunks for the estimated spread of all scores.
pub(super) const SAMPLED: i64 = 500;

/// Nearest records of one kind.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) records: NearestRecords,
    /// Number of chunks in scope, up to the number from which on the index is used.
    pub(super) chunks: i64,
}

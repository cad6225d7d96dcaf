//! The result of a search among the vectors of records or documents, and its limits.

use crate::source::meaning::NearestRecords;

/// Number of nearest chunks to read from the index. Several can be of one record.
pub(super) const NEAREST: usize = 400;

/// Size of the sample of chunks for the estimated spread of all scores.
pub(super) const SAMPLED: i64 = 500;

/// The nearest records or documents, with the size of their scope.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) records: NearestRecords,
    /// Number of chunks in scope, counted up to `MIN_INDEXED`.
    pub(super) chunks: i64,
}

//! Result and errors of removing records.

use serde::Serialize;

use super::remembered_import::RememberedImport;
use super::scope_error::ScopeError;
use super::store_error::StoreError;
use super::vector_error::VectorError;

/// Number of rows that a removal deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RemovalCounts {
    /// Number of connections.
    pub connections: u64,
    /// Number of streams.
    pub streams: u64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records of which only the history is left.
    pub deleted: u64,
}

/// Result of a removal.
#[derive(Debug)]
pub struct RemovalResult {
    /// Number of rows that were deleted.
    pub counts: RemovalCounts,
    /// Number of vectors that were deleted.
    pub vectors: u64,
    /// Errors that leave data of the records in a file, or prevent use of the search index. The records are removed all the
    /// same.
    pub problems: Vec<String>,
    /// Sentences about what the removal left elsewhere.
    pub notes: Vec<String>,
}

/// Effect that a removal would have.
#[derive(Debug)]
pub struct RemovalPlan {
    /// Number of rows that would be deleted.
    pub counts: RemovalCounts,
    /// Import that brings the records back, if the store tells.
    pub import: Option<RememberedImport>,
}

/// Reason why records cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The records do not exist, or the store cannot be used.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The vectors cannot be used.
    #[error(transparent)]
    Vectors(#[from] VectorError),
}

impl From<StoreError> for RemovalError {
    fn from(error: StoreError) -> Self {
        Self::Scope(error.into())
    }
}

//! The search for chunks of a project.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::saturate::saturated;

use super::category::Category;
use super::uuid::Uuid;
use crate::SearchMode;

/// Maximum number of candidates of a search.
pub const MAX_CANDIDATES: usize = 200;

/// A search for chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentSearch {
    /// Whole text of the query, for search by meaning.
    pub text: String,
    /// Words to find.
    pub topic: String,
    /// Category of the documents; `None` searches all.
    pub category: Option<Category>,
    /// Mode in which chunks are found.
    pub mode: SearchMode,
    /// Maximum number of candidates, at most [`MAX_CANDIDATES`].
    pub depth: usize,
}

/// A chunk that a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Id of the chunk.
    pub chunk: Uuid,
    /// Score from 0 to 1. Scores never rise down the list.
    pub score: f32,
}

/// The candidates of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidates {
    /// Chunks, the best first.
    pub chunks: Vec<Candidate>,
    /// Version of the corpus in which they were found.
    pub corpus_version: i64,
    /// Reasons why the search was by words alone, or misses documents.
    pub problems: BTreeSet<String>,
    /// Embedding of the query, if it was embedded.
    pub embedding: Option<EmbeddingStage>,
    /// Vector of the query, if it was embedded, also if the store has vectors of another model.
    pub query_vector: Option<Arc<[f32]>>,
    /// Reason why the vector of the query is not valid, which is also one of the problems.
    pub embedding_error: Option<String>,
}

/// Returns a time in whole milliseconds.
#[must_use]
pub fn whole_millis(time: Duration) -> u64 {
    saturated::<u64>(time.as_millis())
}

/// The embedding of a query as a stage of its search.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EmbeddingStage {
    /// Name of the model.
    pub model: String,
    /// Time that it took, in milliseconds.
    pub latency_ms: u64,
}

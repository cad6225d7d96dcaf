//! The history of searches, with feedback.

use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use super::uuid::Uuid;
use crate::contract::EMBEDDING_DIMENSIONS;

/// A search to be remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSearch {
    /// Id of the search, by which feedback names it.
    pub id: Uuid,
    /// Text of the query.
    pub query: String,
    /// Vector of the query, if a model made it.
    pub query_embedding: Option<Arc<[f32]>>,
    /// Chunks in the answer, the best first.
    pub result_ids: Vec<Uuid>,
    /// Time that the search took, in milliseconds.
    pub latency_ms: u64,
    /// True if the answer was cached.
    pub cache_hit: bool,
    /// Hash of the caller, who alone can give feedback; `None` if callers are not authenticated.
    pub caller: Option<String>,
}

impl NewSearch {
    /// Returns the vector of the query if it has the dimensions of the contract.
    pub fn embedding(&self) -> Option<&[f32]> {
        self.query_embedding.as_deref().filter(|numbers| numbers.len() == EMBEDDING_DIMENSIONS)
    }
}

/// Returns the numbers of a vector as 32-bit floats, little endian.
#[must_use]
pub fn vector_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A search as a store remembers it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchRecord {
    /// Id of the search.
    pub id: Uuid,
    /// Id of the project that was searched.
    pub project_id: Uuid,
    /// Text of the query.
    pub query: String,
    /// Chunks in the answer, the best first.
    pub result_ids: Vec<Uuid>,
    /// Feedback of the caller.
    pub feedback: Option<Feedback>,
    /// Time that the search took, in milliseconds.
    pub latency_ms: u64,
    /// True if the answer was cached.
    pub cache_hit: bool,
    /// Time of the search in RFC 3339.
    pub created_at: String,
}

/// Feedback on the answer to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feedback {
    /// The answer helped.
    Helpful,
    /// The answer did not help.
    NotHelpful,
}

/// The error for a text that is no feedback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("feedback is helpful or not_helpful, or null to withdraw it")]
pub struct InvalidFeedback;

impl Feedback {
    /// Returns the feedback as a store and requests write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Helpful => "helpful",
            Self::NotHelpful => "not_helpful",
        }
    }
}

impl FromStr for Feedback {
    type Err = InvalidFeedback;

    fn from_str(text: &str) -> Result<Self, InvalidFeedback> {
        [Self::Helpful, Self::NotHelpful]
            .into_iter()
            .find(|known| known.as_str() == text)
            .ok_or(InvalidFeedback)
    }
}

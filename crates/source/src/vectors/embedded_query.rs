//! The query of a search by meaning.
//!
//! A query is embedded before the store is read, so that a slow model holds no permit, no thread and no connection. Whatever
//! fails, the search goes on by words, and its answer has the reason with the remedy.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_embedding::{ModelIdentity, QueryEmbedder, QueryVector};

use crate::SearchMode;
use crate::contract::{EMBEDDING_DIMENSIONS, VectorError, WrongDimensions};

/// Reason for a search by words in a store without vectors.
const NO_VECTORS: &str = "the store has no vectors; run `fetchwell embeddings build`";

/// Embedder of the queries of a store, within a deadline.
#[derive(Debug, Clone)]
pub struct StoreEmbedder {
    embedder: Arc<QueryEmbedder>,
    deadline: Duration,
}

/// A query with its vector, and with the `Vectors` of the store that it is compared with.
#[derive(Debug, Clone)]
pub struct EmbeddedQuery<Vectors> {
    /// Vector of the query with those of the store; `None` for a search by words alone.
    pub vector: Option<(QueryVector, Vectors)>,
    /// Vector of the query that no stored vector can be compared with, because another model made them.
    pub unmatched: Option<QueryVector>,
    /// Reason why the search is by words alone.
    pub problem: Option<String>,
    /// True if the problem is a vector that is not valid, and not a model that cannot be called.
    pub is_invalid_vector: bool,
}

impl<Vectors> Default for EmbeddedQuery<Vectors> {
    fn default() -> Self {
        Self { vector: None, unmatched: None, problem: None, is_invalid_vector: false }
    }
}

impl<Vectors> EmbeddedQuery<Vectors> {
    /// Creates the query of a search by words, for a reason.
    pub fn problem(problem: &dyn Display) -> Self {
        Self { problem: Some(problem.to_string()), ..Self::default() }
    }

    /// Creates the query of a store without vectors. Only mode `auto` does not require them.
    pub fn without_vectors(mode: SearchMode) -> Self {
        if mode == SearchMode::Auto { Self::default() } else { Self::problem(&NO_VECTORS) }
    }

    /// Creates the query of a search by words because its vector is not valid.
    fn invalid_vector(problem: &dyn Display) -> Self {
        Self { is_invalid_vector: true, ..Self::problem(problem) }
    }

    /// Returns the query of a search of documents, whose vector must have the dimensions of the contract.
    #[must_use]
    pub fn for_documents(self) -> Self {
        match self.vector.as_ref().map(|(vector, _)| vector.numbers.len()) {
            None | Some(EMBEDDING_DIMENSIONS) => self,
            Some(found) => Self::invalid_vector(&WrongDimensions(found)),
        }
    }
}

impl StoreEmbedder {
    /// Creates the embedder of a store. `deadline` is that of a query's vector.
    pub fn new(embedder: Arc<QueryEmbedder>, deadline: Duration) -> Self {
        Self { embedder, deadline }
    }

    /// Embeds a query. `compare` returns the vectors of the store that its model made, or the reason why there are none.
    pub async fn embed<Vectors>(
        &self,
        text: &str,
        compare: impl FnOnce(&ModelIdentity) -> Result<Vectors, VectorError>,
    ) -> EmbeddedQuery<Vectors> {
        let vector = match self.embedder.embed(text, self.deadline).await {
            Ok(vector) => vector,
            Err(error) if error.is_invalid_answer() => return EmbeddedQuery::invalid_vector(&error),
            Err(error) => return EmbeddedQuery::problem(&error),
        };
        match compare(&vector.model) {
            Ok(vectors) => EmbeddedQuery { vector: Some((vector, vectors)), ..EmbeddedQuery::default() },
            Err(error) => {
                self.forget_changed(&error);
                EmbeddedQuery { unmatched: Some(vector), ..EmbeddedQuery::problem(&error) }
            }
        }
    }

    /// Forgets the identity of a model that has changed, so that after a rebuild the next query is compared with the new
    /// vectors.
    pub fn forget_changed(&self, error: &VectorError) {
        if matches!(error, VectorError::ModelChanged(_)) {
            self.embedder.forget_identity();
        }
    }
}

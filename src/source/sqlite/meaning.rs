//! The meaning of a search: the vector of its query, and the vectors of the store.
//!
//! The query is embedded before the store is read, so that a slow model holds no permit and no thread. Whatever fails, the
//! search goes on by words, and the answer says what to do.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::blocking::spawn_read;
use super::fulltext::QueryMeaning;
use super::vectors::VectorIndex;
use crate::embedding::{QueryEmbedder, QueryVector};
use crate::source::contract::VectorError;
use crate::source::{SearchMode, SearchQuery};

/// Embedding model of the configuration and vectors of a store.
#[derive(Debug)]
pub(super) struct Meaning {
    embedder: Arc<QueryEmbedder>,
    vectors: VectorIndex,
    /// Deadline of a query's vector.
    deadline: Duration,
}

/// The way in which one search uses vectors.
#[derive(Debug, Default)]
pub(super) struct SearchMeaning {
    meaning: Option<(Arc<Meaning>, QueryVector)>,
    /// Vector of the query that the vectors of the store cannot be compared with, because another model made them.
    unmatched: Option<QueryVector>,
    is_alone: bool,
    /// Reason why the search is by words alone.
    pub(super) problem: Option<String>,
    /// True if the problem is a vector that is not valid, and not a model that cannot be called.
    pub(super) is_invalid_vector: bool,
}

impl Meaning {
    pub(super) fn new(embedder: Arc<QueryEmbedder>, vectors: VectorIndex, deadline: Duration) -> Self {
        Self { embedder, vectors, deadline }
    }

    /// Returns the identity of the vectors. It changes with the model and with each build.
    pub(super) fn vectors_identity(&self) -> Result<Option<String>, VectorError> {
        self.vectors.identity()
    }

    /// Embeds the query of a first page, if its mode wants that and the store has vectors.
    pub(super) async fn for_search(self: &Arc<Self>, query: &SearchQuery) -> SearchMeaning {
        let text = query.text.plain_words();
        // A later page is determined by its position.
        if query.mode == SearchMode::Lexical || query.position.is_some() || text.trim().is_empty() {
            return SearchMeaning::default();
        }
        let is_auto = query.mode == SearchMode::Auto;
        let reader = Arc::clone(self);
        let stored = spawn_read(move || reader.vectors.model()).await;
        let stored = match stored {
            Ok(Some(stored)) => stored,
            Ok(None) if is_auto => return SearchMeaning::default(),
            Ok(None) => {
                return SearchMeaning::problem(&"the store has no vectors; run `fetchwell embeddings build`");
            }
            Err(error) => return SearchMeaning::problem(&error),
        };
        match self.embedder.embed(&text, self.deadline).await {
            Ok(vector) => match stored.check(&vector.model) {
                Ok(()) => SearchMeaning {
                    meaning: Some((Arc::clone(self), vector)),
                    is_alone: query.mode == SearchMode::Semantic,
                    ..SearchMeaning::default()
                },
                Err(error) => {
                    // After a rebuild the next query is compared with the new vectors.
                    if matches!(error, VectorError::ModelChanged(_)) {
                        self.embedder.forget_identity();
                    }
                    SearchMeaning { unmatched: Some(vector), ..SearchMeaning::problem(&error) }
                }
            },
            Err(error) if error.is_invalid_answer() => SearchMeaning::invalid_vector(&error),
            Err(error) => SearchMeaning::problem(&error),
        }
    }
}

impl SearchMeaning {
    pub(super) fn problem(problem: &dyn Display) -> Self {
        Self { problem: Some(problem.to_string()), ..Self::default() }
    }

    /// Creates the state of a search by words because of an invalid query vector.
    pub(super) fn invalid_vector(problem: &dyn Display) -> Self {
        Self { is_invalid_vector: true, ..Self::problem(problem) }
    }

    /// Returns the vector that a model made of the query, also if the store has vectors of another model.
    pub(super) fn embedded(&self) -> Option<&QueryVector> {
        self.vector().or(self.unmatched.as_ref())
    }

    /// Returns the query's vector that the vectors of the store are compared with, if there is one.
    pub(super) fn vector(&self) -> Option<&QueryVector> {
        self.meaning.as_ref().map(|(_, vector)| vector)
    }

    /// Returns what the search is compared with, or `None` for a search by words alone.
    pub(super) fn query(&self) -> Option<QueryMeaning<'_>> {
        let (meaning, vector) = self.meaning.as_ref()?;
        Some(QueryMeaning { vector, vectors: &meaning.vectors, is_alone: self.is_alone })
    }
}

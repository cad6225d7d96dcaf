//! The embedding of queries for a store.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::models::StoredModel;
use crate::embedding::{QueryEmbedder, QueryVector};
use crate::source::SearchMode;
use crate::source::contract::VectorError;

/// Embedder of the queries of a store, within a deadline.
#[derive(Debug, Clone)]
pub(in crate::source::postgres) struct StoreEmbedder {
    pub(in crate::source::postgres) embedder: Arc<QueryEmbedder>,
    pub(in crate::source::postgres) deadline: Duration,
}

/// The way in which one search uses vectors.
#[derive(Debug, Default, Clone)]
pub(in crate::source::postgres) struct QueryMeaning {
    /// Vector of the query, with the labels of the vectors that it is compared with.
    pub(in crate::source::postgres) vector: Option<(QueryVector, Vec<String>)>,
    /// Vector of the query that no stored vector can be compared with, because another model made them.
    pub(in crate::source::postgres) unmatched: Option<QueryVector>,
    /// Reason why the search is by words alone.
    pub(in crate::source::postgres) problem: Option<String>,
    /// True if the problem is a vector that is not valid, and not a model that cannot be called.
    pub(in crate::source::postgres) is_invalid_vector: bool,
}

impl QueryMeaning {
    fn problem(problem: &dyn Display) -> Self {
        Self { problem: Some(problem.to_string()), ..Self::default() }
    }

    /// Creates the meaning of a query with a vector that is not valid.
    pub(in crate::source::postgres) fn invalid_vector(problem: &dyn Display) -> Self {
        Self { is_invalid_vector: true, ..Self::problem(problem) }
    }
}

impl StoreEmbedder {
    /// Embeds a query that is compared with the vectors of one of these models. Without any, a search in mode auto is by
    /// words, and others say so.
    pub(in crate::source::postgres) async fn embed(
        &self,
        text: &str,
        mode: SearchMode,
        stored: &[StoredModel],
    ) -> QueryMeaning {
        let Some(newest) = stored.last() else {
            return match mode {
                SearchMode::Auto => QueryMeaning::default(),
                _ => QueryMeaning::problem(&"the store has no vectors; run `fetchwell embeddings build`"),
            };
        };
        match self.embedder.embed(text, self.deadline).await {
            Ok(vector) => {
                // A rebuild gives vectors of the same model another label.
                let same = stored.iter().filter(|stored| stored.check(&vector.model).is_ok());
                let labels: Vec<String> = same.map(StoredModel::label).collect();
                match newest.check(&vector.model) {
                    Err(error) if labels.is_empty() => {
                        // After a rebuild the next query is compared with the new vectors.
                        if matches!(error, VectorError::ModelChanged(_)) {
                            self.embedder.forget_identity();
                        }
                        QueryMeaning { unmatched: Some(vector), ..QueryMeaning::problem(&error) }
                    }
                    _ => QueryMeaning { vector: Some((vector, labels)), ..QueryMeaning::default() },
                }
            }
            Err(error) if error.is_invalid_answer() => QueryMeaning::invalid_vector(&error),
            Err(error) => QueryMeaning::problem(&error),
        }
    }
}

//! The meaning of a search: the vector of its query, and the vectors of the store.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_embedding::{QueryEmbedder, QueryVector};
use fetchwell_source::contract::VectorError;
use fetchwell_source::vectors::{EmbeddedQuery, StoreEmbedder};
use fetchwell_source::{SearchMode, SearchQuery};

use super::blocking::spawn_read;
use super::fulltext::QueryMeaning;
use super::vectors::VectorIndex;

/// Embedding model of the configuration and vectors of a store.
#[derive(Debug)]
pub(crate) struct Meaning {
    embedder: StoreEmbedder,
    vectors: VectorIndex,
}

/// The way in which one search uses vectors.
pub(crate) type SearchMeaning = EmbeddedQuery<Arc<Meaning>>;

impl Meaning {
    pub(crate) fn new(embedder: Arc<QueryEmbedder>, vectors: VectorIndex, deadline: Duration) -> Self {
        Self { embedder: StoreEmbedder::new(embedder, deadline), vectors }
    }

    /// Returns the identity of the vectors. It changes with the model and with each build.
    pub(crate) fn vectors_identity(&self) -> Result<Option<String>, VectorError> {
        self.vectors.identity()
    }

    /// Embeds the query of a first page, if its mode wants that and the store has vectors.
    pub(crate) async fn for_search(self: &Arc<Self>, query: &SearchQuery) -> SearchMeaning {
        let text = query.text.plain_words();
        // A later page is determined by its position.
        if query.mode == SearchMode::Lexical || query.position.is_some() || text.trim().is_empty() {
            return SearchMeaning::default();
        }
        let reader = Arc::clone(self);
        match spawn_read(move || reader.vectors.model()).await {
            Ok(Some(stored)) => {
                self.embedder.embed(&text, |model| stored.check(model).map(|()| Arc::clone(self))).await
            }
            Ok(None) => SearchMeaning::without_vectors(query.mode),
            Err(error) => SearchMeaning::problem(&error),
        }
    }
}

/// Returns what a search compares, or `None` for a search by words alone.
pub(crate) fn compared(
    vector: Option<&(QueryVector, Arc<Meaning>)>,
    mode: SearchMode,
) -> Option<QueryMeaning<'_>> {
    let (vector, meaning) = vector?;
    Some(QueryMeaning { vector, vectors: &meaning.vectors, is_alone: mode == SearchMode::Semantic })
}

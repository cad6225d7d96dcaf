//! The embedding of queries for a store.

use fetchwell_embedding::ModelIdentity;
use fetchwell_source::SearchMode;
use fetchwell_source::vectors::{EmbeddedQuery, StoreEmbedder};

use super::models::StoredModel;

/// The way in which one search uses vectors: the vector of its query, with the labels of the vectors that it is compared with.
pub(crate) type QueryMeaning = EmbeddedQuery<Vec<String>>;

/// Embeds a query that is compared with the vectors of one of these models.
pub(crate) async fn embed_query(
    embedder: &StoreEmbedder,
    text: &str,
    mode: SearchMode,
    stored: &[StoredModel],
) -> QueryMeaning {
    let Some(newest) = stored.last() else { return QueryMeaning::without_vectors(mode) };
    let compare = |model: &ModelIdentity| {
        // A rebuild gives vectors of the same model another label.
        let same = stored.iter().filter(|stored| stored.check(model).is_ok());
        let labels: Vec<String> = same.map(StoredModel::label).collect();
        if labels.is_empty() { newest.check(model).map(|()| labels) } else { Ok(labels) }
    };
    embedder.embed(text, compare).await
}

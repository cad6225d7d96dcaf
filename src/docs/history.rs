//! The history of searches.

use super::cache::CachedAnswer;
use super::projects::FoundProject;
use super::search::SearchRequest;
use crate::source::documents::{NewSearch, Uuid};

/// Setting of a project that turns its history off when it is `false`.
const HISTORY_SETTING: &str = "history";

/// Remembers a search. Returns its id for feedback, or `None` if the project has no history or the store cannot be written.
pub async fn remember(
    found: &FoundProject,
    request: &SearchRequest,
    cached: &CachedAnswer,
    latency_ms: u64,
) -> Option<Uuid> {
    if found.project.settings.get(HISTORY_SETTING).is_some_and(|setting| setting == false) {
        return None;
    }
    let id = Uuid::random().ok()?;
    let search = NewSearch {
        id,
        query: request.query.trim().to_owned(),
        query_embedding: None,
        result_ids: cached.answer.results.iter().map(|result| result.passage.chunk.id).collect(),
        latency_ms,
        cache_hit: cached.is_hit,
    };
    match found.store.remember_search(found.project.id, &search).await {
        Ok(()) => Some(id),
        Err(error) => {
            tracing::debug!(code = error.code(), "a search is not remembered");
            None
        }
    }
}

//! The history of searches.

use fetchwell_callers::GrantId;
use fetchwell_source::documents::{NewSearch, Uuid};

use super::cache::CachedAnswer;
use super::caller_hash::caller_hash;
use super::projects::FoundProject;
use super::search::SearchRequest;

/// A search that was answered.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredSearch<'a> {
    /// Search as the request states it.
    pub request: &'a SearchRequest,
    /// Answer to it.
    pub cached: &'a CachedAnswer,
    /// Time that it took, in milliseconds.
    pub latency_ms: u64,
    /// Grant of the caller, if callers are authenticated.
    pub caller: Option<GrantId>,
}

/// Queues a search to be remembered. Returns its id for feedback, or `None` if the server or the project has no history,
/// or if the store cannot be written or has too many searches to write.
pub async fn remember(found: &FoundProject, search: AnsweredSearch<'_>) -> Option<Uuid> {
    let AnsweredSearch { request, cached, latency_ms, caller } = search;
    if !found.keeps_history || found.project.settings.kept_days() == 0 {
        return None;
    }
    let id = Uuid::random().ok()?;
    let search = NewSearch {
        id,
        query: request.query.trim().to_owned(),
        query_embedding: cached.answer.query_vector.clone(),
        result_ids: cached.answer.results.iter().map(|result| result.passage.chunk.id).collect(),
        latency_ms,
        cache_hit: cached.is_hit,
        caller: caller.map(|caller| caller_hash(id, caller)),
    };
    match found.store.remember_search(found.project.id, &search).await {
        Ok(()) => Some(id),
        Err(error) => {
            tracing::debug!(code = error.code(), "a search is not remembered");
            None
        }
    }
}

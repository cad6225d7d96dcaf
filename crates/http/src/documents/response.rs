//! The bodies of responses: `SearchResponse`, `ChunkResult` and `Project` of the contract.

use std::sync::Arc;

use fetchwell_core::fit::bytes_of;
use fetchwell_core::handle::SourceName;
use fetchwell_source::documents::{Project, Uuid};
use fetchwell_tools::documents::{
    AnsweredSearch, FoundProject, Neighbors, SearchAnswer, SearchResult, neighbors,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::DocumentError;

/// Maximum bytes of the items of a response, which has at most 1 MiB.
pub(super) const MAX_ITEMS_BYTES: usize = 1024 * 1024 - ENVELOPE_BYTES;

/// Bytes of a response for what is around its items. The longest part is a cursor with a path of 1,000 characters.
const ENVELOPE_BYTES: usize = 16 * 1024;

/// Projects that a caller may read.
#[derive(Debug, Serialize)]
pub(super) struct ProjectList {
    pub(super) projects: Vec<ListedProject>,
}

/// A project, with its source if several sources have projects.
#[derive(Debug, Serialize)]
pub(super) struct ListedProject {
    #[serde(flatten)]
    project: Project,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceName>,
}

impl ProjectList {
    pub(super) fn new(found: Vec<FoundProject>) -> Self {
        let first = found.first().map(|found| found.store.source_name().clone());
        let has_several = found.iter().any(|found| Some(found.store.source_name()) != first.as_ref());
        let listed = |found: FoundProject| {
            let source = has_several.then(|| found.store.source_name().clone());
            ListedProject { project: found.project, source }
        };
        Self { projects: found.into_iter().map(listed).collect() }
    }
}

/// The answer to a search.
#[derive(Debug, Serialize)]
pub(super) struct SearchResponse<'a> {
    results: Vec<ChunkResult<'a>>,
    query: &'a str,
    project_id: &'a str,
    total_found: usize,
    latency_ms: u64,
    cache_hit: bool,
    corpus_version: i64,
}

/// A chunk with its document.
#[derive(Debug, Serialize)]
pub(super) struct ChunkResult<'a> {
    id: Uuid,
    document_id: Uuid,
    content: &'a str,
    score: f64,
    document_path: &'a str,
    document_title: Option<&'a str>,
    category: &'a str,
    chunk_index: u32,
    metadata: Map<String, Value>,
}

/// The results of an answer, with their neighbors if the request includes metadata.
#[derive(Debug)]
pub(super) struct ChunkResults {
    answer: Arc<SearchAnswer>,
    neighbors: Option<Vec<Neighbors>>,
}

impl ChunkResults {
    /// Reads what the results of an answer need besides the answer. Fails if the vector of the query was not valid.
    pub(super) async fn read(
        found: &FoundProject,
        answer: &Arc<SearchAnswer>,
        include_metadata: bool,
    ) -> Result<Self, DocumentError> {
        if let Some(problem) = &answer.embedding_error {
            return Err(DocumentError::embedding(problem));
        }
        let neighbors = if include_metadata { Some(neighbors(found, answer).await?) } else { None };
        Ok(Self { answer: Arc::clone(answer), neighbors })
    }

    /// Returns the results that fit into a response, the best first.
    pub(super) fn fitting(&self) -> Vec<ChunkResult<'_>> {
        let result = |(number, result)| {
            let neighbors = self.neighbors.as_ref().map(|all| all.get(number).cloned().unwrap_or_default());
            chunk_result(result, neighbors)
        };
        fitting(self.answer.results.iter().enumerate().map(result))
    }
}

impl<'a> SearchResponse<'a> {
    pub(super) fn new(
        answered: AnsweredSearch<'a>,
        project_id: &'a str,
        results: Vec<ChunkResult<'a>>,
    ) -> Self {
        let AnsweredSearch { request, cached, latency_ms, .. } = answered;
        Self {
            results,
            query: &request.query,
            project_id,
            total_found: cached.answer.total_found,
            latency_ms,
            cache_hit: cached.is_hit,
            corpus_version: cached.answer.corpus_version,
        }
    }
}

fn chunk_result(result: &SearchResult, neighbors: Option<Neighbors>) -> ChunkResult<'_> {
    let (chunk, document) = (&result.passage.chunk, &result.passage.document);
    let mut metadata = Map::new();
    if let Some(neighbors) = neighbors {
        if let Ok(Value::Object(own)) = serde_json::to_value(&chunk.metadata) {
            metadata = own;
        }
        metadata.insert("neighbors".to_owned(), serde_json::to_value(neighbors).unwrap_or_default());
    }
    ChunkResult {
        id: chunk.id,
        document_id: document.id,
        content: &chunk.content,
        score: result.rounded_score(),
        document_path: document.path.as_str(),
        document_title: document.title.as_deref(),
        category: document.category.as_str(),
        chunk_index: chunk.chunk_index,
        metadata,
    }
}

/// Returns the first items that fit into a response together.
pub(super) fn fitting<Item: Serialize>(items: impl IntoIterator<Item = Item>) -> Vec<Item> {
    let mut room = MAX_ITEMS_BYTES;
    let fits = |item: &Item| {
        // An item and its comma.
        let left = room.checked_sub(bytes_of(item).saturating_add(1));
        room = left.unwrap_or_default();
        left.is_some()
    };
    items.into_iter().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_beyond_the_size_of_a_response_are_left_out() {
        let half = "x".repeat(MAX_ITEMS_BYTES / 2);
        assert_eq!(fitting([&half, &half, &half]).len(), 1);
        let third = "x".repeat(MAX_ITEMS_BYTES / 3 - 3);
        assert_eq!(fitting([&third, &third, &third, &third]).len(), 3);
        assert!(fitting(["x".repeat(MAX_ITEMS_BYTES)]).is_empty());
    }
}

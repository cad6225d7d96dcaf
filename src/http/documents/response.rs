//! The bodies of responses: `SearchResponse`, `ChunkResult` and `Project` of the contract.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::docs::{CachedAnswer, SearchRequest, SearchResult};
use crate::source::documents::{Project, Uuid};

/// Projects that a caller may read.
#[derive(Debug, Serialize)]
pub(super) struct ProjectList {
    pub(super) projects: Vec<Project>,
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

impl<'a> SearchResponse<'a> {
    pub(super) fn new(
        request: &'a SearchRequest,
        project_id: &'a str,
        cached: &'a CachedAnswer,
        latency_ms: u64,
        include_metadata: bool,
    ) -> Self {
        Self {
            results: chunk_results(cached, include_metadata),
            query: &request.query,
            project_id,
            total_found: cached.answer.total_found,
            latency_ms,
            cache_hit: cached.is_hit,
            corpus_version: cached.answer.corpus_version,
        }
    }
}

/// Returns the chunks of an answer.
pub(super) fn chunk_results(cached: &CachedAnswer, include_metadata: bool) -> Vec<ChunkResult<'_>> {
    cached.answer.results.iter().map(|result| chunk_result(result, include_metadata)).collect()
}

fn chunk_result(result: &SearchResult, include_metadata: bool) -> ChunkResult<'_> {
    let (chunk, document) = (&result.passage.chunk, &result.passage.document);
    let metadata = match serde_json::to_value(&chunk.metadata) {
        Ok(Value::Object(metadata)) if include_metadata => metadata,
        _ => Map::new(),
    };
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

//! Searches for chunks: from a request to results.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use super::error::DocsError;
use super::projects::FoundProject;
use super::question::topic;
use crate::source::SearchMode;
use crate::source::documents::{
    Candidate, Candidates, Category, DocumentSearch, EmbeddingStage, MAX_CANDIDATES, Passage, Uuid,
    whole_millis,
};

/// Maximum length of a query in characters.
pub const MAX_QUERY_CHARS: usize = 1_000;

/// Minimum number of candidates of a search.
const MIN_DEPTH: usize = 50;

/// Number of candidates for each requested result.
const DEPTH_PER_RESULT: usize = 4;

/// Number of candidates that are reranked. Rerankers get worse with more.
const MAX_RERANKED: usize = 50;

/// A search as a request states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// Text of the query.
    pub query: String,
    /// Maximum number of results.
    pub top_k: usize,
    /// Category of the documents; `None` searches all.
    pub category: Option<Category>,
    /// True to rerank the candidates if a reranker is configured.
    pub use_reranker: bool,
}

/// A result: a chunk with its document and its score from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// Chunk and document.
    pub passage: Passage,
    /// Score. Scores never rise down the list.
    pub score: f32,
}

impl SearchResult {
    /// Returns the score with four decimals.
    #[must_use]
    pub fn rounded_score(&self) -> f64 {
        (f64::from(self.score) * 10_000.0).round() / 10_000.0
    }
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchAnswer {
    /// Results, the best first.
    pub results: Vec<SearchResult>,
    /// Number of candidates.
    pub total_found: usize,
    /// Version of the corpus that was searched.
    pub corpus_version: i64,
    /// Reasons why the answer is not all that was asked for, each with what to do.
    pub warnings: BTreeSet<String>,
    /// Stages of the search, with their times.
    pub stages: Stages,
}

/// The stages of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stages {
    /// Embedding of the query, if it was embedded.
    pub embedding: Option<EmbeddingStage>,
    /// Time until the candidates were found, in milliseconds.
    pub search_ms: u64,
    /// Reranking, if the candidates were reranked.
    pub rerank: Option<RerankStage>,
}

/// The reranking of candidates as a stage of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RerankStage {
    /// Number of candidates.
    pub input: usize,
    /// Number of results.
    pub output: usize,
    /// Time that it took, in milliseconds.
    pub latency_ms: u64,
}

/// Searches a project.
///
/// # Errors
///
/// The query is empty or too long, or the store cannot be read.
pub async fn search(found: &FoundProject, request: &SearchRequest) -> Result<SearchAnswer, DocsError> {
    let query = request.query.trim();
    if query.is_empty() {
        return Err(DocsError::InvalidQuery("Query cannot be empty"));
    }
    if query.chars().nth(MAX_QUERY_CHARS).is_some() {
        return Err(DocsError::InvalidQuery("Query cannot be longer than 1,000 characters"));
    }
    let depth = request.top_k.saturating_mul(DEPTH_PER_RESULT).clamp(MIN_DEPTH, MAX_CANDIDATES);
    let search = DocumentSearch {
        text: query.to_owned(),
        topic: topic(query),
        category: request.category.clone(),
        mode: SearchMode::Auto,
        depth,
    };
    let started = Instant::now();
    let Candidates { mut chunks, corpus_version, problems, embedding } =
        found.store.search(&found.project, &search).await?;
    let mut stages = Stages { embedding, search_ms: whole_millis(started.elapsed()), rerank: None };
    let total_found = chunks.len();
    let mut warnings: BTreeSet<String> =
        problems.into_iter().map(|problem| format!("searched by words only: {problem}")).collect();
    if request.use_reranker && found.reranking.is_some() && total_found > 1 {
        let started = Instant::now();
        match rerank(found, query, &mut chunks).await? {
            Ok(()) => {
                let output = request.top_k.min(total_found);
                let latency_ms = whole_millis(started.elapsed());
                stages.rerank = Some(RerankStage { input: total_found, output, latency_ms });
            }
            Err(problem) => drop(warnings.insert(format!("the results are not reranked: {problem}"))),
        }
    }
    chunks.truncate(request.top_k);
    let results = read(found, &chunks).await?;
    Ok(SearchAnswer { results, total_found, corpus_version, warnings, stages })
}

/// Reranks the first candidates. Returns the reason if the order stays as it was found.
async fn rerank(
    found: &FoundProject,
    query: &str,
    chunks: &mut [Candidate],
) -> Result<Result<(), String>, DocsError> {
    let Some(reranking) = &found.reranking else { return Ok(Ok(())) };
    let first = chunks.len().min(MAX_RERANKED);
    let Some(head) = chunks.get_mut(..first).filter(|head| head.len() > 1) else { return Ok(Ok(())) };
    let results = read(found, head).await?;
    let texts: Vec<String> = results.iter().map(|result| reranked_text(&result.passage)).collect();
    let order = match reranking.order(query, &texts).await {
        Ok(order) => order,
        Err(problem) => return Ok(Err(problem)),
    };
    // Scores belong to places, so that they never rise down the list.
    let ids: Vec<Uuid> = order.iter().filter_map(|at| Some(results.get(*at)?.passage.chunk.id)).collect();
    let unread = head.iter().map(|candidate| candidate.chunk).filter(|chunk| !ids.contains(chunk));
    let all: Vec<Uuid> = ids.iter().copied().chain(unread).collect();
    for (candidate, chunk) in head.iter_mut().zip(all) {
        candidate.chunk = chunk;
    }
    Ok(Ok(()))
}

/// Returns the text of a chunk for a reranker, below the title of its document.
fn reranked_text(passage: &Passage) -> String {
    let title = passage.document.title.as_deref().unwrap_or_default();
    format!("{title}\n{}", passage.chunk.content)
}

/// Reads the chunks of candidates. Those that were deleted in the meantime are left out.
async fn read(found: &FoundProject, candidates: &[Candidate]) -> Result<Vec<SearchResult>, DocsError> {
    let ids: Vec<Uuid> = candidates.iter().map(|candidate| candidate.chunk).collect();
    let passages = found.store.passages(found.project.id, &ids).await?;
    let score_of = |passage: &Passage| {
        let candidate = candidates.iter().find(|candidate| candidate.chunk == passage.chunk.id);
        candidate.map_or(0.0, |candidate| candidate.score)
    };
    Ok(passages.into_iter().map(|passage| SearchResult { score: score_of(&passage), passage }).collect())
}

//! Searches for chunks: from a request to results.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use fetchwell_source::SearchMode;
use fetchwell_source::documents::{
    Candidate, Candidates, Category, DocumentSearch, MAX_CANDIDATES, Passage, RerankStage, ResultsStage,
    SearchStage, StageSender, Uuid, whole_millis,
};

use super::error::DocsError;
use super::projects::FoundProject;
use super::question::topic;

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
    /// Vector of the query, if a model made it.
    pub query_vector: Option<Arc<[f32]>>,
    /// Reason why the vector of the query is not valid. The results are then found by words alone.
    pub embedding_error: Option<String>,
    /// Reranker of the results, if they are reranked.
    pub reranked_by: Option<String>,
}

/// Searches a project. Sends each stage as soon as it has ended.
///
/// # Errors
///
/// The query is empty or too long, or the store cannot be read.
pub async fn search(
    found: &FoundProject,
    request: &SearchRequest,
    stages: &StageSender,
) -> Result<SearchAnswer, DocsError> {
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
    let Candidates { mut chunks, corpus_version, problems, embedding, query_vector, embedding_error } =
        found.store.search(&found.project, &search, stages).await?;
    let total_found = chunks.len();
    let embedding_ms = embedding.map_or(0, |embedding| embedding.latency_ms);
    let latency_ms = whole_millis(started.elapsed()).saturating_sub(embedding_ms);
    stages.send(SearchStage::Results(ResultsStage { count: total_found, latency_ms }));
    let mut warnings = problems;
    let mut reranked_by = None;
    if request.use_reranker && found.reranking.is_some() && total_found > 1 {
        let started = Instant::now();
        match rerank(found, query, &mut chunks).await? {
            Ok(input) => {
                reranked_by = found.reranking.as_ref().map(|reranking| reranking.name().to_owned());
                let output = request.top_k.min(total_found);
                let latency_ms = whole_millis(started.elapsed());
                stages.send(SearchStage::Rerank(RerankStage { input, output, latency_ms }));
            }
            Err(problem) => drop(warnings.insert(format!("the results are not reranked: {problem}"))),
        }
    }
    chunks.truncate(request.top_k);
    let results = read(found, &chunks).await?;
    Ok(SearchAnswer {
        results,
        total_found,
        corpus_version,
        warnings,
        query_vector,
        embedding_error,
        reranked_by,
    })
}

/// Reranks the first candidates. Returns the number of passages that were sent to the reranker, or the reason if the order
/// stays as it was found.
async fn rerank(
    found: &FoundProject,
    query: &str,
    chunks: &mut [Candidate],
) -> Result<Result<usize, String>, DocsError> {
    let Some(reranking) = &found.reranking else { return Ok(Ok(0)) };
    let first = chunks.len().min(MAX_RERANKED);
    let Some(head) = chunks.get_mut(..first).filter(|head| head.len() > 1) else { return Ok(Ok(0)) };
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
    Ok(Ok(texts.len()))
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

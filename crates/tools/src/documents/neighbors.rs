//! The neighbors of results: the chunks before and behind them in their documents.

use std::sync::Arc;

use fetchwell_core::fit::{first_characters, last_characters};
use fetchwell_source::documents::DocumentChunk;

use super::error::DocsError;
use super::projects::FoundProject;
use super::search::SearchAnswer;

/// Maximum length of the text of a neighbor in characters.
const MAX_NEIGHBOR_CHARS: usize = 1_000;

/// The neighbors of a chunk; `None` at an end of the document.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Neighbors {
    /// Chunk before it.
    pub previous: Option<Neighbor>,
    /// Chunk behind it.
    pub next: Option<Neighbor>,
}

/// A chunk beside a result.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Neighbor {
    /// Number of the chunk in its document, from 0.
    pub chunk_index: u32,
    /// Text next to the result: the end of the chunk before it, or the start of the chunk behind it.
    pub content: String,
}

/// Returns the neighbors of each result of an answer. A chunk that was deleted since the search has none.
///
/// # Errors
///
/// The store cannot be read.
pub async fn neighbors(
    found: &FoundProject,
    answer: &Arc<SearchAnswer>,
) -> Result<Vec<Neighbors>, DocsError> {
    let mut all = Vec::with_capacity(answer.results.len());
    for result in &answer.results {
        let chunk = &result.passage.chunk;
        let numbers = chunk.chunk_index.saturating_sub(1)..chunk.chunk_index.saturating_add(2);
        let around = found.store.chunks(found.project.id, chunk.document_id, numbers).await?;
        // The numbers are those of another text if the document changed since.
        let is_same = around.iter().any(|other| other.id == chunk.id);
        all.push(if is_same { beside(chunk, &around) } else { Neighbors::default() });
    }
    Ok(all)
}

fn beside(chunk: &DocumentChunk, around: &[DocumentChunk]) -> Neighbors {
    let neighbor = |is_at: fn(u32, u32) -> bool, part: fn(&str, usize) -> &str| {
        let other = around.iter().find(|other| is_at(other.chunk_index, chunk.chunk_index))?;
        let content = part(&other.content, MAX_NEIGHBOR_CHARS).to_owned();
        Some(Neighbor { chunk_index: other.chunk_index, content })
    };
    Neighbors {
        previous: neighbor(|other, own| other < own, last_characters),
        next: neighbor(|other, own| other > own, first_characters),
    }
}

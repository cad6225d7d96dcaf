//! Answers to searches in the state that servers share: the second level of the cache.
//!
//! An entry has the ids of the chunks with their scores, not their texts: these are read from the store again, and the
//! answer counts only if the store still has the version of the corpus that was searched. So an answer is never older
//! than the corpus, and costs no search, no embedding and no reranking.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::projects::FoundProject;
use super::search::{SearchAnswer, SearchResult};
use crate::callers::random_token;
use crate::cursor::{Cursors, SharedValue};
use crate::source::documents::{ProjectRef, Uuid};
use crate::state::StateError;
use crate::state::redis::{IfExists, OwnerLimits};

/// Kind of the entries.
const KIND: &str = "search";

/// Kind of the generation of all entries.
const GENERATION: &str = "search-generation";

/// Time after which an entry is deleted.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// Lifetime of a generation. It is longer than that of an entry.
const GENERATION_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Quota of the entries of one grant.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 4 * 1024 * 1024, max_values: 10_000 };

/// The answers of one grant.
#[derive(Debug, Clone)]
pub(super) struct SharedAnswers {
    cursors: Arc<Cursors>,
    grant: String,
}

/// Generation of the entries when a search began: clearing the cache begins another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation(String);

#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    generation: String,
    /// Ids of the chunks, each with the bits of its score.
    chunks: Vec<(Uuid, u32)>,
    total_found: usize,
    corpus_version: i64,
    reranked_by: Option<String>,
}

impl SharedAnswers {
    /// Creates the answers of a grant, or returns `None` if this server shares no state.
    pub(super) fn new(cursors: &Arc<Cursors>, grant: Option<String>) -> Option<Self> {
        cursors.redis()?;
        Some(Self { cursors: Arc::clone(cursors), grant: grant.unwrap_or_default() })
    }

    /// Returns the generation of the entries of all servers; `None` if the shared state cannot be used. Begins one
    /// if there is none, such as after a loss of the shared state.
    pub(super) async fn generation(&self) -> Option<Generation> {
        let shared = self.cursors.shared_values()?;
        if let Some(generation) = shared.get(GENERATION, "").await.ok()? {
            return Some(Generation(generation));
        }
        // Another server may be first.
        self.begin_generation(IfExists::Keep).await.ok()?;
        shared.get(GENERATION, "").await.ok()?.map(Generation)
    }

    /// Makes all entries of all grants invalid, on all servers.
    pub(super) async fn clear(&self) -> Result<(), StateError> {
        self.begin_generation(IfExists::Replace).await
    }

    async fn begin_generation(&self, if_exists: IfExists) -> Result<(), StateError> {
        let Some(shared) = self.cursors.shared_values() else { return Ok(()) };
        let value = SharedValue {
            kind: GENERATION,
            name: "",
            owner: "",
            text: &random_token()?,
            lifetime: GENERATION_LIFETIME,
            limits: LIMITS,
            if_exists,
        };
        shared.put(value).await?;
        Ok(())
    }

    /// Returns the answer of a key, with the texts that the store has now.
    pub(super) async fn get(
        &self,
        found: &FoundProject,
        key: &str,
        generation: &Generation,
    ) -> Option<SearchAnswer> {
        let text = self.cursors.shared_values()?.get(KIND, &self.name(found, key)).await.ok()??;
        let stored: StoredAnswer = serde_json::from_str(&text).ok()?;
        let (project, store) = (&found.project, &found.store);
        if stored.generation != generation.0 || stored.corpus_version != project.corpus_version {
            return None;
        }
        let ids: Vec<Uuid> = stored.chunks.iter().map(|(id, _)| *id).collect();
        let passages = store.passages(project.id, &ids).await.ok()?;
        let is_whole = passages.iter().map(|passage| passage.chunk.id).eq(ids.iter().copied());
        let now = store.project(&ProjectRef::Id(project.id)).await.ok()??;
        let is_current = now.corpus_version == stored.corpus_version && now.updated_at == project.updated_at;
        if !is_whole || !is_current {
            return None;
        }
        let scores = stored.chunks.iter().map(|(_, score)| f32::from_bits(*score));
        let results = passages.into_iter().zip(scores);
        Some(SearchAnswer {
            results: results.map(|(passage, score)| SearchResult { passage, score }).collect(),
            total_found: stored.total_found,
            corpus_version: stored.corpus_version,
            warnings: BTreeSet::new(),
            embedding_error: None,
            reranked_by: stored.reranked_by,
        })
    }

    /// Stores a complete answer of the current version.
    pub(super) async fn put(
        &self,
        found: &FoundProject,
        key: &str,
        generation: &Generation,
        answer: &SearchAnswer,
    ) {
        let Some(shared) = self.cursors.shared_values() else { return };
        let chunk = |result: &SearchResult| (result.passage.chunk.id, result.score.to_bits());
        let stored = StoredAnswer {
            generation: generation.0.clone(),
            chunks: answer.results.iter().map(chunk).collect(),
            total_found: answer.total_found,
            corpus_version: answer.corpus_version,
            reranked_by: answer.reranked_by.clone(),
        };
        let value = SharedValue {
            kind: KIND,
            name: &self.name(found, key),
            owner: &self.grant,
            text: &serde_json::to_string(&stored).unwrap_or_default(),
            lifetime: LIFETIME,
            limits: LIMITS,
            if_exists: IfExists::Replace,
        };
        // The state counts and logs its failures.
        let _ = shared.put(value).await;
    }

    fn name(&self, found: &FoundProject, key: &str) -> String {
        format!("{}\0{}\0{key}", self.grant, found.project.id)
    }
}

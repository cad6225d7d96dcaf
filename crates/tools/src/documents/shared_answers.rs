//! Answers to searches in the state that servers share: the second level of the cache.
//!
//! The key of an entry in Redis ends in the key that the contract of document search gives a search. Each project has a
//! generation: clearing its answers begins another one, which ends the entries in the memory of all servers, and deletes
//! those in Redis.
//!
//! An entry has the ids of the chunks with their scores, not their texts: these are read from the store again, and the
//! answer counts only if the store still has the version of the corpus that was searched. So an answer is never older
//! than the corpus, and costs no search, no embedding and no reranking.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use fetchwell_callers::random_token;
use fetchwell_source::documents::{Project, ProjectRef, ProjectSlug, Uuid, vector_bytes};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Cursors, GroupedName, SharedValue};
use fetchwell_state::redis::{IfExists, MarkedValues, OwnerLimits, RedisError};
use serde::{Deserialize, Serialize};

use super::projects::FoundProject;
use super::search::{SearchAnswer, SearchResult};

/// Kind of the entries. The contract of document search prescribes this beginning of their keys; operators and clients know
/// it, so it stays.
const KIND: &str = "fraim";

/// Kind of the generations. Their names are the ids of the projects.
const GENERATION: &str = "search-generation";

/// Time after which an entry is deleted.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// Lifetime of a generation. It is longer than that of an entry.
const GENERATION_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Quota of the entries of one grant.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 4 * 1024 * 1024, max_values: 10_000 };

/// Quota of the generations.
const GENERATION_LIMITS: OwnerLimits = OwnerLimits { max_bytes: 16 * 1024 * 1024, max_values: 50_000 };

/// The answers of one grant.
#[derive(Debug, Clone)]
pub(super) struct SharedAnswers {
    cursors: Arc<Cursors>,
    grant: String,
}

/// Generation of a project's entries when a search began: clearing them begins another one.
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
    /// Numbers of the vector of the query, little endian in base64, if a model made it.
    #[serde(default)]
    query_vector: Option<String>,
}

impl SharedAnswers {
    /// Creates the answers of a grant, or returns `None` if this server shares no state.
    pub(super) fn new(cursors: &Arc<Cursors>, grant: &str) -> Option<Self> {
        cursors.redis()?;
        Some(Self { cursors: Arc::clone(cursors), grant: grant.to_owned() })
    }

    /// Returns the generation of a project's entries on all servers; `None` if the shared state cannot be used. Begins one if
    /// there is none, such as after a loss of the shared state.
    pub(super) async fn generation(&self, project: Uuid) -> Option<Generation> {
        let (shared, name) = (self.cursors.shared_values()?, project.to_string());
        if let Some(generation) = shared.get(GENERATION, &name).await.ok()? {
            return Some(Generation(generation));
        }
        // Another server may be first. A value that is kept and cannot be read was written by another program.
        for if_exists in [IfExists::Keep, IfExists::Replace] {
            self.begin_generation(&name, if_exists).await.ok()?;
            if let Some(generation) = shared.get(GENERATION, &name).await.ok()? {
                return Some(Generation(generation));
            }
        }
        None
    }

    /// Ends the entries of some projects on all servers, those of all grants. Returns the keys of those that were in Redis.
    pub(super) async fn clear(&self, projects: &[&Project]) -> Result<BTreeSet<String>, StateError> {
        let Some(shared) = self.cursors.shared_values().filter(|_| !projects.is_empty()) else {
            return Ok(BTreeSet::new());
        };
        let begun = self.begin_generations(projects).await;
        let name_start = match projects {
            [only] => name_start(&only.slug),
            _ => String::new(),
        };
        let marks: Vec<String> = projects.iter().map(|project| project.id.to_string()).collect();
        let groups = MarkedValues { kind: KIND, name_start: &name_start, marks: &marks };
        let names = shared.remove_groups(groups).await?;
        match begun {
            // The removal has made room.
            Err(StateError::Redis(RedisError::Full { .. })) => self.begin_generations(projects).await?,
            begun => begun?,
        }
        Ok(names.iter().map(|name| key(name)).collect())
    }

    async fn begin_generations(&self, projects: &[&Project]) -> Result<(), StateError> {
        for project in projects {
            self.begin_generation(&project.id.to_string(), IfExists::Replace).await?;
        }
        Ok(())
    }

    async fn begin_generation(&self, name: &str, if_exists: IfExists) -> Result<(), StateError> {
        let Some(shared) = self.cursors.shared_values() else { return Ok(()) };
        let value = SharedValue {
            kind: GENERATION,
            name,
            owner: "",
            text: &random_token()?,
            lifetime: GENERATION_LIFETIME,
            limits: GENERATION_LIMITS,
            if_exists,
        };
        shared.put(value).await?;
        Ok(())
    }

    /// Returns the answer of a name, with the texts that the store has now.
    pub(super) async fn get(
        &self,
        found: &FoundProject,
        name: &str,
        generation: &Generation,
    ) -> Option<SearchAnswer> {
        let project = found.project.id.to_string();
        let text = self.cursors.shared_values()?.get_grouped(self.address(name, &project)).await.ok()??;
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
            query_vector: stored.query_vector.as_deref().and_then(decoded_vector),
            embedding_error: None,
            reranked_by: stored.reranked_by,
        })
    }

    /// Stores a complete answer of the current version.
    pub(super) async fn put(
        &self,
        found: &FoundProject,
        name: &str,
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
            query_vector: answer
                .query_vector
                .as_deref()
                .map(|numbers| STANDARD_NO_PAD.encode(vector_bytes(numbers))),
        };
        let (project, text) =
            (found.project.id.to_string(), serde_json::to_string(&stored).unwrap_or_default());
        // The state counts and logs its failures.
        let _ = shared.put_grouped(self.address(name, &project), &text, LIFETIME, LIMITS).await;
    }

    fn address<'a>(&'a self, name: &'a str, project: &'a str) -> GroupedName<'a> {
        GroupedName { kind: KIND, name, group: project, owner: &self.grant }
    }
}

/// Returns the start of the names of a project's entries.
pub(super) fn name_start(project: &ProjectSlug) -> String {
    format!("{project}:v")
}

/// Returns the key of the contract for the entry of a name.
pub(super) fn key(name: &str) -> String {
    format!("{KIND}:{name}")
}

fn decoded_vector(text: &str) -> Option<Arc<[f32]>> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

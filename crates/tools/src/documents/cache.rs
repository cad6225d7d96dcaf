//! Cache of the answers to searches.
//!
//! A key contains the version of the corpus and a hash of everything that changes the answer. An entry is stored only if
//! the version is still the same after the search, so that an answer is never older than the corpus that its key names.
//! Equal searches at a time run once, and share the answer also if it is not stored. A cache belongs to one grant; servers
//! that share their state have its entries as a second level.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fetchwell_core::fit::bytes_of;
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::lru::{LookupCounter, Lookups, LruCache, LruLimits};
use fetchwell_source::Reranking;
use fetchwell_source::documents::{CacheStage, Passage, Project, ProjectRef, SearchStage, StageSender, Uuid};
use fetchwell_state::StateError;
use fetchwell_state::cursor::Cursors;
use fetchwell_telemetry::ReadKind;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::error::DocsError;
use super::projects::FoundProject;
use super::search::{SearchAnswer, SearchRequest, search};
use super::shared_answers::{Generation, SharedAnswers, key, name_start};

/// Time after which an entry is evicted.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// Maximum bytes of the content and the query vectors of all entries.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes of a result besides its content.
const RESULT_BYTES: usize = 1_024;

/// Number of bytes of the hash in a key.
const HASH_BYTES: usize = 8;

/// Cache of the answers to searches. Clones share the entries.
#[derive(Debug, Clone)]
pub struct SearchCache {
    entries: LruCache<CacheKey, Entry>,
    lookups: LookupCounter,
    /// Searches that are running.
    running: Arc<Mutex<HashMap<CacheKey, Weak<SharedSearch>>>>,
    /// Number of times that entries were removed by [`Self::clear`].
    clears: Arc<AtomicU64>,
    /// Grant of the entries, which is a part of their keys: servers that share their state have those of all grants in one
    /// place.
    grant: String,
    /// Entries that servers share.
    shared: Option<SharedAnswers>,
}

/// An answer to a search.
#[derive(Debug, Clone)]
pub struct CachedAnswer {
    /// Answer to the search.
    pub answer: Arc<SearchAnswer>,
    /// True if the answer was in the cache, or was found by an equal search at the same time.
    pub is_hit: bool,
}

/// Key of an entry: `fraim:{slug}:v{corpus_version}:search:{hash}`, with the project for the removal of its entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CacheKey {
    project: Uuid,
    /// The key without `fraim:`.
    name: String,
}

/// An entry of the cache.
#[derive(Debug, Clone)]
struct Entry {
    answer: Arc<SearchAnswer>,
    stored_at: Instant,
    /// Generation of the shared entries when the search began, if it was known.
    generation: Option<Generation>,
}

/// A search that is running. Equal ones wait for the lock; if the search is cancelled, the next one runs.
type SharedSearch = tokio::sync::Mutex<SearchState>;

/// State of a search that equal ones wait for.
#[derive(Debug, Default)]
enum SearchState {
    /// The holder of the lock searches.
    #[default]
    Running,
    /// The search has ended with an answer.
    Answered(Arc<SearchAnswer>),
    /// The search has ended with an error. Those that waited search on their own, not one after another.
    Failed,
}

impl Default for SearchCache {
    fn default() -> Self {
        let weight = |key: &CacheKey, entry: &Entry| {
            let results = entry.answer.results.iter().map(|result| {
                let Passage { chunk, document } = &result.passage;
                chunk.content.len() + bytes_of(&document.metadata) + RESULT_BYTES
            });
            let vector = entry.answer.query_vector.as_ref().map_or(0, |vector| size_of_val(&**vector));
            key.name.len() + vector + results.sum::<usize>()
        };
        let limits = LruLimits::new(MAX_BYTES).with_lifetime(LIFETIME);
        let entries = LruCache::with_weights(limits, weight);
        Self {
            entries,
            lookups: LookupCounter::default(),
            running: Arc::default(),
            clears: Arc::default(),
            grant: String::new(),
            shared: None,
        }
    }
}

impl SearchCache {
    /// Creates the cache of a grant, with entries that servers share if they share their state.
    #[must_use]
    pub fn for_grant(cursors: &Arc<Cursors>, grant: Option<String>) -> Self {
        let grant = grant.unwrap_or_default();
        Self { shared: SharedAnswers::new(cursors, &grant), grant, ..Self::default() }
    }

    /// Searches a project, or returns the answer to an equal search.
    ///
    /// # Errors
    ///
    /// The query is invalid, or the store cannot be read.
    pub async fn search(
        &self,
        found: &FoundProject,
        request: &SearchRequest,
    ) -> Result<CachedAnswer, DocsError> {
        self.search_in_stages(found, request, &StageSender::default()).await
    }

    /// Searches as [`Self::search`], and sends each stage as soon as it has ended.
    ///
    /// # Errors
    ///
    /// As [`Self::search`].
    pub async fn search_in_stages(
        &self,
        found: &FoundProject,
        request: &SearchRequest,
        stages: &StageSender,
    ) -> Result<CachedAnswer, DocsError> {
        let cached = self.find_or_search(found, request, stages).await?;
        // A cached answer counts as read by this call, too.
        let documents: BTreeSet<Uuid> =
            cached.answer.results.iter().map(|result| result.passage.document.id).collect();
        found.report(ReadKind::Search, documents);
        Ok(cached)
    }

    /// Returns the answer to an equal search, or searches.
    async fn find_or_search(
        &self,
        found: &FoundProject,
        request: &SearchRequest,
        stages: &StageSender,
    ) -> Result<CachedAnswer, DocsError> {
        let key = CacheKey::new(found, request, &self.grant).await?;
        let checked = |hit| {
            self.lookups.count(hit);
            stages.send(SearchStage::CacheCheck(CacheStage { hit, key: key.text() }));
        };
        let hit = |answer| {
            checked(true);
            CachedAnswer { answer, is_hit: true }
        };
        if let Some(answer) = self.get(&key).await {
            return Ok(hit(answer));
        }
        let shared = self.shared_search(&key);
        let mut state = shared.lock().await;
        if let SearchState::Answered(answer) = &*state {
            return Ok(hit(Arc::clone(answer)));
        }
        if let Some(answer) = self.get(&key).await {
            return Ok(hit(answer));
        }
        if let Some(answer) = self.shared_answer(found, &key).await {
            return Ok(hit(answer));
        }
        checked(false);
        if matches!(*state, SearchState::Failed) {
            drop(state);
            return self.search_now(found, request, stages, &key).await;
        }
        let searched = self.search_now(found, request, stages, &key).await;
        *state = match &searched {
            Ok(cached) => SearchState::Answered(Arc::clone(&cached.answer)),
            Err(_error) => SearchState::Failed,
        };
        // A later search is not equal in time, and runs again.
        self.running.lock().remove(&key);
        searched
    }

    /// Returns the numbers of cache hits and misses.
    pub(crate) fn lookups(&self) -> Lookups {
        self.lookups.get()
    }

    /// Removes the answers of some projects. Returns their keys.
    pub fn clear(&self, is_cleared: impl Fn(Uuid) -> bool) -> BTreeSet<String> {
        // A search that ends from now on sees the number, and does not store its answer.
        self.clears.fetch_add(1, Ordering::SeqCst);
        self.entries.remove_if(|key| is_cleared(key.project)).iter().map(CacheKey::text).collect()
    }

    /// Returns the answer of an entry, unless the cache was cleared since, here or by another server.
    async fn get(&self, key: &CacheKey) -> Option<Arc<SearchAnswer>> {
        let entry = self.entries.get(key).filter(|entry| entry.stored_at.elapsed() < LIFETIME)?;
        // If the shared state cannot be read, the cache of this server is used without this check.
        let generation = self.generation(key.project).await;
        let is_current = generation.is_none() || generation == entry.generation;
        is_current.then_some(entry.answer)
    }

    /// Searches a project, and stores the answer if it is complete and of the current version.
    async fn search_now(
        &self,
        found: &FoundProject,
        request: &SearchRequest,
        stages: &StageSender,
        key: &CacheKey,
    ) -> Result<CachedAnswer, DocsError> {
        let clears = self.clears.load(Ordering::SeqCst);
        let generation = self.generation(key.project).await;
        let answer = Arc::new(search(found, request, stages).await?);
        let version = found.project.corpus_version;
        let now = found.store.project(&ProjectRef::Id(found.project.id)).await?;
        let is_current = now
            .is_some_and(|now| now.corpus_version == version && now.updated_at == found.project.updated_at);
        // A warning is about something that may work the next time.
        if is_current && answer.corpus_version == version && answer.warnings.is_empty() {
            self.insert(key, &answer, generation.clone());
            if self.clears.load(Ordering::SeqCst) != clears {
                self.entries.remove(key);
            } else if let Some((shared, generation)) = self.shared.as_ref().zip(generation) {
                shared.put(found, &key.name, &generation, &answer).await;
            }
        }
        Ok(CachedAnswer { answer, is_hit: false })
    }

    /// Returns the answer that another server stored, and stores it here.
    async fn shared_answer(&self, found: &FoundProject, key: &CacheKey) -> Option<Arc<SearchAnswer>> {
        let clears = self.clears.load(Ordering::SeqCst);
        let (shared, generation) = (self.shared.as_ref()?, self.generation(key.project).await?);
        let answer = Arc::new(shared.get(found, &key.name, &generation).await?);
        self.insert(key, &answer, Some(generation));
        if self.clears.load(Ordering::SeqCst) != clears {
            self.entries.remove(key);
        }
        Some(answer)
    }

    fn insert(&self, key: &CacheKey, answer: &Arc<SearchAnswer>, generation: Option<Generation>) {
        let entry = Entry { answer: Arc::clone(answer), stored_at: Instant::now(), generation };
        self.entries.insert(key.clone(), entry);
    }

    /// Returns the generation of a project's entries that servers share, if they do and can be read.
    async fn generation(&self, project: Uuid) -> Option<Generation> {
        self.shared.as_ref()?.generation(project).await
    }

    /// Ends the answers of some projects on all servers that share their state, those of all grants. Returns the keys of
    /// those that were in the shared state.
    ///
    /// # Errors
    ///
    /// The shared state cannot be written, so that other servers may use their entries for the rest of their lifetime.
    pub async fn clear_shared(&self, projects: &[&Project]) -> Result<BTreeSet<String>, StateError> {
        match &self.shared {
            Some(shared) => shared.clear(projects).await,
            None => Ok(BTreeSet::new()),
        }
    }

    /// Returns the search of a key that is running, or a new one.
    fn shared_search(&self, key: &CacheKey) -> Arc<SharedSearch> {
        let mut running = self.running.lock();
        running.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = running.get(key).and_then(Weak::upgrade) {
            return shared;
        }
        let shared = Arc::default();
        running.insert(key.clone(), Arc::downgrade(&shared));
        shared
    }
}

impl CacheKey {
    /// Returns the key of a search.
    ///
    /// The grant and the project's id and the time of its last commit are part of the hash, so that a removed project with the same slug,
    /// and a restored one that reaches the same version again, have other keys. So are the vectors of the store, which are
    /// built after a commit, and the reranker.
    async fn new(found: &FoundProject, request: &SearchRequest, grant: &str) -> Result<Self, DocsError> {
        let SearchRequest { query, top_k, category, use_reranker } = request;
        let vectors = found.store.vectors_identity().await?.unwrap_or_default();
        let reranker = found.reranking.as_ref().filter(|_| *use_reranker).map_or("", Reranking::name);
        let project = &found.project;
        let (id, numbers) = (project.id.to_string(), format!("{top_k} {use_reranker}"));
        let category = category.as_ref().map_or("", |category| category.as_str());
        let mut hasher = Sha256::new();
        for part in [grant, &id, &project.updated_at, query.trim(), category, &numbers, &vectors, reranker] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        let hash = hexadecimal(hasher.finalize().iter().take(HASH_BYTES));
        let name = format!("{}{}:search:{hash}", name_start(&project.slug), project.corpus_version);
        Ok(Self { project: project.id, name })
    }

    /// Returns the whole key.
    fn text(&self) -> String {
        key(&self.name)
    }
}

#[cfg(test)]
mod tests;

//! Cache of the answers to searches.
//!
//! A key contains the version of the corpus and a hash of everything that changes the answer. An entry is stored only if
//! the version is still the same after the search, so that an answer is never older than the corpus that its key names.
//! Equal searches at a time run once. A cache belongs to one grant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::error::DocsError;
use super::projects::FoundProject;
use super::search::{SearchAnswer, SearchRequest, search};
use crate::fit::bytes_of;
use crate::lru::{LruCache, LruLimits};
use crate::source::documents::{Passage, ProjectRef};

/// Time after which an entry is evicted.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// Maximum bytes of the content of all entries.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes of a result besides its content.
const RESULT_BYTES: usize = 1_024;

/// Number of bytes of the hash in a key.
const HASH_BYTES: usize = 8;

/// Cache of the answers to searches. Clones share the entries.
#[derive(Debug, Clone)]
pub struct SearchCache {
    answers: LruCache<String, Arc<SearchAnswer>>,
    /// Locks of the searches that are running, by key.
    running: Arc<Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>>,
}

/// An answer with the key of its entry.
#[derive(Debug, Clone)]
pub struct CachedAnswer {
    /// Answer to the search.
    pub answer: Arc<SearchAnswer>,
    /// True if the answer was in the cache, or was found by an equal search at the same time.
    pub is_hit: bool,
    /// Key of the entry: `fraim:{slug}:v{corpus_version}:search:{hash}`.
    pub key: String,
}

/// The key of a search, and whether the cache has its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSearch {
    /// True if the answer is in the cache.
    pub is_hit: bool,
    /// Key of the entry.
    pub key: String,
}

impl Default for SearchCache {
    fn default() -> Self {
        let weight = |key: &String, answer: &Arc<SearchAnswer>| {
            let results = answer.results.iter().map(|result| {
                let Passage { chunk, document } = &result.passage;
                chunk.content.len() + bytes_of(&document.metadata) + RESULT_BYTES
            });
            key.len() + results.sum::<usize>()
        };
        let limits = LruLimits::new(MAX_BYTES).with_lifetime(LIFETIME);
        Self { answers: LruCache::with_weights(limits, weight), running: Arc::default() }
    }
}

impl SearchCache {
    /// Returns the key of a search, and true if the cache has its answer.
    #[must_use]
    pub fn get(&self, found: &FoundProject, request: &SearchRequest) -> KnownSearch {
        let key = key_of(found, request);
        KnownSearch { is_hit: self.answers.get(&key).is_some(), key }
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
        let key = key_of(found, request);
        let hit = |answer| CachedAnswer { answer, is_hit: true, key: key.clone() };
        if let Some(answer) = self.answers.get(&key) {
            return Ok(hit(answer));
        }
        let lock = self.lock_of(&key);
        let _running = lock.lock().await;
        if let Some(answer) = self.answers.get(&key) {
            return Ok(hit(answer));
        }
        let answer = Arc::new(search(found, request).await?);
        let version = found.project.corpus_version;
        let now = found.store.project(&ProjectRef::Id(found.project.id)).await?;
        let is_current = now
            .is_some_and(|now| now.corpus_version == version && now.updated_at == found.project.updated_at);
        // A warning is about something that may work the next time.
        if is_current && answer.corpus_version == version && answer.warnings.is_empty() {
            self.answers.insert(key.clone(), Arc::clone(&answer));
        }
        Ok(CachedAnswer { answer, is_hit: false, key })
    }

    fn lock_of(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = running.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        running.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

/// Returns the key of a search. The project's id and the time of its last commit are part of the hash, so that a removed
/// project with the same slug, and a restored one that reaches the same version again, have other keys.
fn key_of(found: &FoundProject, request: &SearchRequest) -> String {
    let SearchRequest { query, top_k, category, use_reranker } = request;
    let mut hasher = Sha256::new();
    let category = category.as_ref().map_or("", |category| category.as_str());
    let (id, numbers) = (found.project.id.to_string(), format!("{top_k} {use_reranker}"));
    for part in [id.as_str(), &found.project.updated_at, query.trim(), category, &numbers] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let hash = hash.iter().take(HASH_BYTES).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let project = &found.project;
    format!("fraim:{}:v{}:search:{hash}", project.slug, project.corpus_version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::documents::{Category, DocumentChange, DocumentStore, conformance};
    use crate::source::store::{Store, SyncStore};

    async fn found(folder: &std::path::Path) -> FoundProject {
        let path = folder.join("store.db");
        drop(SyncStore::open_or_create(&path).unwrap());
        let store = Store::open("store".parse().unwrap(), &path).unwrap();
        let project = conformance::project(&store, "docs").await;
        conformance::put(&store, &project, "a.md", "The zebra is here.").await;
        let project = store.project(&ProjectRef::Id(project.id)).await.unwrap().unwrap();
        FoundProject { store: Arc::new(store), project, reranking: None }
    }

    async fn again(found: &FoundProject) -> FoundProject {
        let project = found.store.project(&ProjectRef::Id(found.project.id)).await.unwrap().unwrap();
        FoundProject { project, ..found.clone() }
    }

    fn request(query: &str) -> SearchRequest {
        SearchRequest { query: query.to_owned(), top_k: 5, category: None, use_reranker: true }
    }

    #[tokio::test]
    async fn equal_searches_are_hits_until_the_corpus_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, of) = (SearchCache::default(), found(folder.path()).await);
        let first = cache.search(&of, &request("zebra")).await.unwrap();
        assert!(!first.is_hit && first.answer.results.len() == 1);
        let start = format!("fraim:docs:v{}:search:", of.project.corpus_version);
        assert!(first.key.strip_prefix(&start).is_some_and(|hash| hash.len() == 16), "{}", first.key);
        let second = cache.search(&of, &request(" zebra ")).await.unwrap();
        assert!(second.is_hit && second.answer == first.answer && second.key == first.key);
        for other in [
            request("zebras"),
            SearchRequest { top_k: 6, ..request("zebra") },
            SearchRequest { category: Some(Category::general()), ..request("zebra") },
            SearchRequest { use_reranker: false, ..request("zebra") },
        ] {
            assert!(!cache.search(&of, &other).await.unwrap().is_hit, "{other:?}");
        }
        let gone = vec![DocumentChange::Delete("a.md".parse().unwrap())];
        of.store.commit(of.project.id, gone).await.unwrap();
        let after = cache.search(&again(&of).await, &request("zebra")).await.unwrap();
        assert!(!after.is_hit && after.answer.results.is_empty());
    }

    #[tokio::test]
    async fn an_answer_from_another_version_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, of) = (SearchCache::default(), found(folder.path()).await);
        conformance::put(&*of.store, &of.project, "b.md", "Another zebra.").await;
        // The project was read before the commit, so its key names the version before.
        let late = cache.search(&of, &request("zebra")).await.unwrap();
        assert!(!late.is_hit && late.answer.corpus_version > of.project.corpus_version);
        assert!(!cache.search(&of, &request("zebra")).await.unwrap().is_hit);
        assert!(!cache.search(&again(&of).await, &request("zebra")).await.unwrap().is_hit);
        assert!(cache.search(&again(&of).await, &request("zebra")).await.unwrap().is_hit);
    }

    /// Random commits, after each of which two searches must agree with the documents that there are.
    #[tokio::test]
    async fn no_answer_is_older_than_the_last_commit() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, of) = (SearchCache::default(), found(folder.path()).await);
        let mut present = std::collections::BTreeSet::from([u32::MAX]);
        let mut random = 7_u32;
        for _round in 0..120 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (random >> 24) % 12;
            let path = format!("n{number}.md");
            if random & 1 == 0 {
                conformance::put(&*of.store, &of.project, &path, &format!("The zebra {random}.")).await;
                present.insert(number);
            } else {
                let gone = vec![DocumentChange::Delete(path.parse().unwrap())];
                of.store.commit(of.project.id, gone).await.unwrap();
                present.remove(&number);
            }
            let (now, wide) = (again(&of).await, SearchRequest { top_k: 50, ..request("zebra") });
            let first = cache.search(&now, &wide).await.unwrap();
            let second = cache.search(&now, &wide).await.unwrap();
            assert_eq!(first.answer, second.answer);
            assert_eq!(first.answer.results.len(), present.len());
            let ids: Vec<_> = first.answer.results.iter().map(|result| result.passage.chunk.id).collect();
            assert_eq!(of.store.passages(of.project.id, &ids).await.unwrap().len(), ids.len());
        }
    }

    #[tokio::test]
    async fn equal_searches_at_a_time_run_once() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, of) = (SearchCache::default(), found(folder.path()).await);
        let (one, other) = (request("zebra"), request("zebra"));
        let (one, other) = tokio::join!(cache.search(&of, &one), cache.search(&of, &other));
        assert_eq!([one.unwrap().is_hit, other.unwrap().is_hit], [false, true]);
    }
}

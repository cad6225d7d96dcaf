//! Tests of the cache of searches.

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use fetchwell_conformance::documents as conformance;
use fetchwell_embedding::{RerankError, Reranker};
use fetchwell_source::RecordReads;
use fetchwell_source::documents::{Category, DocumentChange, DocumentStore};
use fetchwell_sqlite::{SqliteStore, SqliteSyncStore};
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;

async fn found(folder: &std::path::Path) -> FoundProject {
    let path = folder.join("store.db");
    drop(SqliteSyncStore::open_or_create(&path).unwrap());
    let store = SqliteStore::open("store".parse().unwrap(), &path).unwrap();
    let project = conformance::project(&store, "docs").await;
    conformance::put(&store, &project, "a.md", "The zebra is here.").await;
    let project = store.project(&ProjectRef::Id(project.id)).await.unwrap().unwrap();
    let connection = project.slug.connection().clone();
    FoundProject {
        store: Arc::new(store),
        project,
        connection,
        reranking: None,
        keeps_history: true,
        reads: RecordReads::default(),
    }
}

async fn again(found: &FoundProject) -> FoundProject {
    let project = found.store.project(&ProjectRef::Id(found.project.id)).await.unwrap().unwrap();
    FoundProject { project, ..found.clone() }
}

fn request(query: &str) -> SearchRequest {
    SearchRequest { query: query.to_owned(), top_k: 5, category: None, use_reranker: true }
}

/// Searches, and returns the answer with the key that the stage of the cache has.
async fn keyed(cache: &SearchCache, of: &FoundProject, request: &SearchRequest) -> (CachedAnswer, String) {
    let (stages, mut ended) = StageSender::channel();
    let cached = cache.search_in_stages(of, request, &stages).await.unwrap();
    let Some(SearchStage::CacheCheck(CacheStage { hit, key })) = ended.recv().await else { panic!() };
    assert_eq!(hit, cached.is_hit);
    (cached, key)
}

#[tokio::test]
async fn equal_searches_are_hits_until_the_corpus_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, of) = (SearchCache::default(), found(folder.path()).await);
    let (first, key) = keyed(&cache, &of, &request("zebra")).await;
    assert!(!first.is_hit && first.answer.results.len() == 1);
    let start = format!("fraim:docs:v{}:search:", of.project.corpus_version);
    assert!(key.strip_prefix(&start).is_some_and(|hash| hash.len() == 16), "{key}");
    let (second, same_key) = keyed(&cache, &of, &request(" zebra ")).await;
    assert!(second.is_hit && second.answer == first.answer && same_key == key);
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
    let mut present = BTreeSet::from([u32::MAX]);
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

/// A reranker that waits for a permit. If it fails, answers have a warning and are not stored.
#[derive(Debug)]
struct GatedReranker {
    fails: bool,
    calls: AtomicUsize,
    permits: Semaphore,
}

impl GatedReranker {
    /// Waits until a search has called the reranker.
    async fn wait_for_call(&self) {
        while self.calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Reranker for GatedReranker {
    async fn scores(&self, _query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.permits.acquire().await.unwrap().forget();
        if !self.fails {
            return Ok(vec![0.5; passages.len()]);
        }
        let (place, problem) = ("x".to_owned(), "y".to_owned());
        Err(RerankError::InvalidResponse { place, problem })
    }
}

/// Returns a project of two documents with reranked candidates.
async fn reranked(folder: &std::path::Path, fails: bool) -> (Arc<GatedReranker>, FoundProject) {
    let of = found(folder).await;
    conformance::put(&*of.store, &of.project, "b.md", "Another zebra.").await;
    let gated = Arc::new(GatedReranker { fails, calls: AtomicUsize::new(0), permits: Semaphore::new(0) });
    let shared: Arc<dyn Reranker> = Arc::clone(&gated) as _;
    let reranking = Some(Reranking::new("gated", shared, Duration::from_secs(60)));
    (gated, FoundProject { reranking, ..again(&of).await })
}

#[tokio::test]
async fn waiting_searches_share_an_answer_that_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (gated, of) = reranked(folder.path(), true).await;
    let (cache, equal) = (SearchCache::default(), request("zebra"));
    // One permit: a second search would wait for ever.
    gated.permits.add_permits(1);
    let answers = join_all((0..10).map(|_| cache.search(&of, &equal))).await;
    let answers: Vec<CachedAnswer> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|cached| !cached.is_hit).count(), 1);
    let first = &answers.first().unwrap().answer;
    assert!(first.warnings.len() == 1 && answers.iter().all(|cached| Arc::ptr_eq(&cached.answer, first)));
    assert_eq!(gated.calls.load(Ordering::SeqCst), 1);
    gated.permits.add_permits(1);
    assert!(!cache.search(&of, &equal).await.unwrap().is_hit);
    assert_eq!(gated.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_cancelled_search_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (gated, of) = reranked(folder.path(), true).await;
    let cache = SearchCache::default();
    let search = || {
        let (cache, of) = (cache.clone(), of.clone());
        tokio::spawn(async move { cache.search(&of, &request("zebra")).await })
    };
    let first = search();
    gated.wait_for_call().await;
    let second = search();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gated.permits.add_permits(1);
    assert!(!second.await.unwrap().unwrap().is_hit);
    assert_eq!(gated.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn searches_that_waited_for_a_failed_one_run_at_the_same_time() {
    let (folder, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (gated, of) = reranked(folder.path(), false).await;
    for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), copied.path().join(file.file_name())).unwrap();
        }
    }
    // The key of a search names the project, and not the file that has it.
    let copy = copied.path().join("store.db");
    let failing = Arc::new(SqliteStore::open("store".parse().unwrap(), &copy).unwrap());
    let failing = FoundProject { store: failing, ..of.clone() };
    let cache = SearchCache::default();
    let search = |of: &FoundProject| {
        let (cache, of) = (cache.clone(), of.clone());
        tokio::spawn(async move { cache.search(&of, &request("zebra")).await })
    };
    let first = search(&failing);
    gated.wait_for_call().await;
    let others = [search(&of), search(&of)];
    for _turn in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gated.calls.load(Ordering::SeqCst), 1, "equal searches wait");
    std::fs::remove_file(&copy).unwrap();
    gated.permits.add_permits(1);
    first.await.unwrap().unwrap_err();
    // None of them has a permit, so the second one is here only if it does not wait for the other.
    let both = async {
        while gated.calls.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
    gated.permits.add_permits(2);
    for other in others {
        assert!(!other.await.unwrap().unwrap().is_hit);
    }
}

#[tokio::test]
async fn the_reranker_is_part_of_the_key_where_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (gated, of) = reranked(folder.path(), true).await;
    let shared: Arc<dyn Reranker> = gated as _;
    let other = Some(Reranking::new("other", shared, Duration::from_secs(60)));
    let other = FoundProject { reranking: other, ..of.clone() };
    let key = async |of: &FoundProject, use_reranker| {
        CacheKey::new(of, &SearchRequest { use_reranker, ..request("zebra") }, "").await.unwrap()
    };
    assert_ne!(key(&of, true).await, key(&other, true).await);
    assert_eq!(key(&of, false).await, key(&other, false).await);
}

#[tokio::test]
async fn an_entry_expires_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, of) = (SearchCache::default(), found(folder.path()).await);
    assert!(!cache.search(&of, &request("zebra")).await.unwrap().is_hit);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_599)).await;
    assert!(cache.search(&of, &request("zebra")).await.unwrap().is_hit);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!cache.search(&of, &request("zebra")).await.unwrap().is_hit);
    assert!(cache.search(&of, &request("zebra")).await.unwrap().is_hit);
}

#[tokio::test]
async fn a_cleared_project_is_searched_again() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, of) = (SearchCache::default(), found(folder.path()).await);
    assert!(!cache.search(&of, &request("zebra")).await.unwrap().is_hit);
    assert_eq!(cache.clear(|_project| false).len(), 0);
    assert!(cache.search(&of, &request("zebra")).await.unwrap().is_hit);
    assert_eq!(cache.clear(|project| project == of.project.id).len(), 1);
    assert!(!cache.search(&of, &request("zebra")).await.unwrap().is_hit);
}

#[tokio::test]
async fn a_search_that_ends_after_the_cache_was_cleared_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (gated, of) = reranked(folder.path(), false).await;
    let (cache, equal) = (SearchCache::default(), request("zebra"));
    let clear = async {
        gated.wait_for_call().await;
        cache.clear(|_project| true);
        gated.permits.add_permits(9);
    };
    let (first, ()) = tokio::join!(cache.search(&of, &equal), clear);
    assert!(!first.unwrap().is_hit);
    assert!(!cache.search(&of, &equal).await.unwrap().is_hit);
    assert!(cache.search(&of, &equal).await.unwrap().is_hit);
}

//! Searches of a project while other tasks change its documents, in one process: no answer is stale, and every id of an
//! answer can be read.
//!
//! Two tasks change the documents of a store, and two search it through one cache. A logical clock orders the calls, and a
//! ledger has every state of every document with the time of its commit. An answer without a warning may show any state that
//! a document had between the start and the end of its search, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use fetchwell_core::record::RecordData;
use fetchwell_source::RecordReads;
use fetchwell_source::documents::{
    Category, DocumentChange, DocumentRef, DocumentStore, NewDocument, NewProject, ProjectRef,
    ProjectSettings, ProjectSlug, Uuid,
};
use fetchwell_sqlite::{SqliteStore, SqliteSyncStore};
use fetchwell_tools::documents::{CachedAnswer, FoundProject, SearchCache, SearchRequest};

/// Environment variable with the number of commits and searches.
const CALLS: &str = "FETCHWELL_INTERLEAVINGS";

/// Number of commits and searches without the variable.
const FEW_CALLS: usize = 2_000;

/// Number of tasks that change documents. Each has documents of its own, so that the states of a document have an order.
const WRITERS: usize = 2;

/// Number of tasks that search.
const SEARCHERS: usize = 2;

/// Number of documents of each writer.
const DOCUMENTS: usize = 6;

/// A state of a document: its text, or `None` if there is no document.
#[derive(Debug, Clone)]
struct State {
    text: Option<String>,
    /// Time before its commit.
    began: u64,
    /// Time after its commit, once there is one.
    ended: Option<u64>,
}

/// A change of a document to a text, or its deletion.
#[derive(Debug)]
struct Edit {
    path: String,
    text: Option<String>,
}

impl Edit {
    fn change(&self) -> DocumentChange {
        let path = self.path.parse().unwrap();
        match &self.text {
            None => DocumentChange::Delete(path),
            Some(text) => DocumentChange::Put(NewDocument {
                path,
                title: None,
                category: Category::general(),
                metadata: RecordData::new(),
                text: text.clone(),
            }),
        }
    }
}

/// Numbers of answers.
#[derive(Debug, Default)]
struct AnswerCounts {
    answers: usize,
    /// Answers from the cache.
    hits: usize,
    /// Answers that say that they may miss documents.
    warned: usize,
}

impl AnswerCounts {
    fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.hits += other.hits;
        self.warned += other.warned;
    }
}

/// The states of all documents, and the clock.
#[derive(Debug, Default)]
struct Ledger {
    clock: u64,
    states: BTreeMap<String, Vec<State>>,
    /// Version of the corpus after the last commit.
    version: i64,
}

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Adds the states of a commit that begins.
    fn begin(&mut self, edits: &[Edit]) {
        let began = self.tick();
        for Edit { path, text } in edits {
            let absent = State { text: None, began: 0, ended: Some(0) };
            let states = self.states.entry(path.clone()).or_insert_with(|| vec![absent]);
            states.push(State { text: text.clone(), began, ended: None });
        }
    }

    fn end(&mut self, edits: &[Edit], version: i64) {
        let now = self.tick();
        for edit in edits {
            self.states.get_mut(&edit.path).unwrap().last_mut().unwrap().ended = Some(now);
        }
        self.version = self.version.max(version);
    }

    /// Returns the texts that a document had between two times.
    fn texts(&self, path: &str, from: u64, to: u64) -> Vec<Option<&str>> {
        let states = &self.states[path];
        let is_over = |next: Option<&State>| next.and_then(|next| next.ended).is_some_and(|end| end < from);
        let had =
            states.iter().enumerate().filter(|(at, state)| state.began < to && !is_over(states.get(at + 1)));
        had.map(|(_, state)| state.text.as_deref()).collect()
    }
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    /// Lets other tasks run, sometimes.
    async fn pause(&mut self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

/// A store with one project, shared by the tasks.
#[derive(Clone)]
struct Site {
    store: Arc<SqliteStore>,
    project: Uuid,
    cache: SearchCache,
    ledger: Arc<Mutex<Ledger>>,
}

impl Site {
    async fn new(folder: &Path) -> Self {
        let path = folder.join("store.db");
        drop(SqliteSyncStore::open_or_create(&path).unwrap());
        let store = Arc::new(SqliteStore::open("store".parse().unwrap(), &path).unwrap());
        let slug: ProjectSlug = "docs".parse().unwrap();
        let new = NewProject { name: (&slug).into(), slug, settings: ProjectSettings::default() };
        let project = store.create_project(&new).await.unwrap().unwrap().id;
        let site = Self { store, project, cache: SearchCache::default(), ledger: Arc::default() };
        // The first search creates the index, which needs the write lock.
        let edit = Edit { path: "first.md".to_owned(), text: Some("Words of another kind.".to_owned()) };
        site.store.commit(project, vec![edit.change()]).await.unwrap();
        site.answer("kind").await;
        site
    }

    /// Writes and deletes documents of one writer.
    async fn write(self, writer: usize, commits: usize) {
        let mut random = Random(writer as u64 + 1);
        for commit in 0..commits {
            let mut paths = BTreeSet::from([random.below(DOCUMENTS)]);
            if random.below(4) == 0 {
                paths.insert(random.below(DOCUMENTS));
            }
            let edit = |number| Edit {
                text: (random.below(3) > 0).then(|| format!("The zebra w{writer}c{commit}d{number}.")),
                path: format!("w{writer}/d{number}.md"),
            };
            let edits: Vec<Edit> = paths.into_iter().map(edit).collect();
            self.ledger.lock().unwrap().begin(&edits);
            let changes = edits.iter().map(Edit::change).collect();
            let committed = self.store.commit(self.project, changes).await.unwrap().unwrap();
            self.ledger.lock().unwrap().end(&edits, committed.corpus_version);
            random.pause().await;
        }
    }

    /// Searches and checks each answer.
    async fn search(self, searcher: usize, searches: usize) -> AnswerCounts {
        let mut random = Random(searcher as u64 + 100);
        let mut seen = AnswerCounts { answers: searches, ..AnswerCounts::default() };
        for search in 0..searches {
            // Every other search is equal to the one before, and a hit if no commit is between them.
            let query = ["zebra", "the zebra"][search / 2 % 2];
            let (from, version) = self.now();
            random.pause().await;
            let cached = self.answer(query).await;
            seen.hits += usize::from(cached.is_hit);
            assert!(cached.answer.corpus_version >= version, "{} < {version}", cached.answer.corpus_version);
            // While another commit has the write lock, a search says that it may miss records. Equal searches at that time share
            // its answer; the tests of the cache check that it is not stored.
            match cached.answer.warnings.first() {
                None => self.check(&cached, from),
                Some(warning) => {
                    assert!(warning.contains("not searchable yet"), "{warning}");
                    seen.warned += 1;
                }
            }
            random.pause().await;
            self.read(&cached).await;
        }
        seen
    }

    /// Searches as a request does: with the project as it is now.
    async fn answer(&self, query: &str) -> CachedAnswer {
        let query = query.to_owned();
        let request = SearchRequest { query, top_k: 50, category: None, use_reranker: true };
        let project = self.store.project(&ProjectRef::Id(self.project)).await.unwrap().unwrap();
        let connection = project.slug.connection().clone();
        let found = FoundProject {
            store: self.store.clone(),
            project,
            connection,
            reranking: None,
            keeps_history: true,
            reads: RecordReads::default(),
        };
        tokio::task::yield_now().await;
        self.cache.search(&found, &request).await.unwrap()
    }

    /// Returns the time, and the version of the corpus.
    fn now(&self) -> (u64, i64) {
        let mut ledger = self.ledger.lock().unwrap();
        (ledger.tick(), ledger.version)
    }

    /// Asserts that an answer shows each document as it was between a time and now.
    fn check(&self, cached: &CachedAnswer, from: u64) {
        let mut ledger = self.ledger.lock().unwrap();
        let to = ledger.tick();
        let results = cached.answer.results.iter().map(|result| &result.passage);
        let shown: BTreeMap<&str, &str> =
            results.map(|passage| (passage.document.path.as_str(), passage.chunk.content.as_str())).collect();
        assert_eq!(shown.len(), cached.answer.results.len(), "a document is shown twice");
        for path in ledger.states.keys() {
            let (texts, shown) = (ledger.texts(path, from, to), shown.get(path.as_str()).copied());
            // A document that changes between the ranking and the reading of its chunk may be left out.
            let may_be_absent = shown.is_none() && texts.len() > 1;
            assert!(
                texts.contains(&shown) || may_be_absent,
                "{path} is shown as {shown:?}, and was {texts:?} (hit: {})",
                cached.is_hit
            );
        }
    }

    /// Reads all ids of an answer. Only those of documents that changed since may be gone.
    async fn read(&self, cached: &CachedAnswer) {
        for result in &cached.answer.results {
            let (chunk, document) = (&result.passage.chunk, &result.passage.document);
            let passages = self.store.passages(self.project, &[chunk.id]).await.unwrap();
            let found = self.store.document(self.project, &DocumentRef::Id(document.id)).await.unwrap();
            let text = self.store.text(self.project, document.id).await.unwrap();
            let is_there = passages.len() == 1 && found.is_some() && text.as_ref() == Some(&chunk.content);
            let ledger = self.ledger.lock().unwrap();
            let last = ledger.states[document.path.as_str()].last().unwrap();
            assert!(is_there || last.text.as_ref() != Some(&chunk.content), "{document:?} cannot be read");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_searches_are_never_stale() {
    #[expect(clippy::disallowed_methods, reason = "it is said to the test, and not to the program")]
    let calls = std::env::var(CALLS).map_or(FEW_CALLS, |calls| calls.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let each = calls / (WRITERS + SEARCHERS);
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(site.clone().write(writer, each))).collect();
    let searchers: Vec<_> =
        (0..SEARCHERS).map(|number| tokio::spawn(site.clone().search(number, each))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut seen = AnswerCounts::default();
    for searcher in searchers {
        seen.add(&searcher.await.unwrap());
    }
    // After the last commit, no answer has a warning.
    let last = site.clone().search(SEARCHERS, 20).await;
    assert_eq!(last.warned, 0);
    seen.add(&last);
    assert!(seen.hits > 0 && seen.warned < seen.answers, "{seen:?}");
}

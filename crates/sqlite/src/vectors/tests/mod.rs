//! Tests of builds and searches with a model of bags of words.
//!
//! * `hidden_streams`, `refused_texts`: hidden streams, and texts that the model refuses
//! * `scan_recall`: the share of the nearest vectors that a scan finds

mod hidden_streams;
mod refused_texts;
mod scan_recall;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use fetchwell_embedding::{
    EmbeddingError, EmbeddingModel, EstimatedPieces, ModelIdentity, PROBE_TEXT, PieceCount, Purpose,
    QueryVector,
};
use fetchwell_ranking::meaning::{ScoreSpread, VectorHit};
use fetchwell_source::contract::{
    BuildMode, BuildProgress, Change, EmbeddedStreams, IncomingRecord, NewConnection, VectorError,
    no_progress,
};
use fetchwell_source::sync::ImportTarget;
use fetchwell_source::vectors::{StoreVectors as _, build_vectors};
use serde_json::json;

use super::build::{estimate_build, remove_vectors};
use super::*;
use crate::SqliteTarget;

/// A word that the model refuses to embed.
const REFUSED_WORD: &str = "unembeddable";

const PIECES: EstimatedPieces = EstimatedPieces { limit: 48 };

/// A model that counts words by their hashes.
#[derive(Debug)]
struct BagOfWords {
    id: String,
    dimensions: usize,
    texts: AtomicUsize,
    /// Number of texts after which the model fails.
    fails_after: usize,
    /// Added to every hash: another number is another model.
    salt: u64,
    /// True if it refuses a word.
    refuses: bool,
}

impl BagOfWords {
    fn new(id: &str) -> Arc<Self> {
        Self::with(id, usize::MAX, 0)
    }

    fn with(id: &str, fails_after: usize, salt: u64) -> Arc<Self> {
        Arc::new(Self {
            id: id.to_owned(),
            dimensions: 64,
            texts: AtomicUsize::new(0),
            fails_after,
            salt,
            refuses: true,
        })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.01; self.dimensions];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let hash =
                word.bytes().fold(17 + self.salt, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
            vector[usize::try_from(hash % 64).unwrap()] += 1.0;
        }
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    }

    fn query(&self, text: &str) -> QueryVector {
        let (id, probe) = (self.id.as_str(), self.vector(PROBE_TEXT).into());
        let model = ModelIdentity { id: id.into(), probe };
        QueryVector { model, name: id.into(), numbers: self.vector(text).into() }
    }

    fn embedded(&self) -> usize {
        self.texts.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl EmbeddingModel for BagOfWords {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn pieces(&self) -> &dyn PieceCount {
        &PIECES
    }

    fn batch(&self) -> usize {
        4
    }

    fn is_remote(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[String], _purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let of_records = texts.iter().filter(|text| *text != PROBE_TEXT).count();
        if self.texts.fetch_add(of_records, Ordering::Relaxed) + of_records > self.fails_after {
            return Err(EmbeddingError::RateLimited { place: "test".to_owned(), retry_after: None });
        }
        if self.refuses && texts.iter().any(|text| text.contains(REFUSED_WORD)) {
            return Err(EmbeddingError::Refused { place: "test".to_owned(), status: 400, message: None });
        }
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

struct Notes {
    _folder: tempfile::TempDir,
    store: PathBuf,
}

impl Notes {
    fn new(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = Self { store: folder.path().join("notes.db"), _folder: folder };
        notes.put("notes", 0..count);
        notes
    }

    fn write(&self, stream: &str, changes: impl IntoIterator<Item = (usize, Change)>) {
        let connection = NewConnection {
            connection_id: "work".parse().unwrap(),
            connector_key: "notes".to_owned(),
            display_name: None,
            manifest: None,
        };
        let mut writer = SqliteTarget::new(&self.store).open(&connection, None, &no_progress).unwrap();
        for (key, change) in changes {
            let incoming = IncomingRecord {
                stream: stream.parse().unwrap(),
                key: format!("n{key}").parse().unwrap(),
                change,
            };
            writer.write(incoming, 1).unwrap();
        }
        writer.finish(&no_progress).unwrap();
    }

    fn put(&self, stream: &str, keys: std::ops::Range<usize>) {
        self.put_texts(stream, keys.map(|key| (key, format!("word{key} and topic{}", key % 7))));
    }

    fn put_texts(&self, stream: &str, texts: impl IntoIterator<Item = (usize, String)>) {
        let put = |(key, text): (usize, String)| {
            let data = serde_json::from_value(json!({"title": format!("Note {key}"), "text": text})).unwrap();
            (key, Change::Put { data, emitted_at: None })
        };
        self.write(stream, texts.into_iter().map(put));
    }

    async fn build(&self, model: &Arc<BagOfWords>, mode: BuildMode) -> Result<BuildProgress, VectorError> {
        self.build_streams(model, mode, EmbeddedStreams::default()).await
    }

    async fn build_streams(
        &self,
        model: &Arc<BagOfWords>,
        mode: BuildMode,
        streams: EmbeddedStreams,
    ) -> Result<BuildProgress, VectorError> {
        let model: Arc<dyn EmbeddingModel> = Arc::clone(model) as _;
        let mut builder = VectorBuilder::open(&self.store, model, mode, streams).await?;
        build_vectors(&mut builder, &AtomicBool::new(false), |_| {}).await
    }

    fn search(&self, model: &BagOfWords, query: &str, scope: &VectorScope) -> Vec<VectorHit> {
        VectorIndex::new(&self.store, usize::MAX).search(&model.query(query), 5, scope).unwrap().hits
    }

    fn status(&self) -> fetchwell_source::contract::VectorStatus {
        vector_status(&self.store, &EmbeddedStreams::default()).unwrap()
    }
}

#[tokio::test]
async fn builds_are_incremental_and_follow_deletions() {
    let (notes, model) = (Notes::new(30), BagOfWords::new("a"));
    let done = notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!((done.records, done.embedded, model.embedded()), (30, 30, 30));
    let everything = VectorScope::default();
    let best = notes.search(&model, "word3 topic3", &everything);
    assert_eq!(best.len(), 5);
    let found = best.first().unwrap().record;
    // Nothing changed, so nothing is embedded.
    assert_eq!(notes.build(&model, BuildMode::Missing).await.unwrap(), BuildProgress::default());
    notes.write("notes", [(3, Change::Delete { deleted_at: None })]);
    notes.put_texts("notes", [(4, "something quite different".to_owned())]);
    assert_eq!(notes.status().current.unwrap().missing_records, 2);
    let done = notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!((done.records, done.embedded), (2, 1));
    assert!(notes.search(&model, "word3 topic3", &everything).iter().all(|hit| hit.record != found));
    let changed = notes.search(&model, "something quite different", &everything);
    // Only the changed record has these words; the others share those of its title and field names.
    assert!(changed[0].score > changed[1].score + 0.1, "{changed:?}");
    let status = notes.status();
    assert_eq!((status.current.unwrap().chunks, status.building), (29, None));
}

#[tokio::test]
async fn an_interrupted_build_continues() {
    let notes = Notes::new(30);
    let failing = BagOfWords::with("a", 12, 0);
    let error = notes.build(&failing, BuildMode::Missing).await.unwrap_err();
    assert!(matches!(error, VectorError::Embedding(EmbeddingError::RateLimited { .. })), "{error}");
    let status = notes.status();
    assert_eq!((status.current, status.building.unwrap().chunks), (None, 12));
    let model = BagOfWords::new("a");
    assert!(notes.search(&model, "word3", &VectorScope::default()).is_empty());
    notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!((model.embedded(), notes.status().current.unwrap().chunks), (18, 30));
}

#[tokio::test]
async fn a_new_model_replaces_the_old_one_at_the_end() {
    let (notes, one) = (Notes::new(20), BagOfWords::new("a"));
    notes.build(&one, BuildMode::Missing).await.unwrap();
    notes.build(&BagOfWords::with("b", 8, 5), BuildMode::Missing).await.unwrap_err();
    let index = VectorIndex::new(&notes.store, usize::MAX);
    assert_eq!(index.model().unwrap().unwrap().id, "a");
    assert_eq!(notes.search(&one, "word3", &VectorScope::default()).len(), 5);
    let two = BagOfWords::with("b", usize::MAX, 5);
    notes.build(&two, BuildMode::Missing).await.unwrap();
    assert_eq!((index.model().unwrap().unwrap().id.as_str(), two.embedded()), ("b", 12));
    let status = notes.status();
    assert_eq!((status.current.unwrap().chunks, status.building), (20, None));
}

#[tokio::test]
async fn a_changed_model_of_the_same_name_is_refused_until_a_rebuild() {
    let notes = Notes::new(10);
    notes.build(&BagOfWords::new("a"), BuildMode::Missing).await.unwrap();
    let changed = BagOfWords::with("a", usize::MAX, 3);
    let error = notes.build(&changed, BuildMode::Missing).await.unwrap_err();
    assert!(matches!(error, VectorError::ModelChanged(_)), "{error}");
    notes.build(&changed, BuildMode::All).await.unwrap();
    assert_eq!(changed.embedded(), 10);
    notes.build(&changed, BuildMode::Missing).await.unwrap();
}

#[tokio::test]
async fn an_interrupted_rebuild_is_continued_without_vectors_of_the_model_before() {
    let notes = Notes::new(20);
    notes.build(&BagOfWords::new("a"), BuildMode::Missing).await.unwrap();
    notes.build(&BagOfWords::with("a", 8, 3), BuildMode::All).await.unwrap_err();
    assert_eq!(notes.status().building.unwrap().chunks, 8);
    let changed = BagOfWords::with("a", usize::MAX, 3);
    notes.build(&changed, BuildMode::Missing).await.unwrap();
    assert_eq!(changed.embedded(), 12);
    // The same vectors as those of a build that was never interrupted.
    let whole = Notes::new(20);
    whole.build(&changed, BuildMode::Missing).await.unwrap();
    for key in 0..20 {
        let query = format!("word{key} and topic{}", key % 7);
        let found = |notes: &Notes| notes.search(&changed, &query, &VectorScope::default());
        assert_eq!(found(&notes), found(&whole), "{key}");
    }
}

#[tokio::test]
async fn steps_leave_the_lock_free_and_follow_changes() {
    let (notes, model) = (Notes::new(10), BagOfWords::new("a"));
    let shared: Arc<dyn EmbeddingModel> = Arc::clone(&model) as _;
    let mut build = SqliteVectors::new(&notes.store, EmbeddedStreams::default());
    let first = build.version().await.unwrap();
    assert_eq!(build.step(&shared).await.unwrap().unwrap().embedded, 4);
    assert!(!notes.status().is_locked);
    // A command completes the vectors, and deletes them, between two steps.
    notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!(build.step(&shared).await.unwrap(), None);
    assert!(remove_vectors(&notes.store).await.unwrap());
    assert_eq!(build.step(&shared).await.unwrap().unwrap().embedded, 4);
    while build.step(&shared).await.unwrap().is_some() {}
    assert_eq!(build.version().await.unwrap(), first);
    notes.put("notes", 10..11);
    assert_ne!(build.version().await.unwrap(), first);
    assert_eq!(build.step(&shared).await.unwrap().unwrap().records, 1);
    assert_eq!(build.step(&shared).await.unwrap(), None);
    assert_eq!((notes.status().current.unwrap().chunks, model.embedded()), (11, 21));
    let other = VectorBuilder::open(
        &notes.store,
        Arc::clone(&shared),
        BuildMode::Missing,
        EmbeddedStreams::default(),
    )
    .await
    .unwrap();
    assert!(matches!(build.step(&shared).await, Err(VectorError::Busy(_))));
    drop(other);
}

#[tokio::test]
async fn another_store_at_the_path_reuses_the_vectors_of_equal_texts() {
    let (notes, model) = (Notes::new(20), BagOfWords::new("a"));
    notes.build(&model, BuildMode::Missing).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(fetchwell_state::beside(&notes.store, suffix));
    }
    notes.put("notes", 5..25);
    let again = BagOfWords::new("a");
    let done = notes.build(&again, BuildMode::Missing).await.unwrap();
    assert_eq!((done.chunks, again.embedded()), (20, 5));
    assert_eq!(notes.status().current.unwrap().chunks, 20);
}

#[tokio::test]
async fn equal_texts_are_embedded_once() {
    let (notes, model) = (Notes::new(0), BagOfWords::new("a"));
    let same = |key| {
        (
            key,
            Change::Put { data: serde_json::from_value(json!({"text": "same"})).unwrap(), emitted_at: None },
        )
    };
    notes.write("notes", (0..50).map(same));
    notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!((model.embedded(), notes.status().current.unwrap().chunks), (1, 50));
}

#[tokio::test]
async fn scopes_are_exact_and_vectors_beyond_the_memory_are_searched() {
    let (notes, model) = (Notes::new(300), BagOfWords::new("a"));
    notes.put("letters", 0..50);
    notes.build(&model, BuildMode::Missing).await.unwrap();
    let everything = notes.search(&model, "topic3", &VectorScope::default());
    for bytes in [0, usize::MAX] {
        let index = VectorIndex::new(&notes.store, bytes);
        let query = model.query("topic3");
        assert_eq!(index.search(&query, 5, &VectorScope::default()).unwrap().hits, everything);
        let streams = VectorScope { streams: Some(vec![2]), ..VectorScope::default() };
        let hits = index.search(&query, 100, &streams).unwrap().hits;
        assert_eq!(hits.len(), 50);
        let records = VectorScope { records: Some([7, 8].into()), ..VectorScope::default() };
        let mut hits: Vec<i64> =
            index.search(&query, 5, &records).unwrap().hits.iter().map(|hit| hit.record).collect();
        hits.sort_unstable();
        assert_eq!(hits, [7, 8]);
        let none = VectorScope { connection: Some(99), ..VectorScope::default() };
        assert!(index.search(&query, 5, &none).unwrap().hits.is_empty());
        index.evict();
        let short = QueryVector { numbers: [1.0].into(), ..query.clone() };
        assert!(matches!(index.search(&short, 5, &none), Err(VectorError::WrongDimensions { .. })));
        let model = ModelIdentity { id: "b".into(), ..query.model.clone() };
        let other = QueryVector { model, ..query.clone() };
        assert!(
            matches!(index.search(&other, 5, &none), Err(VectorError::OtherModel(model)) if model == "a")
        );
        let changed = BagOfWords::with("a", usize::MAX, 3).query("topic3");
        assert!(matches!(index.search(&changed, 5, &none), Err(VectorError::ModelChanged(_))));
    }
}

#[tokio::test]
async fn vectors_in_memory_follow_builds_and_removals() {
    let (notes, model) = (Notes::new(30), BagOfWords::new("a"));
    notes.build(&model, BuildMode::Missing).await.unwrap();
    let index = VectorIndex::new(&notes.store, usize::MAX);
    let rows = |query: &str| -> Vec<i64> {
        let found = index.search(&model.query(query), 1_000, &VectorScope::default()).unwrap();
        found.hits.iter().map(|hit| hit.record).collect()
    };
    assert_eq!(rows("word3").len(), 30);
    for round in 0..4 {
        notes.write("notes", [(round, Change::Delete { deleted_at: None })]);
        notes.put("letters", round..round + 1);
        notes.build(&model, BuildMode::Missing).await.unwrap();
        let fresh = VectorIndex::new(&notes.store, usize::MAX);
        let expect = fresh.search(&model.query("word3"), 1_000, &VectorScope::default()).unwrap();
        assert_eq!(rows("word3"), expect.hits.iter().map(|hit| hit.record).collect::<Vec<_>>(), "{round}");
    }
    remove_vectors(&notes.store).await.unwrap();
    assert_eq!((rows("word3").len(), index.model().unwrap()), (0, None));
    notes.build(&model, BuildMode::Missing).await.unwrap();
    assert_eq!(rows("word3").len(), 30);
}

#[tokio::test]
async fn spread_tells_how_far_scores_stand_out() {
    let (notes, model) = (Notes::new(100), BagOfWords::new("a"));
    notes.build(&model, BuildMode::Missing).await.unwrap();
    let index = VectorIndex::new(&notes.store, usize::MAX);
    let all = index.search(&model.query("word3"), 1_000, &VectorScope::default()).unwrap();
    let count = all.hits.len() as f32;
    let mean = all.hits.iter().map(|hit| hit.score).sum::<f32>() / count;
    let square = all.hits.iter().map(|hit| (hit.score - mean).powi(2)).sum::<f32>() / count;
    assert!((all.spread.mean - mean).abs() < 0.01, "{:?} {mean}", all.spread);
    assert!((all.spread.deviation - square.sqrt()).abs() < 0.01, "{:?} {square}", all.spread);
    let one = VectorScope { records: Some([1].into()), ..VectorScope::default() };
    assert_eq!(index.search(&model.query("word3"), 5, &one).unwrap().spread, ScoreSpread::default());
}

#[tokio::test]
async fn estimates_call_no_model_and_change_nothing() {
    let (notes, model) = (Notes::new(12), BagOfWords::new("a"));
    let estimate =
        estimate_build(&notes.store, &*model, BuildMode::Missing, &EmbeddedStreams::default()).unwrap();
    assert_eq!((estimate.records, estimate.embedded, model.embedded()), (12, 12, 0));
    assert!(estimate.pieces > 12 && !file::vectors_path(&notes.store).exists());
    notes.build(&model, BuildMode::Missing).await.unwrap();
    let estimate =
        |mode| estimate_build(&notes.store, &*model, mode, &EmbeddedStreams::default()).unwrap().embedded;
    assert_eq!((estimate(BuildMode::Missing), estimate(BuildMode::All)), (0, 12));
}

// The clock is paused, so that waiting for the lock takes no time.
#[tokio::test(start_paused = true)]
async fn two_builds_at_a_time_and_foreign_files_are_refused() {
    let (notes, model) = (Notes::new(5), BagOfWords::new("a"));
    let shared: Arc<dyn EmbeddingModel> = Arc::clone(&model) as _;
    let builder = VectorBuilder::open(&notes.store, shared, BuildMode::Missing, EmbeddedStreams::default())
        .await
        .unwrap();
    assert!(matches!(notes.build(&model, BuildMode::Missing).await, Err(VectorError::Busy(_))));
    assert!(matches!(remove_vectors(&notes.store).await, Err(VectorError::Busy(_))));
    assert!(notes.status().is_locked);
    drop(builder);
    assert!(!notes.status().is_locked);
    assert!(remove_vectors(&notes.store).await.unwrap());
    assert!(!remove_vectors(&notes.store).await.unwrap());
    let path = file::vectors_path(&notes.store);
    std::fs::write(&path, "my notes").unwrap();
    for error in [
        notes.build(&model, BuildMode::Missing).await.unwrap_err(),
        remove_vectors(&notes.store).await.unwrap_err(),
        vector_status(&notes.store, &EmbeddedStreams::default()).unwrap_err(),
    ] {
        assert!(matches!(error, VectorError::Foreign { .. }), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
    assert!(matches!(
        vector_status(Path::new("/nowhere/notes.db"), &EmbeddedStreams::default()),
        Err(VectorError::Store(_))
    ));
}

#[tokio::test]
async fn a_stopped_build_keeps_its_batches() {
    let (notes, model) = (Notes::new(30), BagOfWords::new("a"));
    let shared: Arc<dyn EmbeddingModel> = Arc::clone(&model) as _;
    let stop = AtomicBool::new(false);
    let vectors = SqliteVectors::new(&notes.store, EmbeddedStreams::default());
    let mut builder = vectors.open_build(shared, BuildMode::Missing).await.unwrap();
    let stopped = build_vectors(&mut *builder, &stop, |_| stop.store(true, Ordering::Relaxed)).await;
    assert!(matches!(stopped, Err(VectorError::Stopped)));
    drop(builder);
    assert_eq!(notes.status().building.unwrap().chunks, 4);
}

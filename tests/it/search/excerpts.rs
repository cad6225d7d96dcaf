//! Properties of search over random stores: each hit shows why it was found, its handle fetches it, walks are exact, and
//! deletions leave both indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Hit, HitId, RecordData};
use fetchwell_embedding::{EmbeddingModel, LocalModel, QueryEmbedder};
use fetchwell_source::ImportTarget;
use fetchwell_source::contract::no_progress;
use fetchwell_source::contract::{BuildMode, Change, EmbeddedStreams, IncomingRecord, NewConnection};
use fetchwell_source::vectors::{StoreVectors as _, build_vectors};
use fetchwell_source::{BoundSource, RecordQuery, SearchMode, SearchQuery};
use fetchwell_sqlite::{SqliteStore, SqliteTarget, SqliteVectors, vector_status};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::import_records;

/// A word of records, and a form of it that finds them: another case, script rule, inflection, beginning or misspelling.
const FORMS: [[&str; 2]; 17] = [
    ["invoices", "invoice"],
    ["Rechnungen", "rechnung"],
    ["whispered", "whisperd"],
    ["lighthouse", "lighthuose"],
    ["automated", "automat"],
    ["parseConfigFile", "config"],
    ["café", "CAFE"],
    ["Straße", "STRASSE"],
    ["user_987", "user_987"],
    ["/srv/mail/inbox.db", "inbox.db"],
    ["東京都庁", "東京"],
    ["привет", "ПРИВЕТ"],
    ["שלום", "שלום"],
    ["مرحبا", "مرحبا"],
    ["검색어", "검색"],
    ["0.4.19", "0.4.19"],
    ["4711", "4711"],
];

/// The number that a record can have as a value.
const NUMBER: usize = 16;

/// Maximum near-copies of a record.
const MAX_COPIES: usize = 4;

static MODEL: LazyLock<Arc<dyn EmbeddingModel>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/embedding/tiny");
    Arc::new(LocalModel::open(&folder, None).unwrap())
});

/// Words of one random record.
#[derive(Debug, Clone)]
struct Draft {
    title: Option<usize>,
    body: Vec<usize>,
    nested: Option<usize>,
    has_number: bool,
    /// Number of words before the first of the body.
    filler: usize,
    copies: usize,
    connection: usize,
    stream: usize,
}

impl Draft {
    fn data(&self) -> RecordData {
        let word = |form: &usize| FORMS[*form][0];
        let filler = ["plain", "quiet", "words", "without", "any", "meaning"].into_iter().cycle();
        let mut body: Vec<&str> = filler.take(self.filler).collect();
        body.extend(self.body.iter().map(word));
        let mut data = json!({"body": body.join(" ")});
        if let Some(form) = &self.title {
            data["title"] = json!(format!("Report {}", word(form)));
        }
        if let Some(form) = &self.nested {
            data["people"] = json!([{"name": "someone"}, {"name": word(form)}]);
        }
        if self.has_number {
            data["amount"] = json!(4711);
        }
        serde_json::from_value(data).unwrap()
    }

    fn has(&self, form: usize) -> bool {
        self.body.contains(&form)
            || self.title == Some(form)
            || self.nested == Some(form)
            || (form == NUMBER && self.has_number)
    }
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let form = || 0..FORMS.len();
    let draft = (
        prop::option::of(form()),
        prop::collection::vec(form(), 0..4),
        prop::option::of(form()),
        prop::bool::weighted(0.2),
        prop_oneof![Just(0_usize), 0..20_usize, 100..300_usize],
        prop_oneof![3 => Just(0), 1 => 1..MAX_COPIES],
        (0..2_usize, 0..2_usize),
    );
    let draft = draft.prop_map(|(title, body, nested, has_number, filler, copies, (connection, stream))| {
        Draft { title, body, nested, has_number, filler, copies, connection, stream }
    });
    prop::collection::vec(draft, 1..14)
}

/// A store with the records of drafts, each under a key that no query matches.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    /// Draft of each record, by connection, stream and key.
    records: BTreeMap<(String, String, String), Draft>,
}

impl Place {
    fn new(drafts: &[Draft]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut records = BTreeMap::new();
        for (number, draft) in drafts.iter().enumerate() {
            for copy in 0..=draft.copies {
                let letter = |number: usize| char::from(b'a' + u8::try_from(number).unwrap());
                let key = format!("rec{}{}", letter(number), letter(copy));
                // Every second copy is in the other connection.
                let connection = format!("cin_{}", letter((draft.connection + copy / 2) % 2));
                let stream = ["letters", "notes"][draft.stream];
                records.insert((connection, stream.to_owned(), key), draft.clone());
            }
        }
        let place = Self { path: folder.path().join("store.db"), _folder: folder, records };
        place.write(|draft| Change::Put { data: draft.data(), emitted_at: None }, |_| true);
        place
    }

    /// Writes a change of each record with a key that passes.
    fn write(&self, change: impl Fn(&Draft) -> Change, passes: impl Fn(&str) -> bool) {
        for connection in ["cin_a", "cin_b"] {
            let new = NewConnection {
                connection_id: connection.parse().unwrap(),
                connector_key: "notes".to_owned(),
                display_name: None,
                manifest: None,
            };
            let mut writer = SqliteTarget::new(&self.path).open(&new, None, &no_progress).unwrap();
            for ((of, stream, key), draft) in &self.records {
                if of == connection && passes(key) {
                    let (stream, key) = (stream.parse().unwrap(), key.parse().unwrap());
                    writer.write(IncomingRecord { stream, key, change: change(draft) }, 1).unwrap();
                }
            }
            writer.finish(&no_progress).unwrap();
        }
    }

    async fn build(&self) {
        let (model, mode) = (Arc::clone(&MODEL), BuildMode::Missing);
        let vectors = SqliteVectors::new(&self.path, EmbeddedStreams::default());
        let mut build = vectors.open_build(model, mode).await.unwrap();
        build_vectors(&mut *build, &AtomicBool::new(false), |_| {}).await.unwrap();
    }

    fn open(&self) -> BoundSource {
        let store = SqliteStore::open("store".parse().unwrap(), &self.path).unwrap();
        let embedder = QueryEmbedder::new(|| Ok(Arc::clone(&MODEL)));
        store.with_embedder(Arc::new(embedder), usize::MAX, Duration::from_secs(60)).into()
    }
}

/// Reads all pages of a search.
async fn walk(source: &BoundSource, text: &str, mode: SearchMode) -> Vec<Hit> {
    let (mut hits, mut position) = (Vec::new(), None);
    loop {
        let query = SearchQuery { mode, position, ..SearchQuery::new(text, 4) };
        let page = source.search(&query).await.unwrap();
        assert!(page.meaning_problems.is_empty(), "{:?}", page.meaning_problems);
        hits.extend(page.hits);
        position = page.next;
        if position.is_none() {
            return hits;
        }
    }
}

fn key_of(hit: &Hit) -> (String, String, String) {
    let HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
    let connection = address.connection.as_ref().unwrap().to_string();
    (connection, address.stream.to_string(), address.record.as_str().to_owned())
}

/// Checks the hits of a query of some forms.
async fn check(
    place: &Place,
    source: &BoundSource,
    forms: &[usize],
    mode: SearchMode,
) -> Result<(), TestCaseError> {
    let text = forms.iter().map(|form| FORMS[*form][1]).collect::<Vec<_>>().join(" ");
    let hits = walk(source, &text, mode).await;
    prop_assert_eq!(&walk(source, &text, mode).await, &hits, "{:?} {}", mode, text);
    let found: Vec<_> = hits.iter().map(key_of).collect();
    prop_assert_eq!(
        found.iter().collect::<BTreeSet<_>>().len(),
        found.len(),
        "{:?} {}: {:?}",
        mode,
        text,
        found
    );
    for (at, hit) in hits.iter().enumerate() {
        let draft = &place.records[&found[at]];
        let title = hit.evidence.title_match.as_ref().map_or("", |(_, title)| title.text());
        let shows =
            |form: &usize| [hit.excerpt.text(), title].iter().any(|shown| shown.contains(FORMS[*form][0]));
        if hit.by_meaning {
            prop_assert!(!forms.iter().any(|form| draft.has(*form)), "{mode:?} {text}: {hit:?}");
        } else {
            prop_assert!(forms.iter().any(shows), "{mode:?} {text}: {hit:?}");
        }
        let later = found.iter().skip(at + 1).filter(|(connection, ..)| *connection == found[at].0);
        prop_assert!(later.count() >= hit.near_copies as usize, "{mode:?} {text}: {found:?} {hit:?}");
        let HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
        let printed = Handle::mint(address).unwrap().to_string();
        let parsed = printed.parse::<Handle>().unwrap().address().clone();
        let record = source.record(&RecordQuery::new(parsed)).await.unwrap();
        prop_assert_eq!(record.data, draft.data(), "{}", printed);
    }
    if mode != SearchMode::Semantic {
        let matching = place.records.iter().filter(|(_, draft)| forms.iter().any(|form| draft.has(*form)));
        for (key, _) in matching {
            prop_assert!(found.contains(key), "{mode:?} {text} misses {key:?}");
        }
    }
    Ok(())
}

#[test]
fn each_hit_shows_why_it_was_found() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let queries = prop::collection::vec(prop::collection::vec(0..FORMS.len(), 1..4), 3);
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    runner
        .run(&(drafts(), queries), |(drafts, queries)| {
            let mut place = Place::new(&drafts);
            runtime.block_on(async {
                place.build().await;
                let source = place.open();
                for (forms, mode) in
                    queries.iter().zip([SearchMode::Hybrid, SearchMode::Lexical, SearchMode::Semantic])
                {
                    check(&place, &source, forms, mode).await?;
                }
                // Deleted records are not found, by words or by meaning, before and after the next build.
                let is_deleted = |key: &str| key.ends_with('a');
                place.write(|_| Change::Delete { deleted_at: None }, is_deleted);
                place.records.retain(|(_, _, key), _| !is_deleted(key));
                for forms in &queries {
                    check(&place, &source, forms, SearchMode::Hybrid).await?;
                    check(&place, &source, forms, SearchMode::Semantic).await?;
                }
                place.build().await;
                check(&place, &source, &queries[0], SearchMode::Auto).await?;
                place.write(|_| Change::Delete { deleted_at: None }, |_| true);
                place.build().await;
                let status = vector_status(&place.path, &EmbeddedStreams::default()).unwrap();
                prop_assert_eq!(status.current.unwrap().chunks, 0);
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test]
async fn hits_of_long_texts_show_a_match_at_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.db");
    let filler = "plain words of a long report. ".repeat(40_000);
    let line = |key: &str, data: Value| json!({"stream": "s", "key": key, "data": data}).to_string();
    let lines = [
        line("one", json!({"title": "Report", "body": format!("{filler}the lighthouse is red")})),
        line("two", json!({"title": "Minutes", "body": filler, "notes": "a lighthouse on the coast"})),
    ];
    import_records(&path, "c", &lines.join("\n"));
    let source = BoundSource::from(SqliteStore::open("long".parse().unwrap(), &path).unwrap());
    let hits = source.search(&SearchQuery::new("lighthouse", 10)).await.unwrap().hits;
    assert_eq!(hits.len(), 2);
    for hit in hits {
        assert_eq!(hit.excerpt.text().get(hit.excerpt.focus()), Some("lighthouse"), "{hit:?}");
        assert_eq!(hit.evidence.matched_fields.len(), 1, "{hit:?}");
    }
}

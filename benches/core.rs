//! `cargo bench --bench core`: the pure parts of a call, measured by criterion.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use fetchwell_core::fit::{ChunkBudget, PageItem, Pressure, Shaping, chunk_end, plan_page, shorten};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Excerpt, RecordData};
use fetchwell_lab::recorded::{RecordedSource, fat_records_reply, fat_search_reply, long_record_reply};
use fetchwell_source::{BoundSource, SearchQuery};
use fetchwell_state::cursor::{Claims, Cursors, Key, KeyId, KeyRing, Kind, Skew, seal};
use fetchwell_telemetry::{Endpoint, Origin, RECORDS_IN_MEMORY, Telemetry};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};

fn handles(criterion: &mut Criterion) {
    for (name, text) in [
        ("scoped", "cin_4f2a/orders:o1"),
        ("exact", "cin_work/daily_stats/%5B%22user_123%22%2C%222026-04-01%22%5D"),
    ] {
        criterion.bench_function(&format!("handle/parse {name}"), |bench| {
            bench.iter(|| black_box(text).parse::<Handle>().unwrap());
        });
        let handle: Handle = text.parse().unwrap();
        criterion.bench_function(&format!("handle/mint {name}"), |bench| {
            bench.iter(|| Handle::mint(black_box(handle.address())).unwrap());
        });
    }
}

fn search(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let source = RecordedSource {
        name: "fixture".parse().unwrap(),
        search: fat_search_reply(),
        record: long_record_reply("a text"),
        records: fat_records_reply(),
        schema: String::new(),
    };
    let query = SearchQuery::new("x", 25);
    let bound = BoundSource::from(source.clone());
    criterion.bench_function("search/normalise 200 fat hits", |bench| {
        bench.iter(|| runtime.block_on(bound.search(black_box(&query))).unwrap());
    });
    let toolbox = Toolbox::new(Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap();
    for limit in [None, Some(100)] {
        let mut arguments = RecordData::from_iter([("query".to_owned(), "x".into())]);
        arguments.extend(limit.map(|limit: usize| ("limit".to_owned(), limit.into())));
        criterion.bench_function(&format!("search/whole call, limit {limit:?}"), |bench| {
            bench.iter(|| {
                runtime
                    .block_on(toolbox.call(Profile::Standard, "search", arguments.clone()))
                    .unwrap()
                    .unwrap()
            });
        });
    }
    let arguments = RecordData::from_iter([("id".to_owned(), "conn_1/mail:m1".into())]);
    criterion.bench_function("fetch/whole call", |bench| {
        bench.iter(|| {
            runtime.block_on(toolbox.call(Profile::Standard, "fetch", arguments.clone())).unwrap().unwrap()
        });
    });
}

fn fit(criterion: &mut Criterion) {
    let excerpts: Vec<Excerpt> =
        (0..100).map(|_| Excerpt::new(&"some words and a match ".repeat(20), 200..205)).collect();
    let items: Vec<PageItem<'_>> = excerpts.iter().map(|excerpt| PageItem { bare: 80, excerpt }).collect();
    criterion.bench_function("fit/page of 100", |bench| {
        bench.iter(|| plan_page(black_box(&items), 16_000, Pressure::KeepHits));
    });
    let excerpt = Excerpt::new(&"some words and a match ".repeat(20), 200..205);
    criterion.bench_function("fit/excerpt", |bench| bench.iter(|| shorten(black_box(&excerpt), 80)));
    let text = "Please pay the invoice number 2; the amount due is 20 EUR.\n".repeat(20_000);
    let budget = ChunkBudget { bytes: 47_000, tokens: 11_900 };
    let _ = chunk_end(&text, 0, budget); // loads the vocabulary
    criterion.bench_function("fit/part of a 1 MB text", |bench| {
        bench.iter(|| chunk_end(black_box(&text), 300_000, budget));
    });
}

fn cursors(criterion: &mut Criterion) {
    let (key, now) = (Key::new(KeyId([0; 4]), &[7; 32]), std::time::Duration::from_secs(1_800_000_000));
    let claims = Claims { kind: Kind::Search, issued: now, offset: 50, reference: [9; 16] };
    criterion.bench_function("cursor/seal", |bench| bench.iter(|| seal(&key, black_box(&claims))));
    let cursor = seal(&key, &claims);
    let ring = KeyRing::new(key);
    criterion
        .bench_function("cursor/open", |bench| bench.iter(|| ring.open(black_box(&cursor), now).unwrap()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kept = Cursors::in_directory(folder.path(), Skew::default()).unwrap();
    for (name, cursors) in [("memory", Cursors::in_memory(Skew::default()).unwrap()), ("SQLite", kept)] {
        for bytes in [500, 50_000] {
            let position = "x".repeat(bytes);
            let issue = || cursors.issue(Kind::Search, 0, String::new(), position.clone());
            criterion.bench_function(&format!("cursor/issue for {bytes} bytes, {name}"), |bench| {
                bench.iter(|| runtime.block_on(issue()).unwrap());
            });
        }
        let cursor =
            runtime.block_on(cursors.issue(Kind::Search, 0, String::new(), "x".repeat(500))).unwrap();
        criterion.bench_function(&format!("cursor/position, {name}"), |bench| {
            bench.iter(|| runtime.block_on(cursors.position(Kind::Search, &cursor)).unwrap());
        });
    }
}

fn telemetry(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let kept = Telemetry::in_directory(folder.path(), RECORDS_IN_MEMORY);
    let shaping = Shaping { bytes: 1_800, items: 13, ..Shaping::default() };
    for (name, telemetry) in [("memory", Telemetry::default()), ("SQLite", kept)] {
        criterion.bench_function(&format!("telemetry/one call, {name}"), |bench| {
            bench.iter(|| {
                telemetry.call(Endpoint::tool("search"), Origin::default()).answered(black_box(&shaping));
            });
        });
    }
}

criterion_group!(benches, handles, search, fit, cursors, telemetry);
criterion_main!(benches);

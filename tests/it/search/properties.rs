//! Properties of search over a store: handles, deletions, walks, and queries of every form.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fetchwell_core::record::HitId;
use fetchwell_source::{BoundSource, SearchPosition, SearchQuery};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::stores::{new_store, open_store};
use crate::support::{Model, import_records, text};

/// Words of the records, in several scripts.
const WORDS: [&str; 12] = [
    "invoice",
    "Budget",
    "café",
    "Straße",
    "user_123",
    "שלום",
    "חשבונית",
    "مرحبا",
    "привет",
    "東京都",
    "검색",
    "0.4.19",
];

/// Keys that are hard to print in a handle.
const KEYS: [&str; 10] =
    ["plain", "a/b", "../up", "100%", "a b", "ключ", "a:b", "%2F", "x\u{202E}y", "p1/p2"];

/// Error codes of queries that name streams or connections.
const REFUSALS: [&str; 4] =
    ["invalid_argument", "connection_not_found", "stream_not_declared", "conflicting_connection_id"];

fn line(key: &str, body: &str) -> String {
    json!({"stream": "notes", "key": key, "data": {"title": format!("Note {}", key.len()), "body": body}})
        .to_string()
}

/// Returns a store with a record for each pair of word and key, each with a unique word, and the text of each key.
fn store() -> (tempfile::TempDir, PathBuf, BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let mut texts = BTreeMap::new();
    for (at, word) in WORDS.iter().enumerate() {
        for (number, key) in KEYS.iter().enumerate() {
            let other = WORDS[(at * 5 + number * 7 + 1) % WORDS.len()];
            texts.insert(format!("{key}{at}"), format!("{other} {word} own{at}x{number} and more text"));
        }
    }
    let lines: Vec<String> = texts.iter().map(|(key, text)| line(key, text)).collect();
    import_records(&path, "c", &lines.join("\n"));
    (folder, path, texts)
}

/// Reads all pages of a search and returns the keys. Calls `between` after each page.
async fn walk(source: &BoundSource, query: &SearchQuery, mut between: impl FnMut()) -> Vec<String> {
    let (mut keys, mut position): (Vec<String>, Option<SearchPosition>) = (Vec::new(), None);
    loop {
        let page = source.search(&SearchQuery { position, ..query.clone() }).await.unwrap();
        keys.extend(page.hits.iter().map(|hit| {
            let HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
            address.record.as_str().to_owned()
        }));
        position = page.next;
        if position.is_none() {
            return keys;
        }
        between();
    }
}

/// Every printed id fetches the record of the result, and the result shows a word of the query.
#[tokio::test]
async fn printed_handles_fetch_the_records_they_came_from() {
    let (_folder, path, texts) = store();
    let model = Model::over_stdio(["--store", text(&path)]).await;
    let mut fetched = BTreeSet::new();
    for word in WORDS {
        let mut arguments = json!({"query": word, "limit": 8});
        loop {
            let page = model.call("search", arguments).await;
            for hit in page["results"].as_array().unwrap() {
                let document = model.call("fetch", json!({"id": hit["id"]})).await;
                let whole = document["text"].as_str().unwrap();
                let shown = hit["text"].as_str().unwrap();
                let own = shown.split_whitespace().find(|word| word.starts_with("own"));
                // A record with a part of an identifier is a valid result as well.
                let shows = |part: &str| {
                    [&hit["text"], &hit["title"], &hit["id"]]
                        .iter()
                        .any(|text| text.as_str().unwrap().contains(part))
                };
                assert!(word.split(['.', '_']).any(shows), "{word}: {hit}");
                let own = own.unwrap_or_else(|| panic!("the excerpt has the whole text: {hit}"));
                assert!(whole.contains(own), "{hit} {document}");
                fetched.insert(own.to_owned());
            }
            let Some(cursor) = page.get("next_cursor") else { break };
            arguments = json!({"cursor": cursor});
        }
    }
    assert_eq!(fetched.len(), texts.len());
}

#[tokio::test]
async fn deleted_records_leave_the_index() {
    let (_folder, path, texts) = store();
    let source = open_store(&path);
    let own = |text: &str| text.split_whitespace().find(|word| word.starts_with("own")).unwrap().to_owned();
    let mut alive = texts.clone();
    for round in 0..3_usize {
        let deleted: Vec<String> = alive.keys().skip(round).step_by(3).cloned().collect();
        let delete = |key: &String| json!({"stream": "notes", "key": key, "op": "delete"}).to_string();
        import_records(&path, "c", &deleted.iter().map(delete).collect::<Vec<_>>().join("\n"));
        alive.retain(|key, _| !deleted.contains(key));
        let found: BTreeSet<String> =
            walk(&source, &SearchQuery::new("more text", 50), || ()).await.into_iter().collect();
        assert_eq!(found, alive.keys().cloned().collect::<BTreeSet<_>>());
        for (key, text) in &texts {
            let page = source.search(&SearchQuery::new(&own(text), 5)).await.unwrap();
            assert_eq!(page.hits.len(), usize::from(alive.contains_key(key)), "{key}");
        }
    }
}

/// Records that are imported, changed and deleted between pages do not change the walk.
#[tokio::test]
async fn two_walks_give_the_same_hits() {
    let (_folder, path, texts) = store();
    let source = open_store(&path);
    for (round, (words, limit)) in
        [("more invoice", 17), ("text", 40), ("budget café 東京", 3)].into_iter().enumerate()
    {
        let query = SearchQuery::new(words, limit);
        let quiet = walk(&source, &query, || ()).await;
        let mut imported = 0;
        let busy = walk(&source, &query, || {
            imported += 1;
            if imported <= 3 {
                let new = line(&format!("new{round}x{imported}"), "more text: invoice budget café 東京都");
                let changed = texts.keys().nth(imported).unwrap();
                import_records(
                    &path,
                    "c",
                    &[new, line(changed, &format!("{} changed", texts[changed]))].join("\n"),
                );
            }
        })
        .await;
        assert_eq!(busy, quiet, "{words}");
        assert_eq!(quiet.iter().collect::<BTreeSet<_>>().len(), quiet.len(), "{words}");
        assert!(imported >= 2, "{words}: the walk has several pages");
    }
}

#[tokio::test]
async fn a_query_of_ten_thousand_words_finds_its_records() {
    let (_folder, path, _) = store();
    let source = open_store(&path);
    let unknown = |count: usize| (0..count).map(|number| format!("zz{number}")).collect::<Vec<_>>().join(" ");
    let repeated = "more text ".repeat(5_000);
    for query in [
        format!("own3x4 {}", unknown(9_999)),
        format!("{} own3x4 {}", unknown(300), unknown(9_699)),
        format!("own3x4 {repeated}"),
    ] {
        let page = source.search(&SearchQuery::new(&query, 5)).await.unwrap();
        let first = page.hits.first().unwrap_or_else(|| panic!("nothing found"));
        assert!(first.excerpt.text().contains("own3x4"), "{first:?}");
    }
    // The tool searches the beginning of a text longer than any ordinary query.
    let model = Model::over_stdio(["--store", text(&path)]).await;
    let found = model.call("search", json!({"query": format!("own3x4 {repeated}")})).await;
    assert!(found["results"][0]["text"].as_str().unwrap().contains("own3x4"), "{found}");
}

#[tokio::test]
async fn queries_of_operators_or_punctuation_are_answered() {
    let (_folder, path, _) = store();
    let model = Model::over_stdio(["--store", text(&path)]).await;
    for query in [
        "-",
        "--",
        "\"",
        "\"\"",
        "-\"\"",
        "***",
        ":",
        "::",
        "title:",
        "from: -",
        "stream:",
        "after:",
        "-after:",
        "()",
        "?!",
        "…",
        "« »",
        "،؟",
        "「」",
        "\u{200F}\u{202E}",
        "😀",
        "- - -",
        "\"\" -\"\"",
    ] {
        let found = model.call("search", json!({"query": query})).await;
        let names_an_operator = ["title", "from", "stream", "after"].iter().any(|name| query.contains(name));
        assert!(found["results"].as_array().unwrap().is_empty() || names_an_operator, "{query}: {found}");
    }
    // Operators alone list the matching records.
    for query in ["title:note", "stream:notes", "connection:c", "\"and more\"", "stream:notes -invoice"] {
        let found = model.call("search", json!({"query": query})).await;
        assert!(!found["results"].as_array().unwrap().is_empty(), "{query}: {found}");
    }
}

#[tokio::test]
async fn words_of_every_script_are_found_in_any_mixture() {
    let (_folder, path, texts) = store();
    let model = Model::over_stdio(["--store", text(&path)]).await;
    let ids = |found: &Value| -> BTreeSet<String> {
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].to_string()).collect()
    };
    for word in WORDS {
        let with_word = texts.values().filter(|text| text.contains(word)).count() as u64;
        for query in [
            word.to_owned(),
            format!("\"{word}\""),
            format!("\u{202B}{word}\u{202C}"),
            format!("zzz {word} ،"),
        ] {
            let found = model.call("search", json!({"query": query})).await;
            let first = found["results"][0]["text"].as_str().unwrap_or_else(|| panic!("{query}: {found}"));
            assert!(first.contains(word), "{query}: {found}");
            if let (None, Some(count)) = (found.get("count_accuracy"), found["count"].as_u64()) {
                assert!(count >= with_word, "{query}: {found}");
            }
        }
        // A record that has the word is not found by a query that excludes it.
        let all = model.call("search", json!({"query": "text", "limit": 100})).await;
        let without = model.call("search", json!({"query": format!("text -\"{word}\""), "limit": 100})).await;
        assert!(ids(&without).is_subset(&ids(&all)) || all.get("next_cursor").is_some());
        for hit in without["results"].as_array().unwrap() {
            assert!(!hit["text"].as_str().unwrap().contains(word), "{word}: {hit}");
        }
    }
}

/// Any mixture of words, operators and punctuation gives the same answer twice, within the budget.
#[test]
fn any_query_is_answered_the_same_twice() {
    let (_folder, path, _) = store();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let model = runtime.block_on(Model::over_stdio(["--store", text(&path)]));
    let piece = prop_oneof![
        3 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => prop::sample::select(&[
            "-", "\"", "\"more text\"", "-\"more text\"", "-invoice", "title:note", "from:x", "stream:notes",
            "connection:c", "account:\"C \"", "after:2020", "before:2050-01", "since:9y", "since:x", "(", "\u{202E}", "AND", "-9", "*",
        ][..]).prop_map(str::to_owned),
        1 => "\\PC{1,6}",
    ];
    let queries = prop::collection::vec(piece, 1..9).prop_map(|pieces| pieces.join(" "));
    let mut runner = TestRunner::new(Config { cases: 120, failure_persistence: None, ..Config::default() });
    runner
        .run(&queries, |query| {
            let ask = || {
                let result = runtime.block_on(model.call_raw("search", json!({"query": query})));
                result.structured_content.unwrap()
            };
            let (one, other) = (ask(), ask());
            prop_assert_eq!(&one["results"], &other["results"]);
            match one["error"]["code"].as_str() {
                None => prop_assert!(one["results"].is_array() && one.to_string().len() <= 1_800, "{one}"),
                // Random text can contain names of connections and streams.
                Some(code) => prop_assert!(REFUSALS.contains(&code), "{one}"),
            }
            Ok(())
        })
        .unwrap();
}

//! The order of hits of a store, matching forms of words, and near-copies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fetchwell::record::{Hit, HitId};
use fetchwell::source::store::Store;
use fetchwell::source::{BoundSource, FieldText, SearchField, SearchPosition, SearchQuery, SearchText};
use serde_json::{Value, json};

use crate::support::{Model, import_records, text};

/// Returns a store with records of a stream, a key and fields each.
fn store(records: &[(&str, &str, Value)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranked.db");
    let line = |(stream, key, data): &(&str, &str, Value)| {
        json!({"stream": stream, "key": key, "data": data, "emitted_at": "2026-01-01T00:00:00Z"}).to_string()
    };
    import_records(&path, "c", &records.iter().map(line).collect::<Vec<_>>().join("\n"));
    (folder, path)
}

fn notes(texts: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let keys: Vec<String> = (0..texts.len()).map(|key| key.to_string()).collect();
    let records: Vec<_> =
        keys.iter().zip(texts).map(|(key, text)| ("notes", key.as_str(), json!({"body": text}))).collect();
    store(&records)
}

fn open(path: &Path) -> BoundSource {
    Store::open("store".parse().unwrap(), path).unwrap().into()
}

fn key(hit: &Hit) -> String {
    let HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
    address.record.as_str().to_owned()
}

async fn keys(path: &Path, query: &SearchQuery) -> Vec<String> {
    open(path).search(query).await.unwrap().hits.iter().map(key).collect()
}

/// Reads all pages of a search.
async fn walk(path: &Path, query: &SearchQuery) -> Vec<Hit> {
    let source = open(path);
    let (mut hits, mut position): (Vec<Hit>, Option<SearchPosition>) = (Vec::new(), None);
    loop {
        let page = source.search(&SearchQuery { position, ..query.clone() }).await.unwrap();
        hits.extend(page.hits);
        position = page.next;
        if position.is_none() {
            return hits;
        }
    }
}

#[tokio::test]
async fn phrases_come_before_scattered_words_and_titles_before_bodies() {
    let filler = "lorem ipsum dolor sit amet consectetur".to_owned();
    let (_folder, path) = notes(&[
        &format!("the release {filler} was a candidate {filler}"),
        &format!("{filler} the release candidate {filler}"),
        &format!("candidate {filler} {filler} release"),
    ]);
    assert_eq!(keys(&path, &SearchQuery::new("release candidate", 10)).await[0], "1");
    let (_folder, path) = store(&[
        ("s", "body", json!({"title": "Minutes of a meeting", "body": "quarterly budget and budget review"})),
        (
            "s",
            "title",
            json!({"title": "Quarterly budget", "body": "what was discussed at length in the room"}),
        ),
    ]);
    assert_eq!(keys(&path, &SearchQuery::new("quarterly budget", 10)).await[0], "title");
}

#[tokio::test]
async fn forms_misspellings_beginnings_and_parts_of_words_match() {
    let (_folder, path) = notes(&[
        "please pay the invoice, or all invoices",
        "call parseConfigFile first",
        "commit 57c6a20f91 broke it",
        "die Rechnungen sind offen",
        "an automated reply",
    ]);
    for (query, expect) in [
        ("invoice", "0"),
        ("invocie", "0"),
        ("nvoices", "0"),
        ("config", "1"),
        ("parseconfigfile", "1"),
        ("parseConfigFile", "1"),
        ("57c6a20", "2"),
        ("rechnung", "3"),
        ("automat", "4"),
    ] {
        assert_eq!(keys(&path, &SearchQuery::new(query, 10)).await, [expect], "{query}");
    }
    for query in ["inv", "57c6a21", "xylophone"] {
        assert_eq!(keys(&path, &SearchQuery::new(query, 10)).await, [""; 0], "{query}");
    }
    // A word that occurs in records is not replaced, and ranks before its other forms.
    let (_folder, path) = notes(&["the tests", "a test", "a text"]);
    assert_eq!(keys(&path, &SearchQuery::new("tests", 10)).await, ["0", "1"]);
}

#[tokio::test]
async fn phrases_match_words_in_camel_case_and_plain_ones() {
    let (_folder, path) =
        notes(&["on GitHub Actions today", "on github actions today", "git hub: github and actions"]);
    for phrase in ["github actions", "GitHub Actions", "on github actions today", "on GITHUB actions"] {
        let text = SearchText { phrases: vec![phrase.to_owned()], ..SearchText::default() };
        let query = SearchQuery { text: text.clone(), ..SearchQuery::new("", 10) };
        let found: BTreeSet<String> = keys(&path, &query).await.into_iter().collect();
        assert_eq!(found, ["0".to_owned(), "1".to_owned()].into(), "{phrase}");
        let text = SearchText {
            excluded: text.phrases,
            phrases: vec!["github".to_owned()],
            ..SearchText::default()
        };
        let query = SearchQuery { text, ..SearchQuery::new("", 10) };
        assert_eq!(keys(&path, &query).await, ["2"], "{phrase}");
    }
}

#[tokio::test]
async fn only_words_in_scope_stand_for_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scopes.db");
    let line = |key: usize, body: &str| {
        json!({"stream": "s", "key": key.to_string(), "data": {"body": body}}).to_string()
    };
    // The misspelling is a word of another connection, which also has more frequent words with the same beginning.
    let other = "invocie part101 part102 part103 part104 part105 part106";
    import_records(&path, "a", &[line(1, other), line(2, other)].join("\n"));
    import_records(&path, "b", &[line(3, "an invoice"), line(4, "only part109")].join("\n"));
    let within =
        |words: &str| SearchQuery { connection: Some("b".parse().unwrap()), ..SearchQuery::new(words, 10) };
    for (words, expect) in [("invocie", "3"), ("part10", "4")] {
        assert_eq!(keys(&path, &within(words)).await, [expect], "{words}");
        assert_eq!(keys(&path, &SearchQuery::new(words, 10)).await.len(), 2, "{words}");
    }
    // A word that only a deleted record had is replaced, too.
    let deletion = |key: &str| json!({"stream": "s", "key": key, "op": "delete"}).to_string();
    import_records(&path, "a", &[deletion("1"), deletion("2")].join("\n"));
    assert_eq!(keys(&path, &SearchQuery::new("invocie", 10)).await, ["3"]);
}

#[tokio::test]
async fn a_whole_identifier_comes_before_its_parts() {
    let (_folder, path) = notes(&["123 times the user", "user_123 pays", "user 7 of 123 pays"]);
    assert_eq!(keys(&path, &SearchQuery::new("user_123", 10)).await[0], "1");
    assert_eq!(keys(&path, &SearchQuery::new("user_123", 10)).await.len(), 3);
}

#[tokio::test]
async fn near_copies_of_one_connection_are_folded_and_reachable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copies.db");
    let text: String = (0..200).map(|number| format!("word{number} ")).collect();
    let line = |key: &str, body: &str| json!({"stream": "s", "key": key, "data": {"body": body}}).to_string();
    let other = "word1 in another text";
    import_records(
        &path,
        "a",
        &[line("1", &text), line("2", &text), line("3", &text), line("4", other)].join("\n"),
    );
    import_records(&path, "b", &line("5", &text));
    let query = SearchQuery::new("word1 word2", 2);
    let hits = walk(&path, &query).await;
    let copies: Vec<u32> = hits.iter().map(|hit| hit.near_copies).collect();
    assert_eq!(hits.iter().map(key).collect::<BTreeSet<_>>().len(), 5);
    assert_eq!(copies, [2, 0, 0, 0, 0]);
    // A copy in another connection is not folded, and a much weaker hit follows after two copies.
    assert_eq!(hits[1..].iter().map(key).collect::<Vec<_>>(), ["5", "2", "3", "4"]);
}

/// Each of 24 texts exists twice. Pages show each first one with its number of copies, also pages from a cursor.
#[tokio::test]
async fn copies_are_counted_in_the_answer_and_shown_on_later_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copies.db");
    let lines = (0..48).map(|number| {
        let words = (0..60).map(|at| format!("w{}x{at}", number % 24));
        let body = format!("report {}", words.collect::<Vec<_>>().join(" "));
        json!({"stream": "s", "key": format!("k{number:02}"), "data": {"body": body}}).to_string()
    });
    import_records(&path, "a", &lines.collect::<Vec<_>>().join("\n"));
    let model = Model::over_stdio(["--store", text(&path)]).await;
    let mut arguments = json!({"query": "report"});
    let mut copies = Vec::new();
    let mut ids = BTreeSet::new();
    loop {
        let page = model.call("search", arguments).await;
        for hit in page["results"].as_array().unwrap() {
            copies.push(hit.get("copies").map_or(0, |copies| copies.as_u64().unwrap()));
            ids.insert(hit["id"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = page.get("next_cursor") else { break };
        arguments = json!({"cursor": cursor});
    }
    assert_eq!(copies, [[1; 24], [0; 24]].concat());
    assert_eq!(ids.len(), 48);
}

#[tokio::test]
async fn rows_of_one_stream_leave_room_for_another() {
    let keys_of_rows: Vec<String> = (0..40).map(|number| format!("row{number}")).collect();
    let mut records: Vec<_> =
        keys_of_rows.iter().map(|key| ("rows", key.as_str(), json!({"name": "payment", "n": key}))).collect();
    records.push(("mail", "mail", json!({"subject": "payment", "body": "the payment arrived"})));
    let (_folder, path) = store(&records);
    let found = keys(&path, &SearchQuery::new("payment", 10)).await;
    assert!(found.contains(&"mail".to_owned()), "{found:?}");
}

#[tokio::test]
async fn a_walk_has_every_match_once() {
    let texts: Vec<String> = (0..950)
        .map(|number| {
            format!("common {} {}", ["alpha", "beta", "gamma"][number % 3], "x ".repeat(number % 41))
        })
        .collect();
    let (_folder, path) = notes(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    for (limit, words) in [(100, "common beta"), (63, "common"), (7, "alpha gamma")] {
        let query = SearchQuery::new(words, limit);
        let walked: Vec<String> = walk(&path, &query).await.iter().map(key).collect();
        let different: BTreeSet<&String> = walked.iter().collect();
        let expect = if words.contains("common") { 950 } else { 633 };
        assert_eq!((walked.len(), different.len()), (expect, expect), "{words}");
        let again: Vec<String> = walk(&path, &query).await.iter().map(key).collect();
        assert!(walked == again, "{words}");
    }
}

#[tokio::test]
async fn operators_select_records() {
    let (_folder, path) = store(&[
        (
            "s",
            "1",
            json!({"title": "Trip plan", "from": "alice@x.test", "date": "2026-03-01", "body": "pack warm clothes"}),
        ),
        (
            "s",
            "2",
            json!({"title": "Plan B", "from": "bob@x.test", "date": "2026-04-01", "body": "clothes warm or cold for the trip"}),
        ),
        (
            "s",
            "3",
            json!({"title": "Draft", "from": "alice@x.test", "date": "2026-05-01T10:00:00Z", "body": "trip plan draft, warm clothes"}),
        ),
    ]);
    let found = async |text: SearchText| {
        keys(&path, &SearchQuery { text, ..SearchQuery::new("", 10) })
            .await
            .into_iter()
            .collect::<BTreeSet<_>>()
    };
    let plain = || SearchText::plain("trip");
    let time = |text: &str| Some(text.parse().unwrap());
    let field = |field, text: &str| vec![FieldText { field, text: text.to_owned() }];
    for (text, expect) in [
        (plain(), vec!["1", "2", "3"]),
        (SearchText { phrases: vec!["warm clothes".to_owned()], ..plain() }, vec!["1", "3"]),
        (SearchText { phrases: vec!["warm clothes".to_owned()], ..SearchText::default() }, vec!["1", "3"]),
        (SearchText { excluded: vec!["draft".to_owned()], ..plain() }, vec!["1", "2"]),
        (SearchText { fields: field(SearchField::Title, "plan"), ..plain() }, vec!["1", "2"]),
        (SearchText { fields: field(SearchField::From, "alice"), ..SearchText::default() }, vec!["1", "3"]),
        (SearchText { after: time("2026-04-01T00:00:00Z"), ..plain() }, vec!["2", "3"]),
        (SearchText { before: time("2026-04-01T00:00:00Z"), ..plain() }, vec!["1"]),
    ] {
        let shown = format!("{text:?}");
        assert_eq!(found(text).await, expect.iter().map(|key| (*key).to_owned()).collect(), "{shown}");
    }
}

#[tokio::test]
async fn deleted_records_are_not_found() {
    let (_folder, path) = notes(&["alpha one", "alpha two"]);
    import_records(&path, "c", &json!({"stream": "notes", "key": "0", "op": "delete"}).to_string());
    let page = open(&path).search(&SearchQuery::new("alpha one", 10)).await.unwrap();
    assert_eq!(page.hits.iter().map(key).collect::<Vec<_>>(), ["1"]);
}

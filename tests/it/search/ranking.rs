//! The order of hits of a store, matching forms of words, and near-copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::{BoundSource, FieldText, SearchField, SearchPosition, SearchQuery, SearchText};
use serde_json::{Value, json};

use crate::support::stores::{new_store, open_store};
use crate::support::{Model, import_records, text};

/// Returns a store with records of a stream, a key and fields each.
fn store(records: &[(&str, &str, Value)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
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

fn key(hit: &Hit) -> String {
    let HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
    address.record.as_str().to_owned()
}

async fn keys(path: &Path, query: &SearchQuery) -> Vec<String> {
    open_store(path).search(query).await.unwrap().hits.iter().map(key).collect()
}

/// Reads all pages of a search.
async fn walk(path: &Path, query: &SearchQuery) -> Vec<Hit> {
    let source = open_store(path);
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
async fn the_word_itself_comes_before_other_forms_in_titles() {
    let titles: Vec<String> = (0..8).map(|number| format!("form{number}")).collect();
    let form = json!({"title": "Remove", "body": "remove it, and remove what you removed. ".repeat(8)});
    let mut records: Vec<_> = titles.iter().map(|key| ("s", key.as_str(), form.clone())).collect();
    let long = format!("{} a removable disk", "other words of a long text ".repeat(60));
    records.push(("s", "word", json!({"title": "Disks", "body": long})));
    let (_folder, path) = store(&records);
    let found = keys(&path, &SearchQuery::new("removable", 20)).await;
    assert_eq!((found.len(), found[0].as_str()), (9, "word"), "{found:?}");
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
    let path = new_store(&folder);
    let line = |key: usize, body: &str| {
        json!({"stream": "s", "key": key.to_string(), "data": {"body": body}}).to_string()
    };
    // The misspelling is a word of another connection, which also has more frequent words with the same beginning.
    let parts: String = (1_000..1_030).map(|number| format!(" part{number}")).collect();
    let other = format!("invocie{parts}");
    import_records(&path, "a", &[line(1, &other), line(2, &other)].join("\n"));
    import_records(&path, "b", &[line(3, "an invoice"), line(4, "only part1099")].join("\n"));
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
    let path = new_store(&folder);
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

/// Mails sent again and replies with a quotation are folded; invoices and other connections are not. Later pages have the
/// order of the first, whatever happens to the records.
#[tokio::test]
async fn mails_with_another_date_and_quoting_replies_are_folded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    let body = "Dear all, the office is closed while the heating is repaired. Please take your plants home and leave \
                the windows shut. The porter keeps a key for urgent cases.";
    let mail = |key: &str, date: &str, subject: &str, body: &str| {
        let data = json!({"subject": subject, "from": "ann@x.test", "to": ["all@x.test"], "date": date,
            "message_id": format!("{key}@x.test"), "body": body});
        json!({"stream": "mail", "key": key, "data": data}).to_string()
    };
    let quoted = body.replace(". ", ".\n> ");
    let reply = format!("Thank you.\n\nOn Thu, 12 Mar 2026 at 10:00, Ann wrote:\n> {quoted}");
    let invoice = |number: u32| format!("Invoice {number} of the heating company: {body} Number {number}.");
    let lines = [
        mail("first", "2026-03-12T10:00:00Z", "Heating", body),
        mail("again", "2026-04-12T10:00:00Z", "Heating", body),
        mail("reply", "2026-03-13T10:00:00Z", "Re: Heating", &reply),
        mail("invoice1", "2026-03-01T10:00:00Z", "Invoice 1001", &invoice(1001)),
        mail("invoice2", "2026-03-02T10:00:00Z", "Invoice 1002", &invoice(1002)),
    ];
    import_records(&path, "work", &lines.join("\n"));
    import_records(&path, "home", &mail("other", "2026-03-12T10:00:00Z", "Heating", body));
    let query = SearchQuery::new("heating office porter", 2);
    let hits = walk(&path, &query).await;
    let copies: BTreeSet<(String, u32)> = hits.iter().map(|hit| (key(hit), hit.near_copies)).collect();
    let expect = [("again", 0), ("first", 2), ("invoice1", 0), ("invoice2", 0), ("other", 0), ("reply", 0)];
    assert_eq!(copies, expect.map(|(key, copies)| (key.to_owned(), copies)).into());
    let order: Vec<String> = hits.iter().map(key).collect();
    let at = |key: &str| order.iter().position(|found| found == key).unwrap();
    assert!(at("other") < at("again") && at("other") < at("reply"), "{order:?}");
    // A word that only the reply has is what the search is about.
    let found = open_store(&path).search(&SearchQuery::new("heating office thank", 10)).await.unwrap().hits;
    assert!(found.iter().all(|hit| key(hit) != "reply" || hit.near_copies == 0), "{found:?}");
    assert_eq!(found.iter().map(|hit| hit.near_copies).sum::<u32>(), 1, "{found:?}");
    // The texts are read for the first page alone.
    let source = open_store(&path);
    let first = source.search(&query).await.unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute("UPDATE records SET data = '{\"body\": \"changed\"}' WHERE key IN ('again', 'reply')", ())
        .unwrap();
    let (mut rest, mut position) = (first.hits.iter().map(key).collect::<Vec<_>>(), first.next);
    while position.is_some() {
        let page = source.search(&SearchQuery { position, ..query.clone() }).await.unwrap();
        rest.extend(page.hits.iter().map(key));
        position = page.next;
    }
    assert_eq!(rest, order);
}

#[tokio::test]
async fn complete_words_come_before_shorter_ones_for_a_misspelt_word() {
    // No text has the word. One more letter is as near as one letter less.
    let (_folder, path) =
        notes(&["comm of CommPort", "common among many other words of a longer text", "comm comm"]);
    assert_eq!(keys(&path, &SearchQuery::new("commn", 10)).await[0], "1");
    assert_eq!(keys(&path, &SearchQuery::new("commn", 10)).await.len(), 3);
}

#[tokio::test]
async fn words_that_are_not_searched_are_named() {
    let (_folder, path) = notes(&["w399", "w400"]);
    let words = |count: usize| (0..count).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    let notes = async |count: usize| {
        open_store(&path).search(&SearchQuery::new(&words(count), 10)).await.unwrap().notes
    };
    assert_eq!(notes(400).await, Vec::<String>::new());
    assert_eq!(notes(401).await, ["only the first 400 words of the query were searched"]);
}

/// Each of 24 texts exists twice. Pages show each first one with its number of copies, also pages from a cursor.
#[tokio::test]
async fn copies_are_counted_in_the_answer_and_shown_on_later_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
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

/// Imports rows of a table and a few mails with the same words.
fn rows_and_mails(rows: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let row = |number: usize| {
        let data = json!({"item": "overdue invoice item", "number": number});
        json!({"stream": "rows", "key": format!("row{number}"), "data": data}).to_string()
    };
    let mail = |number: usize| {
        let body = format!("Your overdue invoice is attached, please pay it within {number} days. Regards");
        let data = json!({"subject": format!("Reminder {number}"), "body": body});
        json!({"stream": "mail", "key": format!("mail{number}"), "data": data}).to_string()
    };
    let lines: Vec<String> = (0..rows).map(row).chain((0..8).map(mail)).collect();
    import_records(&path, "a", &lines.join("\n"));
    (folder, path)
}

#[tokio::test]
async fn many_rows_of_one_stream_leave_room_for_mails() {
    for rows in [150, 300] {
        let (_folder, path) = rows_and_mails(rows);
        let hits = walk(&path, &SearchQuery::new("overdue invoice", 10)).await;
        let mails = hits.iter().take(10).filter(|hit| key(hit).starts_with("mail")).count();
        assert!(mails >= 4, "{rows}: {mails} of the first ten");
        let all: BTreeSet<String> = hits.iter().map(key).collect();
        assert_eq!((hits.len(), all.len()), (rows + 8, rows + 8), "every match once");
    }
}

#[tokio::test]
#[cfg_attr(debug_assertions, ignore = "imports 20,000 records, which takes long in a debug build")]
async fn twenty_thousand_rows_leave_room_for_mails() {
    let (_folder, path) = rows_and_mails(20_000);
    let found = keys(&path, &SearchQuery::new("overdue invoice", 10)).await;
    assert!(found.iter().filter(|key| key.starts_with("mail")).count() >= 4, "{found:?}");
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
    let page = open_store(&path).search(&SearchQuery::new("alpha one", 10)).await.unwrap();
    assert_eq!(page.hits.iter().map(key).collect::<Vec<_>>(), ["1"]);
}

const HEATING: &str = "Dear all, the office is closed while the heating is repaired. Please take your plants home and leave \
                    the windows shut. The porter keeps a key for urgent cases.";

fn heating(key: &str, body: &str) -> String {
    json!({"stream": "mail", "key": key, "data": {"subject": "Heating", "body": body}}).to_string()
}

/// Searches for the first hits. Returns the key of each with the number of its near-copies.
async fn copies(source: &BoundSource, text: &str) -> BTreeMap<String, u32> {
    let hits = source.search(&SearchQuery::new(text, 10)).await.unwrap().hits;
    hits.iter().map(|hit| (key(hit), hit.near_copies)).collect()
}

#[tokio::test]
async fn a_changed_record_is_ranked_by_its_new_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    import_records(
        &path,
        "work",
        &[heating("1", HEATING), heating("2", HEATING), heating("3", HEATING)].join("\n"),
    );
    let source = open_store(&path);
    let check = async |expect: &[(&str, u32)]| {
        let expect: BTreeMap<String, u32> =
            expect.iter().map(|(key, copies)| ((*key).to_owned(), *copies)).collect();
        for _ in 0..2 {
            assert_eq!(copies(&source, "heating office").await, expect);
        }
    };
    check(&[("1", 2), ("2", 0), ("3", 0)]).await;
    import_records(&path, "work", &heating("2", &format!("{HEATING} It costs 70 euros.")));
    check(&[("1", 1), ("2", 0), ("3", 0)]).await;
    import_records(&path, "work", &heating("2", HEATING));
    check(&[("1", 2), ("2", 0), ("3", 0)]).await;
    // Another program changes the text and leaves the version as it is.
    let database = rusqlite::Connection::open(&path).unwrap();
    let change =
        "UPDATE records SET data = json_set(data, '$.body', data ->> '$.body' || ?1) WHERE key = '3'";
    database.execute(change, ["It costs 80 euros."]).unwrap();
    check(&[("1", 1), ("2", 0), ("3", 0)]).await;
    let deletion = json!({"stream": "mail", "key": "2", "op": "delete"}).to_string();
    import_records(&path, "work", &deletion);
    check(&[("1", 0), ("3", 0)]).await;
}

/// Imports records while a source is searched that keeps what it has read.
fn import_beside(path: &Path, round: u64) -> std::thread::JoinHandle<()> {
    let bodies =
        [HEATING.to_owned(), format!("{HEATING} Best, Ann"), format!("{HEATING} It costs {round} euros.")];
    let pick = |at: u64, count: u64| usize::try_from((round * 7 + at * 5) % 11 % count).unwrap();
    let record = |at: u64| {
        let key = ((round * 3 + at) % 8).to_string();
        match pick(at, 4) {
            3 => json!({"stream": "mail", "key": key, "op": "delete"}).to_string(),
            body => heating(&key, &bodies[body]),
        }
    };
    let lines = (0..4).map(record).collect::<Vec<_>>().join("\n");
    let path = path.to_owned();
    std::thread::spawn(move || import_records(&path, "work", &lines))
}

#[tokio::test]
async fn searches_find_the_same_whatever_was_read_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.db");
    import_records(
        &path,
        "work",
        &(0..8).map(|key| heating(&key.to_string(), HEATING)).collect::<Vec<_>>().join("\n"),
    );
    let source = open_store(&path);
    for round in 0..8 {
        let import = import_beside(&path, round);
        while !import.is_finished() {
            source.search(&SearchQuery::new("heating euros", 10)).await.unwrap();
        }
        import.join().unwrap();
        for text in ["heating", "heatings offices", "euros ann", "heatng kyes", "office porter costs"] {
            let query = SearchQuery::new(text, 10);
            let cold = open_store(&path).search(&query).await.unwrap();
            let warm = source.search(&query).await.unwrap();
            assert_eq!(
                (warm.hits, warm.count, warm.next),
                (cold.hits, cold.count, cold.next),
                "{round} {text}"
            );
        }
    }
}

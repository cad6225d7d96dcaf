//! The embedded store as a source: search results, and repair of its index.

use std::path::{Path, PathBuf};

use fetchwell_source::contract::StoreError;
use fetchwell_source::{BoundSource, RecordQuery, SearchQuery, SourceError};
use fetchwell_sqlite::SqliteStore;
use serde_json::json;

use crate::support::{StdioServer, fetchwell, import_records, stderr, stdout, text};

/// Returns a store of texts, each a record of stream `notes` with its number as key.
fn store_of(texts: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let lines = texts.iter().enumerate().map(|(number, text)| {
        json!({"stream": "notes", "key": number, "data": {"body": text}, "emitted_at": "2026-01-01T00:00:00Z"}).to_string()
    });
    import_records(&path, "c", &lines.collect::<Vec<_>>().join("\n"));
    (folder, path)
}

fn open(path: &Path) -> BoundSource {
    SqliteStore::open("store".parse().unwrap(), path).unwrap().into()
}

fn query(words: &str) -> SearchQuery {
    SearchQuery::new(words, 10)
}

/// Returns the keys of the records found, sorted.
async fn found(path: &Path, words: &str) -> Vec<usize> {
    let page = open(path).search(&query(words)).await.unwrap();
    let mut keys: Vec<usize> = page.hits.iter().map(key_of).collect();
    keys.sort_unstable();
    keys
}

fn key_of(hit: &fetchwell_core::record::Hit) -> usize {
    let fetchwell_core::record::HitId::Record(address) = &hit.id else { panic!("{hit:?}") };
    address.record.as_str().parse().unwrap()
}

#[tokio::test]
async fn words_of_several_scripts_are_found_in_any_spelling() {
    let (_folder, path) = store_of(&[
        "The café in Kraków opens at seven",
        "Straße nach Ørestad",
        "東京都千代田区の請求書",
        "お疲れ様です。カフェで会いましょう",
        "서울의 카페에서 만나요",
        "user_123 pays a.b@example.com",
        "NOT AND OR (brackets) \"quotes\" * NEAR",
        "ＦＵＬＬＷＩＤＴＨ ﬁne",
    ]);
    for (words, expect) in [
        ("cafe", vec![0]),
        ("CAFÉ krakow", vec![0]),
        ("strasse", vec![1]),
        ("orestad", vec![1]),
        ("東京", vec![2]),
        ("東京都", vec![2]),
        ("京都", vec![2]),
        ("請求書 東京", vec![2]),
        ("京", vec![2]),
        ("カフェ", vec![3]),
        ("카페", vec![4]),
        ("user_123", vec![5]),
        ("a.b@example.com", vec![5]),
        ("123_user", vec![5]),
        ("NOT AND", vec![6]),
        ("\"quotes\"", vec![6]),
        ("(brackets", vec![6]),
        ("near*", vec![6]),
        ("fullwidth FINE", vec![7]),
        ("北京", vec![]),
        ("京東", vec![]),
    ] {
        assert_eq!(found(&path, words).await, expect, "{words}");
    }
}

#[tokio::test]
async fn a_query_without_words_finds_nothing_with_a_note() {
    let (_folder, path) = store_of(&["text"]);
    let page = open(&path).search(&query("*** ( \"")).await.unwrap();
    assert!(page.hits.is_empty() && page.notes[0].contains("no letters or digits"));
}

#[tokio::test]
async fn any_word_is_enough_and_all_words_come_first() {
    let (_folder, path) = store_of(&["alpha", "gamma", "delta", "alpha gamma"]);
    let page = open(&path).search(&query("alpha gamma")).await.unwrap();
    assert_eq!(page.hits.len(), 3);
    assert_eq!(key_of(&page.hits[0]), 3);
    assert!(page.notes.is_empty());
    assert_eq!(page.count, Some(fetchwell_source::Count::exact(3)));
}

#[tokio::test]
async fn a_better_match_comes_first() {
    let filler = "lorem ipsum dolor sit amet ".repeat(40);
    let long = format!("{filler} zebra {filler}");
    let (_folder, path) = store_of(&[&long, "zebra", "zebra zebra zebra at the zoo"]);
    let page = open(&path).search(&query("zebra")).await.unwrap();
    assert_eq!(page.hits.len(), 3);
    assert_eq!(key_of(page.hits.last().unwrap()), 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("titled.db");
    let lines = [
        json!({"stream": "s", "key": "0", "data": {"title": "Minutes", "body": "the budget was discussed"}}),
        json!({"stream": "s", "key": "1", "data": {"title": "Budget", "body": "what was discussed at length"}}),
    ];
    import_records(&path, "c", &lines.map(|line| line.to_string()).join("\n"));
    assert_eq!(key_of(&open(&path).search(&query("budget")).await.unwrap().hits[0]), 1);
}

/// More records than are ranked have the parts of the identifier, more often and in shorter texts.
#[tokio::test]
async fn a_whole_identifier_is_found_among_many_records_with_its_parts() {
    let parts = |number: usize| format!("some open bugs in 2.14.2 and 2.14.{number} of 0 known");
    let mut texts: Vec<String> = (100..500).map(parts).collect();
    texts.push(format!("{}Use version 0.2.14 here. {}", "long words ".repeat(15), "and more ".repeat(15)));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (_folder, path) = store_of(&texts);
    for words in ["0.2.14", "release 0.2.14"] {
        let page = open(&path).search(&query(words)).await.unwrap();
        assert_eq!(key_of(&page.hits[0]), 400, "{words}");
    }
}

#[tokio::test]
async fn a_scope_limits_connection_and_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scoped.db");
    let line = |stream: &str, key: usize| {
        json!({"stream": stream, "key": key, "data": {"body": "alpha"}}).to_string()
    };
    import_records(&path, "work", &[line("mail", 0), line("files", 1)].join("\n"));
    import_records(&path, "home", &[line("mail", 2), line("tasks", 3)].join("\n"));
    let store = open(&path);
    let scoped = |connection: Option<&str>, streams: &[&str]| SearchQuery {
        connection: connection.map(|id| id.parse().unwrap()),
        streams: streams.iter().map(|stream| stream.parse().unwrap()).collect(),
        ..query("alpha")
    };
    for (connection, streams, expect) in [
        (None, vec![], vec![0, 1, 2, 3]),
        (Some("work"), vec![], vec![0, 1]),
        (None, vec!["mail"], vec![0, 2]),
        (None, vec!["mail", "tasks"], vec![0, 2, 3]),
        (None, vec!["mail", "mail"], vec![0, 2]),
        (Some("home"), vec!["mail"], vec![2]),
        (Some("home"), vec!["tasks", "mail"], vec![2, 3]),
    ] {
        let page = store.search(&scoped(connection, &streams)).await.unwrap();
        let mut keys: Vec<usize> = page.hits.iter().map(key_of).collect();
        keys.sort_unstable();
        assert_eq!(keys, expect, "{connection:?} {streams:?}");
    }
    let unknown = store.search(&scoped(Some("unknown"), &["mail"])).await.unwrap_err();
    assert!(
        matches!(&unknown, SourceError::ConnectionNotFound { asked, .. } if asked == "unknown"),
        "{unknown:?}"
    );
    for (connection, streams, unknown) in
        [(Some("home"), vec!["files"], "files"), (None, vec!["mail", "male"], "male")]
    {
        let refused = store.search(&scoped(connection, &streams)).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("no stream `{unknown}`")), "{refused}");
    }
}

#[tokio::test]
async fn the_excerpt_shows_the_match() {
    let filler = "lorem ipsum dolor sit amet ".repeat(400);
    let (_folder, path) = store_of(&[&format!("{filler}the Needle is here {filler}")]);
    let page = open(&path).search(&query("needle")).await.unwrap();
    let excerpt = &page.hits[0].excerpt;
    assert_eq!(excerpt.text().get(excerpt.focus()).unwrap(), "Needle");
    assert!(excerpt.text().len() < 1_000);
}

#[tokio::test]
async fn pages_lose_and_repeat_nothing_during_writes() {
    let texts: Vec<String> =
        (0..500).map(|number| format!("common word{} {}", number % 7, "x ".repeat(number % 50))).collect();
    let (_folder, path) = store_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let store = open(&path);
    let (mut seen, mut deleted) = (Vec::new(), Vec::new());
    let mut position = None;
    for round in 0.. {
        let page = store.search(&SearchQuery { limit: 37, position, ..query("common") }).await.unwrap();
        seen.extend(page.hits.iter().map(key_of));
        position = page.next;
        if position.is_none() {
            break;
        }
        if round % 4 == 0 {
            // Another process adds matching records, and deletes one that was not shown yet.
            let gone = (0..500).rev().find(|key| !seen.contains(key) && !deleted.contains(key)).unwrap();
            deleted.push(gone);
            let lines = [
                json!({"stream": "notes", "key": 1_000 + round, "data": {"body": "common newcomer"}}),
                json!({"stream": "notes", "key": gone, "op": "delete"}),
            ];
            import_records(&path, "c", &lines.map(|line| line.to_string()).join("\n"));
        }
    }
    assert!(deleted.len() >= 3, "{deleted:?}");
    // Every record that existed during the whole walk is shown once, and no other.
    let expect: Vec<usize> = (0..500).filter(|key| !deleted.contains(key)).collect();
    seen.sort_unstable();
    assert_eq!(seen, expect);
}

#[tokio::test]
async fn a_position_of_another_state_is_refused() {
    let texts: Vec<String> = (0..30).map(|number| format!("common {number}")).collect();
    let (_folder, path) = store_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let first = open(&path).search(&query("common")).await.unwrap();
    // After a restart with an unchanged store the position is still valid.
    let again =
        open(&path).search(&SearchQuery { position: first.next.clone(), ..query("common") }).await.unwrap();
    assert_eq!(again.hits.len(), 10);
    import_records(
        &path,
        "c",
        &json!({"stream": "notes", "key": 99, "data": {"body": "common"}}).to_string(),
    );
    let refused = open(&path).search(&SearchQuery { position: first.next, ..query("common") }).await;
    assert!(matches!(refused, Err(SourceError::InvalidCursor)));
    for nonsense in [
        "",
        "1",
        "1.all",
        "1.some.3",
        "1.all.x",
        "1.all.1.1",
        "-1.all.99999999999999999999",
        "r1.1",
        "r1.x.3",
        "r1.1.2.3",
        "r2.1.2",
        "r2.1.2.x",
        "r2.1.2.2-1",
    ] {
        let position = Some(fetchwell_source::SearchPosition(nonsense.to_owned()));
        let refused = open(&path).search(&SearchQuery { position, ..query("common") }).await;
        assert!(matches!(refused, Err(SourceError::InvalidCursor)), "{nonsense}");
    }
}

#[tokio::test]
async fn a_missing_damaged_or_outdated_index_is_repaired() {
    let (_folder, path) = store_of(&["alpha", "beta"]);
    let index = path.with_file_name("notes.db-index");
    assert!(index.is_dir());
    std::fs::remove_dir_all(&index).unwrap();
    assert_eq!(found(&path, "alpha").await, [0]);
    for entry in std::fs::read_dir(&index).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension != "lock") {
            std::fs::write(file, b"garbage").unwrap();
        }
    }
    assert_eq!(found(&path, "beta").await, [1]);
    // The index of another store was put here by mistake.
    let (_other_folder, other) = store_of(&["gamma"]);
    std::fs::remove_dir_all(&index).unwrap();
    copy(&other.with_file_name("notes.db-index"), &index);
    let refused = open(&path).search(&query("gamma")).await.unwrap_err();
    assert!(matches!(&refused, SourceError::Store(StoreError::IndexForeign { .. })), "{refused}");
    std::fs::remove_dir_all(&index).unwrap();
    assert_eq!(found(&path, "gamma").await, Vec::<usize>::new());
    assert_eq!(found(&path, "alpha").await, [0]);
    // A crash between the commits of the store and the index leaves the index behind.
    let behind = path.with_file_name("behind");
    copy(&index, &behind);
    import_records(
        &path,
        "c",
        &[
            json!({"stream": "notes", "key": 2, "data": {"body": "delta"}}).to_string(),
            json!({"stream": "notes", "key": 0, "op": "delete"}).to_string(),
        ]
        .join("\n"),
    );
    std::fs::remove_dir_all(&index).unwrap();
    std::fs::rename(&behind, &index).unwrap();
    assert_eq!(found(&path, "delta").await, [2]);
    assert_eq!(found(&path, "alpha").await, Vec::<usize>::new());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[tokio::test]
async fn a_running_reader_sees_later_imports() {
    let (_folder, path) = store_of(&["alpha"]);
    let store = open(&path);
    assert!(store.search(&query("beta")).await.unwrap().hits.is_empty());
    import_records(&path, "c", &json!({"stream": "notes", "key": 1, "data": {"body": "beta"}}).to_string());
    assert_eq!(store.search(&query("beta")).await.unwrap().hits.len(), 1);
    import_records(
        &path,
        "c",
        &json!({"stream": "notes", "key": 1, "data": {"body": "changed"}}).to_string(),
    );
    assert!(store.search(&query("beta")).await.unwrap().hits.is_empty());
    let address = "c/notes:1".parse::<fetchwell_core::handle::Handle>().unwrap().address().clone();
    let record = store.record(&RecordQuery::new(address)).await.unwrap();
    assert_eq!(record.data["body"], "changed");
}

#[tokio::test]
async fn a_running_reader_follows_a_replaced_file() {
    let (folder, path) = store_of(&["alpha", "beta"]);
    let aside = |name: &str| folder.path().join(name);
    std::fs::copy(&path, aside("good")).unwrap();
    std::fs::copy(&path, aside("copy")).unwrap();
    let store = open(&path);
    let read = |number: usize| {
        let address = format!("c/notes:{number}").parse::<fetchwell_core::handle::Handle>().unwrap();
        let (store, address) = (store.clone(), address.address().clone());
        async move { store.record(&RecordQuery::new(address)).await }
    };
    assert_eq!(read(0).await.unwrap().data["body"], "alpha");
    assert_eq!(store.search(&query("alpha")).await.unwrap().hits.len(), 1);

    // The file is truncated, and then replaced by a good copy.
    let damaged = std::fs::File::options().write(true).open(&path).unwrap();
    for length in [5_000, 100, 0] {
        damaged.set_len(length).unwrap();
        store.health().await.unwrap_err();
        read(0).await.unwrap_err();
    }
    std::fs::rename(aside("good"), &path).unwrap();
    store.health().await.unwrap();
    assert_eq!(read(0).await.unwrap().data["body"], "alpha");

    // The file is deleted: the reader does not continue as if it existed.
    std::fs::remove_file(&path).unwrap();
    let is_missing = |error: SourceError| {
        assert!(matches!(&error, SourceError::Store(StoreError::Missing(_))), "{error}");
    };
    is_missing(store.health().await.unwrap_err());
    is_missing(read(0).await.unwrap_err());
    is_missing(store.schema().await.unwrap_err());
    is_missing(store.search(&query("alpha")).await.unwrap_err());
    std::fs::rename(aside("copy"), &path).unwrap();
    assert_eq!(read(1).await.unwrap().data["body"], "beta");
    assert_eq!(store.search(&query("beta")).await.unwrap().hits.len(), 1);

    // Another store with as many changes, which have the same row numbers.
    let (_other_folder, other) = store_of(&["gamma", "delta"]);
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(read(0).await.unwrap().data["body"], "gamma");
    assert!(store.search(&query("alpha")).await.unwrap().hits.is_empty());
    assert_eq!(store.search(&query("delta")).await.unwrap().hits.len(), 1);

    // An earlier copy of the store, with an index that is newer.
    std::fs::copy(&path, aside("earlier")).unwrap();
    import_records(&path, "c", &json!({"stream": "notes", "key": 1, "data": {"body": "later"}}).to_string());
    assert_eq!(store.search(&query("later")).await.unwrap().hits.len(), 1);
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!("notes.db{suffix}")));
    }
    std::fs::rename(aside("earlier"), &path).unwrap();
    assert!(store.search(&query("later")).await.unwrap().hits.is_empty());
    assert_eq!(store.search(&query("delta")).await.unwrap().hits.len(), 1);
}

#[test]
fn files_other_than_stores_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("text.db"), "This is a text and no database at all.").unwrap();
    std::fs::write(path("short.db"), "x").unwrap();
    std::fs::write(path("empty.db"), "").unwrap();
    std::fs::create_dir(path("folder.db")).unwrap();
    let foreign = rusqlite::Connection::open(path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE t (x)").unwrap();
    let (_keep, newer) = store_of(&["x"]);
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    std::fs::copy(&newer, path("newer.db")).unwrap();
    let (_keep, damaged) = store_of(&["x"]);
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[4_096..].fill(0xAB);
    std::fs::write(path("damaged.db"), bytes).unwrap();
    for (name, part) in [
        ("missing.db", "fetchwell import"),
        ("text.db", "not a fetchwell store"),
        ("short.db", "not a fetchwell store"),
        ("empty.db", "fetchwell import"),
        ("folder.db", "check its path"),
        ("foreign.db", "not a fetchwell store"),
        ("newer.db", "upgrade fetchwell"),
        ("damaged.db", "restore it from a backup"),
    ] {
        let output = fetchwell(["connections", "--store", text(&path(name))]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(stderr(&output).contains(part), "{name}: {output:?}");
    }
    // Opening a file does not change it.
    assert_eq!(std::fs::read(path("text.db")).unwrap(), b"This is a text and no database at all.");
    assert!(!path("missing.db").exists());
}

/// Returns a store with this many records and without an index.
fn store_without_index(records: usize) -> (tempfile::TempDir, PathBuf) {
    let texts: Vec<String> = (0..records).map(|number| format!("needle{number} in a haystack")).collect();
    let (folder, path) = store_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::remove_dir_all(path.with_file_name("notes.db-index")).unwrap();
    (folder, path)
}

#[test]
fn a_command_that_searches_once_completes_the_index_first() {
    let (_folder, path) = store_without_index(12_000);
    let output = fetchwell(["search", "needle11999", "--store", text(&path)]);
    assert!(stdout(&output).contains("c/notes:11999"), "{output:?}");
    let (_folder, path) = store_without_index(12_000);
    let checked = stdout(&fetchwell(["doctor", "--store", text(&path)]));
    assert!(checked.contains("complete now; it lacked 12,000 records"), "{checked}");
    let checked = stdout(&fetchwell(["doctor", "--store", text(&path)]));
    assert!(checked.lines().any(|line| line.contains("index") && line.ends_with("complete")), "{checked}");
}

#[tokio::test]
async fn searches_have_a_note_while_the_index_is_completed() {
    let (_folder, path) = store_without_index(20_000);
    let store = open(&path);
    let mut said = Vec::new();
    loop {
        let page = store.search(&query("needle19999")).await.unwrap();
        let Some(note) = page.notes.into_iter().next() else { break };
        assert!(note.starts_with("the search index is being completed; "), "{note}");
        said.push(note);
    }
    assert!(said.len() > 1 && said[0].contains("20000 records"), "{said:?}");
    assert_eq!(store.search(&query("needle19999")).await.unwrap().hits.len(), 1);
}

#[test]
fn an_interrupted_catch_up_continues() {
    let (_folder, path) = store_without_index(30_000);
    let mut server = StdioServer::start(["--store", text(&path)]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"needle1"}}}"#);
    server.receive();
    let meta = path.with_file_name("notes.db-index").join("meta.json");
    let started = std::time::Instant::now();
    while !std::fs::read_to_string(&meta).unwrap_or_default().contains("layout") {
        assert!(started.elapsed().as_secs() < 60, "no commit");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let checked = stdout(&fetchwell(["doctor", "--store", text(&path)]));
    assert!(checked.contains("complete now; it lacked "), "{checked}");
    let lacked = checked.split("it lacked ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "");
    assert!(lacked.parse::<u32>().unwrap() <= 20_000, "{lacked}");
}

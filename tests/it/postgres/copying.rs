//! Copies of stores between files and PostgreSQL.

use std::path::Path;

use serde_json::{Value, json};

use super::documents::has_pgvector;
use crate::support::stores::postgres::{Database, connect};
use crate::support::{fetchwell, handbook, import_records, stderr, stdout, text};

/// Returns awkward records: numbers that lose digits when they are read as binary fractions, keys of all kinds.
fn lines() -> String {
    let mut lines = String::new();
    for number in 0..50 {
        let key = ["plain", "with space", "a/b", "ü", "..%2F"][number % 5];
        let data = json!({"title": format!("Record {number}"), "n": 0.1 + number as f64 / 3.0, "text": "\u{0}\\\"é"});
        let time = format!("2026-01-{:02}T00:00:00Z", number % 28 + 1);
        let stream = if number % 3 == 0 { "odd" } else { "notes" };
        let line =
            json!({"stream": stream, "key": format!("{key}{number}"), "data": data, "emitted_at": time});
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

/// Runs a copy and returns its value.
#[track_caller]
fn copy(from: &str, to: &str) -> Value {
    let output = fetchwell(["store", "copy", from, to, "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!stderr(&output).contains("fetchwell-test"), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the lines of all records of a connection, sorted.
#[track_caller]
fn records(store: &str) -> Vec<String> {
    let output = fetchwell(["export", "work", "--format", "ndjson", "--store", store]);
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_store_is_the_same_after_a_copy_there_and_back() {
    let database = Database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("notes.db"), folder.path().join("back.db"));
    import_records(&file, "work", &lines());
    import_records(&file, "home", "{\"stream\":\"s\",\"key\":\"k\",\"data\":{}}\n");
    let first = copy(text(&file), &database.url);
    assert_eq!((&first["records"], &first["connections"][0]["added"]), (&json!(51), &json!(50)));
    let second = copy(text(&file), &database.url);
    for connection in second["connections"].as_array().unwrap() {
        let written = ["added", "changed", "deleted"].map(|effect| connection[effect].as_u64().unwrap());
        assert_eq!(written, [0, 0, 0], "{second}");
    }
    let version = "SELECT version FROM fetchwell.store";
    let client = connect(&database.url).await;
    assert_eq!(client.query_one(version, &[]).await.unwrap().get::<_, i64>(0), 51);
    copy(&database.url, text(&back));
    let original = records(text(&file));
    assert_eq!(original.len(), 50);
    assert_eq!(records(&database.url), original);
    assert_eq!(records(text(&back)), original);
    // The ids that a search prints are the same.
    let ids = |store: &str| {
        let output = fetchwell(["search", "Record", "--store", store, "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut ids: Vec<String> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let fetched = fetchwell(["fetch", &ids(&database.url)[0], "--store", text(&file)]);
    assert!(fetched.status.success(), "{fetched:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn an_interrupted_copy_continues_and_deletions_follow() {
    let database = Database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    import_records(&file, "work", &lines());
    copy(text(&file), &database.url);
    // A part of the copy is missing, as after an interruption.
    let client = database.client().await;
    client
        .batch_execute("DELETE FROM fetchwell.texts WHERE key LIKE 'plain%'; DELETE FROM fetchwell.records WHERE key LIKE 'plain%'")
        .await
        .unwrap();
    let rest = copy(text(&file), &database.url);
    assert_eq!((&rest["connections"][0]["added"], &rest["records"]), (&json!(10), &json!(50)), "{rest}");
    import_records(&file, "work", "{\"stream\":\"notes\",\"key\":\"ü8\",\"op\":\"delete\"}\n");
    let after = copy(text(&file), &database.url);
    assert_eq!((&after["connections"][0]["deleted"], &after["records"]), (&json!(1), &json!(49)), "{after}");
    // Records that only the copy has are reported, and stay.
    database.import("work", "{\"stream\":\"notes\",\"key\":\"extra\",\"data\":{}}\n");
    let different = fetchwell(["store", "copy", text(&file), &database.url]);
    assert!(!different.status.success(), "{different:?}");
    assert!(stderr(&different).contains("`notes` of `work`"), "{different:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_database_is_copied_into_another_one() {
    let (from, to) = (Database::create().await, Database::create().await);
    from.import("work", &lines());
    assert_eq!(copy(&from.url, &to.url)["records"], 50);
    assert_eq!(records(&to.url), records(&from.url));
    let itself = fetchwell(["store", "copy", &from.url, &from.url]);
    assert!(!itself.status.success() && stderr(&itself).contains("into itself"), "{itself:?}");
}

/// Returns the ids of the projects, documents and chunks of a file.
fn ids_in_file(file: &Path) -> Vec<[String; 3]> {
    let sqlite = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT project_id, document_id || ' ' || chunk_index, id FROM chunk_ranges";
    let mut statement = sqlite.prepare(sql).unwrap();
    let rows = statement.query_map((), |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
    let mut ids: Vec<[String; 3]> = rows.map(Result::unwrap).collect();
    ids.sort();
    ids
}

/// Returns the ids of the projects, documents and chunks of a database.
async fn ids_in_database(database: &Database) -> Vec<[String; 3]> {
    let sql = "SELECT project_id::text, document_id::text || ' ' || chunk_index, id::text
         FROM fetchwell.chunks";
    let rows = database.client().await.query(sql, &[]).await.unwrap();
    let mut ids: Vec<[String; 3]> = rows.iter().map(|row| [row.get(0), row.get(1), row.get(2)]).collect();
    ids.sort();
    ids
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_project_keeps_its_ids_there_and_back() {
    let database = Database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("handbook.db"), folder.path().join("back.db"));
    handbook::import(&folder.path().join("docs"), &file);
    import_records(&file, "work", &lines());
    if !has_pgvector(&database).await {
        let refused = fetchwell(["store", "copy", text(&file), &database.url]);
        assert!(!refused.status.success() && stderr(&refused).contains("pgvector"), "{refused:?}");
        return;
    }
    let first = copy(text(&file), &database.url);
    let original = ids_in_file(&file);
    assert!(original.len() > 3, "{original:?}");
    assert_eq!(ids_in_database(&database).await, original);
    let again = copy(text(&file), &database.url);
    assert_eq!(again["records"], first["records"]);
    for connection in again["connections"].as_array().unwrap() {
        assert_eq!((&connection["added"], &connection["changed"]), (&json!(0), &json!(0)), "{again}");
    }
    copy(&database.url, text(&back));
    assert_eq!(ids_in_file(&back), original);
    let shown = |store: &str| {
        let project = stdout(&fetchwell(["project", "show", "handbook", "--json", "--store", store]));
        let project: Value = serde_json::from_str(&project).unwrap();
        // Versions and times of changes are those of a store.
        ["id", "slug", "name", "settings"].map(|field| project["project"][field].clone())
    };
    assert_eq!(shown(text(&back)), shown(text(&file)));
    assert!(shown(&database.url)[0].is_string(), "{:?}", shown(&database.url));

    // A project of the name with another id is not overwritten.
    let other = folder.path().join("other.db");
    handbook::import(&folder.path().join("docs"), &other);
    let refused = fetchwell(["store", "copy", text(&other), &database.url]);
    assert!(!refused.status.success() && stderr(&refused).contains("with another id"), "{refused:?}");
    assert_eq!(ids_in_database(&database).await, original);
}

//! A store in PostgreSQL answers like the embedded one. `tests/postgres/run` starts the servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use fetchwell_source::{
    AggregateQuery, BoundSource, Change, ChangesToken, Direction, Filter, Grouping, Metric, RecordQuery,
    RecordsQuery, Start,
};
use fetchwell_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::sources::conformance::{
    address, code, conforms, import_corpus, name, narrows_further, records_of, walk,
};
use crate::support::stores::postgres::Database;
use crate::support::{HttpServer, fetchwell, get, import_records, stderr, stdout, text};

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn the_store_in_postgresql_conforms() {
    let database = Database::create().await;
    import_corpus(&database.url);
    let source: BoundSource = database.store().into();
    conforms(&source).await;
    narrows_further(&source).await;
}

/// Records with values of every kind, in a stream without a manifest and with repeated, changed and deleted ones.
fn mixed_records() -> String {
    let long = "a long text, é 😀 ".repeat(8_000);
    let values = [
        json!(null),
        json!(true),
        json!(-12.5),
        json!(0),
        json!(-0.0),
        json!(1e300),
        json!(9_007_199_254_740_993_i64),
        json!("12"),
        json!("2026-04-01T00:00:00+02:00"),
        json!("2026-04-01"),
        json!("é"),
        json!("z"),
        json!("Z"),
        json!("a\u{0}b"),
        json!(["a", 2]),
        json!({"b": 1, "a": [1.50, 2]}),
        json!(long),
    ];
    let mut lines = String::new();
    let mut line = |key: String, data: Option<Value>, at: Option<String>| {
        let op = if data.is_none() { json!("delete") } else { json!("upsert") };
        let line = json!({"stream": "mixed", "key": key, "op": op, "data": data, "emitted_at": at});
        lines.push_str(&format!("{line}\n"));
    };
    for (number, value) in values.iter().enumerate() {
        for copy in 0..3 {
            let at = format!("2026-01-{:02}T00:00:00Z", 1 + (number * 7 + copy) % 28);
            let data =
                json!({"value": value, "n\u{0}ul": 1, "number": number as f64 * 1.5 - 9.0, "copy": copy});
            line(format!("k{number}/{copy}é"), Some(data), (copy > 0).then_some(at));
        }
    }
    line("k0/0é".to_owned(), None, Some("2026-02-01T00:00:00Z".to_owned()));
    line("k1/0é".to_owned(), Some(json!({"value": "changed"})), None);
    line("k2/0é".to_owned(), None, None);
    line("k2/0é".to_owned(), Some(json!({"value": "again"})), None);
    lines
}

/// Opens an embedded store and one in PostgreSQL with the same records.
async fn twins(lines: &str) -> (tempfile::TempDir, BoundSource, BoundSource, Database) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twin.db");
    import_records(&path, "c", lines);
    let database = Database::create().await;
    database.import("c", lines);
    let embedded: BoundSource = SqliteStore::open("store".parse().unwrap(), &path).unwrap().into();
    let postgres: BoundSource = database.store().into();
    (folder, embedded, postgres, database)
}

/// Returns all records of a list, or the code of its error.
async fn listed(source: &BoundSource, query: &RecordsQuery) -> Vec<String> {
    match source.records(query).await {
        Ok(_) => walk(source, query).await,
        refused => vec![code(refused)],
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn lists_and_aggregates_equal_those_of_the_embedded_store() {
    let (_folder, embedded, postgres, _database) = twins(&mixed_records()).await;
    let filters = [
        json!(null),
        json!({"number": {"gte": 0, "lt": 7.5}}),
        json!({"value": {"contains": "LONG"}}),
        json!({"value": {"gte": "2026-01-01"}}),
        json!({"copy": [0, 2]}),
        json!({"value": {"exists": false}}),
    ];
    for filter in filters {
        let filter: Filter = serde_json::from_value(filter).unwrap_or_default();
        for (sort, direction) in [
            (None, Direction::Ascending),
            (None, Direction::Descending),
            (Some("number"), Direction::Ascending),
        ] {
            let query = RecordsQuery {
                filter: filter.clone(),
                sort: sort.map(str::to_owned),
                direction,
                limit: 4,
                ..records_of("mixed")
            };
            assert_eq!(listed(&postgres, &query).await, listed(&embedded, &query).await, "{query:?}");
        }
        for metric in [Metric::Count, Metric::Sum, Metric::Max, Metric::CountDistinct] {
            let query = AggregateQuery {
                filter: filter.clone(),
                field: (metric != Metric::Count).then(|| "number".to_owned()),
                grouping: Some(Grouping::Field("copy".to_owned())),
                ..AggregateQuery::new("mixed".parse().unwrap(), metric)
            };
            let expect = format!("{:?}", embedded.aggregate(&query).await);
            assert_eq!(format!("{:?}", postgres.aggregate(&query).await), expect, "{query:?}");
        }
    }
    // Equal texts: numbers and the order of fields are kept as they were written.
    for key in ["k5/1é", "k6/1é", "k13/2é", "k15/0é", "k16/0é"] {
        let query = RecordQuery::new(address("c", "mixed", key));
        let expect = embedded.record(&query).await.unwrap();
        let found = postgres.record(&query).await.unwrap();
        assert_eq!(json!(found.data).to_string(), json!(expect.data).to_string());
        assert_eq!(found.emitted_at, expect.emitted_at);
    }
}

async fn changes(source: &BoundSource, since: Option<ChangesToken>) -> (Vec<String>, Option<ChangesToken>) {
    let query = RecordsQuery {
        start: Start::Changes(since),
        connection: Some("c".parse().unwrap()),
        limit: 1_000,
        ..records_of("mixed")
    };
    let page = source.records(&query).await.unwrap();
    let shown = |change: &Change| match change {
        Change::Present(_) => name(change),
        Change::Deleted { deleted_at, .. } => format!("deleted {} {deleted_at:?}", name(change)),
    };
    (page.rows.iter().map(shown).collect(), page.next_changes)
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn changes_equal_those_of_the_embedded_store() {
    let (folder, embedded, postgres, database) = twins(&mixed_records()).await;
    let (mut expect, embedded_token) = changes(&embedded, None).await;
    let (mut found, token) = changes(&postgres, None).await;
    // Both have the changes in their order, in which a batch of PostgreSQL has each record once.
    expect.sort();
    found.sort();
    assert_eq!(found, expect);
    let more = "{\"stream\":\"mixed\",\"key\":\"k3/0é\",\"data\":{\"value\":\"new\"}}\n\
                {\"stream\":\"mixed\",\"key\":\"k4/0é\",\"op\":\"delete\",\"emitted_at\":\"2026-03-01T00:00:00Z\"}\n";
    import_records(&folder.path().join("twin.db"), "c", more);
    database.import("c", more);
    let (later, next) = changes(&postgres, token).await;
    assert_eq!(later, ["c/k3/0é", "deleted c/k4/0é Some(\"2026-03-01T00:00:00Z\")"]);
    assert_eq!(later, changes(&embedded, embedded_token).await.0);
    assert_eq!(changes(&postgres, next).await.0, Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn repeated_import_changes_nothing() {
    let database = Database::create().await;
    let lines = mixed_records();
    database.import("c", &lines);
    let client = database.client().await;
    let version = async || -> i64 {
        client.query_one("SELECT version FROM fetchwell.store", &[]).await.unwrap().get(0)
    };
    let state =
        "SELECT md5(string_agg(key || coalesce(data, '') || coalesce(emitted_at, ''), ',' ORDER BY key))
                 FROM fetchwell.records";
    let before: String = client.query_one(state, &[]).await.unwrap().get(0);
    let after_first = version().await;
    // The file changes some records back and forth, so the second import changes these and no others.
    database.import("c", &lines);
    let after_second = version().await;
    assert_eq!(client.query_one(state, &[]).await.unwrap().get::<_, String>(0), before);
    assert!(after_second > after_first && after_second - after_first <= 8, "{after_first} {after_second}");
    let counts = "SELECT s.record_count, (SELECT count(*) FROM fetchwell.records r WHERE r.stream = s.id AND r.data IS NOT NULL)
                  FROM fetchwell.streams s";
    let row = client.query_one(counts, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), row.get::<_, i64>(1));
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn another_cursor_field_reorders_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create().await;
    let lines: String = (0..600)
        .map(|number| {
            json!({"stream": "s", "key": format!("k{number}"), "data": {"a": number, "b": -number}})
                .to_string()
                + "\n"
        })
        .collect();
    let file = folder.path().join("records.ndjson");
    std::fs::write(&file, &lines).unwrap();
    for field in ["a", "b"] {
        let manifest = folder.path().join(format!("{field}.json"));
        std::fs::write(&manifest, json!({"streams": [{"name": "s", "cursor_field": field}]}).to_string())
            .unwrap();
        let output = fetchwell([
            "import",
            "records",
            text(&file),
            "--store",
            &database.url,
            "--connection",
            "c",
            "--manifest",
            text(&manifest),
        ]);
        assert!(output.status.success(), "{output:?}");
    }
    let source: BoundSource = database.store().into();
    let query = RecordsQuery { direction: Direction::Ascending, limit: 100, ..records_of("s") };
    let expect: Vec<String> = (0..600).rev().map(|number| format!("c/k{number}")).collect();
    assert_eq!(walk(&source, &query).await, expect);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn imports_beside_each_other_and_readers_lose_nothing() {
    let database = Database::create().await;
    // Both create the tables.
    let imports: Vec<_> = ["c", "d", "e"]
        .map(|connection| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("records.ndjson");
            let lines: String = (0..5_000)
                .map(|number| {
                    json!({"stream": "s", "key": format!("k{number}"), "data": {"n": number}}).to_string()
                        + "\n"
                })
                .collect();
            std::fs::write(&file, lines).unwrap();
            let mut command = crate::support::binary();
            command.args([
                "import",
                "records",
                text(&file),
                "--store",
                &database.url,
                "--connection",
                connection,
            ]);
            (folder, command.stdout(std::process::Stdio::null()).spawn().unwrap())
        })
        .into();
    let source: BoundSource = database.store().into();
    // A reader that follows the changes meanwhile sees each of them once, whichever import made it.
    let mut seen = BTreeSet::new();
    let mut token = None;
    let mut running = imports;
    loop {
        let is_over = running.iter_mut().all(|(_, child)| child.try_wait().unwrap().is_some());
        let query = RecordsQuery {
            start: Start::Changes(token.clone()),
            connection: Some("d".parse().unwrap()),
            limit: 700,
            ..records_of("s")
        };
        match source.records(&query).await {
            Ok(page) => {
                for change in &page.rows {
                    assert!(seen.insert(name(change)), "{} twice", name(change));
                }
                token = page.next_changes;
                if is_over && !page.has_more && page.rows.is_empty() {
                    break;
                }
            }
            Err(error) => {
                // The import of this connection may not have written yet.
                assert!(!is_over, "{error:?}");
                tokio::task::yield_now().await;
            }
        }
    }
    assert!(running.iter_mut().all(|(_, child)| child.wait().unwrap().success()));
    assert_eq!(seen.len(), 5_000);
    let versions = "SELECT count(DISTINCT version), max(version) FROM fetchwell.records";
    let row = database.client().await.query_one(versions, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (15_000, 15_000));
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn records_longer_than_a_batch_are_read() {
    let database = Database::create().await;
    let long = "x".repeat(3_000_000);
    let lines: String = (0..12)
        .map(|number| {
            let body = if number % 2 == 0 { long.as_str() } else { "short" };
            json!({"stream": "s", "key": format!("k{number:02}"), "data": {"n": number, "body": body}})
                .to_string()
                + "\n"
        })
        .collect();
    database.import("c", &lines);
    let source: BoundSource = database.store().into();
    let query = RecordsQuery {
        filter: serde_json::from_value(json!({"body": {"contains": "XXX"}})).unwrap(),
        direction: Direction::Ascending,
        limit: 100,
        ..records_of("s")
    };
    assert_eq!(walk(&source, &query).await, ["c/k00", "c/k02", "c/k04", "c/k06", "c/k08", "c/k10"]);
    let record = source.record(&RecordQuery::new(address("c", "s", "k10"))).await.unwrap();
    assert_eq!(record.data["body"].as_str().unwrap().len(), long.len());
}

/// Sorting reads all records of the stream, and the first page of a list needs few.
#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn filtered_lists_read_records_in_the_order_of_an_index() {
    let database = Database::create().await;
    // In another order than that of the table, in which the server would not sort.
    let line = |number: i32| {
        let at = jiff::Timestamp::from_second(1_767_225_600 + i64::from(number * 1_237 % 5_000)).unwrap();
        let data = json!({"n": number % 100, "body": "a ".repeat(200)});
        json!({"stream": "s", "key": format!("k{number:04}"), "data": data, "emitted_at": at.to_string()})
            .to_string()
            + "\n"
    };
    let lines: Vec<String> = (0..5_000).map(line).collect();
    database.import("c", &lines.concat());
    let client = database.client().await;
    let scans = async || {
        let sql = "SELECT t.seq_scan, i.idx_scan FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
             WHERE i.indexrelname = 'records_in_order'";
        let row = client.query_one(sql, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let before = scans().await;
    let source: BoundSource = database.store().into();
    let filter: Filter = serde_json::from_value(json!({"n": 7})).unwrap();
    let page = source.records(&RecordsQuery { filter, limit: 5, ..records_of("s") }).await.unwrap();
    assert_eq!(page.rows.len(), 5);
    // A session reports what it read when it ends.
    drop(source);
    let guard = Instant::now() + Duration::from_secs(30);
    while scans().await.1 == before.1 {
        assert!(Instant::now() < guard, "the index was not read");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(scans().await.0, before.0);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn every_kind_of_import_writes_records() {
    let database = Database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    write("people.csv", "id,name,amount\n1,Ann,12.50\n2,Bob,7\n");
    write("note.md", "# A note\n\nSome text.\n");
    write(
        "mail.mbox",
        "From ann@example.com Wed Apr  1 10:00:00 2026\nFrom: Ann <ann@example.com>\nSubject: Hello\nMessage-ID: <1@example.com>\n\nHi\n",
    );
    let output =
        fetchwell(["import", "files", text(folder.path()), "--store", &database.url, "--connection", "c"]);
    assert!(output.status.success(), "{output:?}");
    let listed = fetchwell(["connections", "--store", &database.url, "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    let streams = listed[0]["streams"].as_array().unwrap();
    assert!(streams.len() >= 3, "{listed}");
    assert!(streams.iter().all(|stream| stream["record_count"].as_u64().unwrap() > 0), "{listed}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_configured_store_is_served() {
    let database = Database::create().await;
    import_corpus(&database.url);
    let folder = tempfile::tempdir().unwrap();
    let (before, password) =
        database.url.split_once("fetchwell-test").map(|(before, _)| (before, "fetchwell-test")).unwrap();
    let secret = folder.path().join("password");
    std::fs::write(&secret, password).unwrap();
    let user = before.trim_start_matches("postgres://").trim_end_matches(':');
    let url = format!("postgres://{user}@{}/{}?password=file:password", database.authority, database.name);
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(&config, format!("[[source]]\nname = \"team\"\nstore = \"{url}\"\n")).unwrap();
    let server = HttpServer::start(["--config", text(&config)]);
    let health = get(&server.address, "/health");
    assert_eq!(health.status, 200, "{}", health.text);
    let page = get(&server.address, "/v1/streams/messages/records?connection_id=cin_work&limit=3").json();
    assert_eq!(page["data"].as_array().map(Vec::len), Some(3), "{page}");
    let search = get(&server.address, "/v1/search?q=invoice&limit=2");
    assert_eq!(search.json()["data"].as_array().map(Vec::len), Some(2), "{}", search.text);
    let listed = fetchwell(["connections", "--config", text(&config)]);
    assert!(stdout(&listed).contains("Work mail"), "{listed:?}");
}

/// Commands that work on files refuse a database, and print no password.
#[test]
fn commands_for_files_refuse_a_database() {
    let url = "postgres://ann:hunter2@127.0.0.1:9/mail";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&folder.path().join(name)).to_owned();
    for arguments in [
        vec!["demo", "--store", url],
        vec!["add", &at(""), "--store", url],
        vec!["sync", "--store", url],
        vec!["import", "docs", &at(""), "--project", "p", "--store", url],
        vec!["store", "info", "--store", url],
        vec!["export", "--store", url],
        vec!["backup", &at("b.db"), "--store", url],
        vec!["restore", &at("b.db"), "--store", url],
        vec!["remove", "c", "--store", url],
        vec!["project", "list", "--store", url],
        vec!["project", "create", "p", "--store", url],
        vec!["embeddings", "status", "--store", url],
        vec!["client-config", "claude", "--store", url],
        vec!["source", "add", "team", "--store", url, "--config", &at("fetchwell.toml")],
    ] {
        let output = crate::support::binary().args(&arguments).current_dir(folder.path()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let shown = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
        assert!(!shown.contains("hunter2"), "{arguments:?}: {shown}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(!Path::new("postgres:").exists());
}

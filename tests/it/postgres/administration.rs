//! Commands about a store in PostgreSQL as a whole, and leases of imports.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::documents::has_pgvector;
use super::search::TERMS;
use crate::support::stores::postgres::{Database, connect};
use crate::support::{binary, fetchwell, handbook, stderr, stdout, text};

const LINES: &str = "{\"stream\":\"notes\",\"key\":\"a\",\"data\":{\"title\":\"Zeppelin\",\"n\":1.10},\"emitted_at\":\"2026-01-02T03:04:05Z\"}\n\
    {\"stream\":\"notes\",\"key\":\"b/ü\",\"data\":{\"title\":\"Balloon\",\"n\":12345678901234567890}}\n\
    {\"stream\":\"tasks\",\"key\":\"1\",\"data\":{\"title\":\"Fly the zeppelin\"}}\n";

/// Runs a command with `--json` that succeeds, and returns its value.
#[track_caller]
fn json_of(arguments: &[&str]) -> Value {
    let output = binary().args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn info_names_sizes_and_numbers() {
    let database = Database::create().await;
    database.import("work", LINES);
    let info = json_of(&["store", "info", "--store", &database.url]);
    assert_eq!((&info["records"], &info["deleted"], &info["version"]), (&json!(3), &json!(0), &json!(3)));
    assert!(info["bytes"]["total"].as_u64().unwrap() >= info["bytes"]["records"].as_u64().unwrap());
    assert_eq!(info["connections"][0]["streams"][0], json!({"name": "notes", "records": 2, "deleted": 0}));
    let shown = stdout(&fetchwell(["store", "info", "--store", &database.url]));
    assert!(
        shown.contains("work") && shown.contains("3 records") && !shown.contains("fetchwell-test"),
        "{shown}"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn status_changes_nothing_and_migrate_creates_the_tables() {
    let database = Database::create().await;
    let status = fetchwell(["store", "status", "--store", &database.url]);
    let printed = String::from_utf8_lossy(&status.stdout);
    assert!(!status.status.success() && printed.contains("no tables"), "{status:?}");
    assert!(stderr(&status).contains("fetchwell store migrate"), "{status:?}");
    let migrated = json_of(&["store", "migrate", "--store", &database.url]);
    assert_eq!(migrated["from"], Value::Null);
    let status = json_of(&["store", "status", "--store", &database.url]);
    assert_eq!((&status["is_current"], &status["version"]), (&json!(true), &migrated["to"]));
    let again = json_of(&["store", "migrate", "--store", &database.url]);
    assert_eq!(again["from"], again["to"]);
    database.client().await.batch_execute("INSERT INTO fetchwell.migrations VALUES (99)").await.unwrap();
    let newer = fetchwell(["store", "status", "--store", &database.url]);
    assert!(!newer.status.success() && stderr(&newer).contains("upgrade fetchwell"), "{newer:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn exported_records_can_be_imported_again() {
    let database = Database::create().await;
    database.import("work", LINES);
    let exported = fetchwell(["export", "work", "--format", "ndjson", "--store", &database.url]);
    assert!(exported.status.success(), "{exported:?}");
    let lines = stdout(&exported);
    let value = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert_eq!(lines.lines().map(value).collect::<Vec<_>>(), LINES.lines().map(value).collect::<Vec<_>>());
    // The text of numbers is kept.
    assert!(lines.contains("12345678901234567890"), "{lines}");
    let table = stdout(&fetchwell(["export", "work/notes", "--format", "csv", "--store", &database.url]));
    assert!(table.lines().next().unwrap().contains("title,n"), "{table}");
    let unknown = fetchwell(["export", "home", "--format", "csv", "--store", &database.url]);
    assert!(stderr(&unknown).contains("existing connections: work"), "{unknown:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn removed_records_leave_no_rows_and_no_words() {
    let database = Database::create().await;
    database.import("work", LINES);
    database.import("home", LINES);
    let remove =
        |what: &str, more: &str| fetchwell(["remove", what, more, "--store", &database.url, "--json"]);
    assert!(!fetchwell(["remove", "work", "--store", &database.url]).status.success());
    let counted: Value = serde_json::from_slice(&remove("work", "--dry-run").stdout).unwrap();
    assert_eq!((&counted["removed"]["records"], &counted["removed"]["streams"]), (&json!(3), &json!(2)));
    let client = database.client().await;
    let uuid = async || -> String {
        client.query_one("SELECT uuid FROM fetchwell.store", &[]).await.unwrap().get(0)
    };
    let words = async || -> i64 {
        let sql = format!("SELECT coalesce(sum(records), 0)::bigint FROM {TERMS} t WHERE word = 'zeppelin'");
        client.query_one(&sql, &[]).await.unwrap().get(0)
    };
    let (before, of_all) = (uuid().await, words().await);
    assert!(remove("work/notes:a", "--yes").status.success());
    assert_eq!(words().await, of_all - 1);
    assert_ne!(uuid().await, before);
    assert!(remove("work", "--yes").status.success());
    assert_eq!(words().await, of_all / 2);
    let left = format!(
        "SELECT (SELECT count(*) FROM fetchwell.records), (SELECT count(*) FROM fetchwell.texts),
        (SELECT count(*) FROM fetchwell.connections), (SELECT count(DISTINCT stream) FROM {TERMS} t)"
    );
    let left = client.query_one(&left, &[]).await.unwrap();
    let left: [i64; 4] = std::array::from_fn(|at| left.get(at));
    assert_eq!(left, [3, 3, 1, 2]);
    let gone = remove("work", "--yes");
    assert!(stderr(&gone).contains("there is no connection `work`"), "{gone:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn removed_documents_leave_no_rows_of_their_project() {
    let database = Database::create().await;
    if !has_pgvector(&database).await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    handbook::import(&folder.path().join("docs"), Path::new(&database.url));
    let client = database.client().await;
    let rows = async || -> [i64; 4] {
        let sql = "SELECT (SELECT count(*) FROM fetchwell.projects), (SELECT count(*) FROM fetchwell.documents),
            (SELECT count(DISTINCT document_id) FROM fetchwell.chunks), (SELECT count(*) FROM fetchwell.records)";
        let row = client.query_one(sql, &[]).await.unwrap();
        std::array::from_fn(|at| row.get(at))
    };
    let remove = |what: &str| {
        let output = fetchwell(["remove", what, "--yes", "--store", &database.url]);
        assert!(output.status.success(), "{output:?}");
    };
    let [projects, documents, chunked, records] = rows().await;
    assert!(projects == 1 && documents > 2 && documents == chunked && documents == records);
    let version = "SELECT corpus_version FROM fetchwell.projects";
    let before: i32 = client.query_one(version, &[]).await.unwrap().get(0);
    let one: String =
        client.query_one("SELECT id::text FROM fetchwell.documents LIMIT 1", &[]).await.unwrap().get(0);
    remove(&format!("handbook/documents:{one}"));
    assert_eq!(rows().await, [1, documents - 1, documents - 1, documents - 1]);
    assert!(client.query_one(version, &[]).await.unwrap().get::<_, i32>(0) > before);
    remove("handbook/documents");
    assert_eq!(rows().await, [1, 0, 0, 0]);
    remove("handbook");
    assert_eq!(rows().await, [0, 0, 0, 0]);
    // Nothing is left in the way of a new project of the name.
    handbook::import(&folder.path().join("docs"), Path::new(&database.url));
    assert_eq!(rows().await, [1, documents, documents, documents]);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn commands_that_need_a_file_name_what_to_do() {
    let database = Database::create().await;
    let remedies = [(vec!["backup", "copy.db"], "pg_dump"), (vec!["restore", "copy.db"], "pg_restore")];
    for (command, remedy) in remedies {
        let output = binary().args(&command).args(["--store", &database.url]).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(remedy), "{command:?}: {output:?}");
        assert!(!stderr(&output).contains("fetchwell-test"), "{output:?}");
    }
}

/// One process at a time imports into a connection; the other waits and says which session does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_waiting_import_names_the_session_that_imports() {
    let database = Database::create().await;
    database.import("home", LINES);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    std::fs::write(&file, LINES).unwrap();
    // The first import waits for the row of the store's version, with its lease.
    let mut blocker = database.client().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction.query_one("SELECT * FROM fetchwell.store FOR UPDATE", &[]).await.unwrap();
    let import = |connection: &str| {
        let mut command = binary();
        command.args([
            "import",
            "records",
            text(&file),
            "--connection",
            connection,
            "--store",
            &database.url,
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = import("work");
    let admin = connect(&database.url).await;
    let holders = async || -> Vec<i32> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'fetchwell import work'
             AND datname = current_database()";
        admin.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    while holders().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let holder = holders().await[0];
    let mut second = import("work");
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(second.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert!(line.contains(&format!("session {holder} (fetchwell import work")), "{line}");
    // Another connection is not held up by the lease.
    transaction.rollback().await.unwrap();
    for import in [first, second] {
        let output = import.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(holders().await.is_empty());
}

/// The lease of an import that was killed ends with its connection.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_killed_import_leaves_no_lease() {
    let database = Database::create().await;
    database.import("home", LINES);
    let mut blocker = database.client().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction.query_one("SELECT * FROM fetchwell.store FOR UPDATE", &[]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    std::fs::write(&file, LINES).unwrap();
    let mut command = binary();
    command.args(["import", "records", text(&file), "--connection", "work", "--store", &database.url]);
    let mut import = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let admin = connect(&database.url).await;
    let held = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fetchwell import work'
        AND datname = current_database()";
    while admin.query_one(held, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    import.kill().unwrap();
    import.wait().unwrap();
    transaction.rollback().await.unwrap();
    database.import("work", LINES);
}

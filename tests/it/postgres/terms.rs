//! Numbers of records of each word (document frequencies). They are exact while imports run, and after imports that were
//! killed, ran beside each other, or changed many words.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio_postgres::Client;

use super::search::{TERMS, check_statistics};
use crate::support::stores::postgres::{Database, connect};
use crate::support::{binary, fetchwell, text};

/// Key of the lock of a merge.
const LOCK: i64 = 0x6677_656C_7465_726D;

/// Returns records with more different words than are counted at once.
fn lines(from: usize, count: usize) -> String {
    let line = |number: usize| {
        let data = json!({"title": format!("Report {number}"), "body": format!("number{} of number{number}", number / 3)});
        format!(
            "{}\n",
            json!({"stream": format!("s{}", number % 2), "key": format!("k{number}"), "data": data})
        )
    };
    (from..from + count).map(line).collect()
}

/// Starts an import of records from its standard input.
fn start_import(database: &Database, connection: &str) -> Child {
    let mut command = binary();
    let arguments = ["import", "records", "/dev/stdin", "--store", &database.url, "--connection", connection];
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Number of runs, which an import merges at its end.
const RUNS: &str = "SELECT count(*) FROM fetchwell.term_runs";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn numbers_are_exact_while_an_import_runs_and_after_it_was_killed() {
    let database = Database::create().await;
    // Runs of much larger batches would not be merged with it.
    database.import("work", &lines(0, 1_000));
    let client = database.client().await;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.unwrap();
    let mut import = start_import(&database, "work");
    let mut input = import.stdin.take().unwrap();
    input.write_all(lines(400, 6_000).as_bytes()).unwrap();
    drop(input);
    // It waits for the lock before it ends.
    let ends = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objsubid = 1
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while count(&client, ends).await == 0 {
        assert!(import.try_wait().unwrap().is_none(), "the import ended");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    check_statistics(&database).await;
    import.kill().unwrap();
    import.wait().unwrap();
    assert!(count(&client, RUNS).await > 2);
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.unwrap();
    // A run that is much larger than the others is kept.
    database.import("home", &lines(0, 1));
    assert!(count(&client, RUNS).await <= 2);
    check_statistics(&database).await;
    let printed = database.import("work", &lines(400, 6_000));
    assert!(printed.contains("6,000 unchanged"), "{printed}");
    check_statistics(&database).await;
    // Removing a connection removes its numbers from all runs.
    let removed = fetchwell(["remove", "work", "--yes", "--store", &database.url]);
    assert!(removed.status.success(), "{removed:?}");
    let streams = format!("SELECT count(DISTINCT stream) FROM {TERMS} t");
    assert_eq!(count(&client, &streams).await, 1);
    check_statistics(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn an_import_that_is_killed_between_batches_leaves_whole_ones() {
    let database = Database::create().await;
    let client = database.client().await;
    database.store().state().await.unwrap();
    for records in [2_000, 4_000, 9_000] {
        let mut import = start_import(&database, "work");
        let mut input = import.stdin.take().unwrap();
        let mut from = 0;
        while count(&client, "SELECT count(*) FROM fetchwell.records").await < records {
            // The import may end while it is written to.
            let _ended = input.write_all(lines(from, 500).as_bytes());
            from += 500;
        }
        import.kill().unwrap();
        import.wait().unwrap();
        check_statistics(&database).await;
    }
    // Indexes that the first import dropped are missing until the next one.
    database.import("work", &lines(0, 12_000));
    assert_eq!(database.store().state().await.unwrap().missing_indexes, 0);
    assert_eq!(count(&client, "SELECT count(*) FROM fetchwell.texts").await, 12_000);
    check_statistics(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn imports_beside_each_other_count_every_word_once() {
    let database = Database::create().await;
    database.store().state().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let import = |connection: &str, lines: &str| {
        let file = folder.path().join(format!("{connection}.ndjson"));
        fs::write(&file, lines).unwrap();
        let mut command = binary();
        let arguments =
            ["import", "records", text(&file), "--store", &database.url, "--connection", connection];
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // A large one, one that changes the same words again, and several with few words.
    let changed = lines(0, 3_000).replace(" of ", " about ");
    let running = [
        import("large", &lines(0, 9_000)),
        import("other", &format!("{}{changed}", lines(0, 3_000))),
        import("small", &lines(0, 100)),
        import("single", &lines(0, 1)),
    ];
    for import in running {
        let output = import.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(count(&database.client().await, RUNS).await <= 2);
    check_statistics(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn runs_are_merged_while_an_import_runs() {
    let database = Database::create().await;
    database.import("home", &lines(0, 1));
    let admin = connect(&database.url).await;
    let mut import = start_import(&database, "work");
    let mut input = import.stdin.take().unwrap();
    let mut from = 0;
    // Batches follow each other until eight runs were replaced by one.
    while count(&admin, "SELECT coalesce(max(id), 0) - count(*) FROM fetchwell.term_runs").await < 8 {
        input.write_all(lines(from, 2_000).as_bytes()).unwrap();
        from += 2_000;
    }
    check_statistics(&database).await;
    drop(input);
    assert!(import.wait().unwrap().success());
    check_statistics(&database).await;
}

/// Tables of the release before runs, with numbers that wait to be added.
const EARLIER: [&str; 4] = [
    include_str!("../../../crates/postgres/src/migrations/0001_records.sql"),
    include_str!("../../../crates/postgres/src/migrations/0002_search.sql"),
    include_str!("../../../crates/postgres/src/migrations/0003_imports.sql"),
    include_str!("../../../crates/postgres/src/migrations/0004_large_stores.sql"),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn numbers_of_an_earlier_release_become_a_run() {
    let database = Database::create().await;
    let client = database.client().await;
    let migrations = "CREATE SCHEMA fetchwell;
        CREATE TABLE fetchwell.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
        INSERT INTO fetchwell.migrations (version) SELECT generate_series(1, 4);";
    client.batch_execute(&format!("BEGIN; {migrations}{} COMMIT", EARLIER.concat())).await.unwrap();
    let numbers = "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name) VALUES ('c', 'c', 'c');
        INSERT INTO fetchwell.streams (connection, name) SELECT 1, 's' || n FROM generate_series(1, 3) AS n;
        INSERT INTO fetchwell.terms SELECT 'word' || n % 2000, 1 + n % 3, n FROM generate_series(1, 6000) AS n;
        INSERT INTO fetchwell.term_changes VALUES (2, '{new,word1,word2}', '{1,5,-2}'), (1, '{word1,word3}', '{1,-3}');
        INSERT INTO fetchwell.term_changes VALUES (9, '{lost}', '{1}');";
    client.batch_execute(numbers).await.unwrap();
    database.store().state().await.unwrap();
    let wrong = format!(
        "SELECT count(*) FROM {TERMS} known FULL JOIN (
             SELECT word, stream, sum(records) AS records FROM (
                 SELECT * FROM fetchwell.terms UNION ALL SELECT c.word, t.stream, c.records
                 FROM fetchwell.term_changes t, unnest(t.words, t.records) AS c (word, records) WHERE t.stream < 9
             ) k GROUP BY 1, 2 HAVING sum(records) <> 0
         ) earlier USING (word, stream) WHERE known.records IS DISTINCT FROM earlier.records"
    );
    assert!(count(&client, &format!("SELECT count(*) FROM {TERMS} t")).await >= 6_000);
    assert_eq!(count(&client, &wrong).await, 0);
    assert_eq!(count(&client, RUNS).await, 1);
    // A process of the earlier release that still runs.
    for statement in [
        "INSERT INTO fetchwell.terms VALUES ('word1', 2, 7), ('other', 3, 1)
             ON CONFLICT (word, stream) DO UPDATE SET records = terms.records + excluded.records",
        "INSERT INTO fetchwell.term_changes VALUES (3, '{other,third}', '{-1,4}')",
        "DELETE FROM fetchwell.term_changes WHERE stream = 3",
        "DELETE FROM fetchwell.terms WHERE stream = 1; DELETE FROM fetchwell.term_changes WHERE stream = 1",
    ] {
        client.batch_execute(statement).await.unwrap();
        assert_eq!(count(&client, &wrong).await, 0, "{statement}");
    }
    let migrated = fetchwell(["store", "migrate", "--store", &database.url]);
    assert!(migrated.status.success(), "{migrated:?}");
    let left = "SELECT count(*) FROM pg_class WHERE relname IN ('terms', 'term_changes')";
    assert_eq!(count(&client, left).await, 0);
    assert_eq!(count(&client, RUNS).await, 1);
}

//! Numbers of records of each word (document frequencies). They are exact after imports that were killed, ran beside each
//! other, or changed many words.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio_postgres::Client;

use super::search::check_statistics;
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

/// Words of [`many_changes_are_merged_while_the_import_runs`], which no record has.
const MADE_UP: &str = "stream = 1 AND length(word) = 32";

const WAITING: &str = "SELECT count(*) FROM fetchwell.term_changes";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn the_next_import_merges_the_changes_of_a_killed_one() {
    let database = Database::create().await;
    database.import("work", &lines(0, 500));
    let client = database.client().await;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.unwrap();
    let mut import = start_import(&database, "work");
    let mut input = import.stdin.take().unwrap();
    input.write_all(lines(400, 4_000).as_bytes()).unwrap();
    drop(input);
    // It waits for the lock before it ends.
    let ends = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objsubid = 1
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while count(&client, ends).await == 0 {
        assert!(import.try_wait().unwrap().is_none(), "the import ended");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    import.kill().unwrap();
    import.wait().unwrap();
    assert!(count(&client, WAITING).await > 0);
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.unwrap();
    database.import("home", &lines(0, 1));
    assert_eq!(count(&client, WAITING).await, 0);
    check_statistics(&database).await;
    let printed = database.import("work", &lines(400, 4_000));
    assert!(printed.contains("4,000 unchanged"), "{printed}");
    check_statistics(&database).await;
    // Removing a connection removes what waits, too.
    let waiting = "INSERT INTO fetchwell.term_changes SELECT s.id, '{lost}', '{1}' FROM fetchwell.streams s
         JOIN fetchwell.connections c ON c.id = s.connection WHERE c.connection_id = 'work'";
    client.batch_execute(waiting).await.unwrap();
    let removed = fetchwell(["remove", "work", "--yes", "--store", &database.url]);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(count(&client, "SELECT count(*) FROM fetchwell.terms WHERE word = 'lost'").await, 0);
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
    assert_eq!(count(&database.client().await, WAITING).await, 0);
    check_statistics(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn many_changes_are_merged_while_the_import_runs() {
    let database = Database::create().await;
    database.import("home", &lines(0, 1));
    let admin = connect(&database.url).await;
    let mut import = start_import(&database, "work");
    let mut input = import.stdin.take().unwrap();
    let mut from = 0;
    while count(&admin, WAITING).await == 0 {
        input.write_all(lines(from, 2_000).as_bytes()).unwrap();
        from += 2_000;
    }
    // Words that take as much space as those of a long import.
    let many = "INSERT INTO fetchwell.term_changes
         SELECT 1, array_agg(md5(n::text)), array_agg(1) FROM generate_series(1, 300000) AS n";
    admin.batch_execute(many).await.unwrap();
    // Batches follow each other until one of them merges.
    while count(&admin, &format!("SELECT count(*) FROM fetchwell.terms WHERE {MADE_UP}")).await == 0 {
        input.write_all(lines(from, 2_000).as_bytes()).unwrap();
        from += 2_000;
    }
    drop(input);
    assert!(import.wait().unwrap().success());
    admin.batch_execute(&format!("DELETE FROM fetchwell.terms WHERE {MADE_UP}")).await.unwrap();
    check_statistics(&database).await;
}

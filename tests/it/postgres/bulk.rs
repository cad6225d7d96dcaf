//! Imports of many records: by `COPY`, and with indexes that are built at the end.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use tokio_postgres::Client;

use crate::support::stores::postgres::{Database, connect};
use crate::support::{binary, fetchwell, stderr, stdout};

/// Returns more records than a batch has.
fn lines(count: usize) -> String {
    let line = |number: usize| {
        let data =
            json!({"title": format!("Report {number}"), "body": format!("number{number} of the archive")});
        format!("{}\n", json!({"stream": "s", "key": format!("k{number}"), "data": data}))
    };
    (0..count).map(line).collect()
}

const INDEXES: &str = "SELECT coalesce(string_agg(indexdef, ';' ORDER BY indexname), '') FROM pg_indexes
     WHERE schemaname = 'fetchwell' AND tablename IN ('records', 'texts')";

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_large_first_import_leaves_the_indexes_of_the_migrations() {
    let database = Database::create().await;
    database.store().state().await.unwrap();
    let client = database.client().await;
    let indexes = async || -> String { client.query_one(INDEXES, &[]).await.unwrap().get(0) };
    let before = indexes().await;
    assert!(before.contains("texts_by_word") && before.contains("records_in_order"), "{before}");
    let printed = database.import("work", &lines(4_500));
    assert!(printed.contains("4,500"), "{printed}");
    assert_eq!(indexes().await, before);
    assert_eq!(database.store().state().await.unwrap().missing_indexes, 0);
    let found = fetchwell(["search", "number4321", "--store", &database.url, "--json"]);
    assert!(stdout(&found).contains("k4321"), "{found:?}");
    // A second import changes one record and adds one.
    let changed = lines(4_501).replace("number7 of", "number7 changed of");
    let printed = database.import("work", &changed);
    assert!(printed.contains("1 added, 1 changed, 4,499 unchanged"), "{printed}");
    let count =
        "SELECT (SELECT record_count FROM fetchwell.streams), (SELECT count(*) FROM fetchwell.records),
        (SELECT count(*) FROM fetchwell.texts), (SELECT version FROM fetchwell.store)";
    let row = client.query_one(count, &[]).await.unwrap();
    let row: [i64; 4] = std::array::from_fn(|at| row.get(at));
    assert_eq!(row, [4_501, 4_501, 4_501, 4_502]);
}

/// Columns are built by an import, by the migration of a database of an earlier release, and by a server.
#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn columns_of_large_streams_are_built() {
    const RECORDS: &str = "SELECT coalesce(sum(records), 0)::bigint FROM fetchwell.column_segments";
    let database = Database::create().await;
    database.import("work", &lines(2_500));
    database.import("other", &lines(100));
    let client = database.client().await;
    let records = async || -> i64 { client.query_one(RECORDS, &[]).await.unwrap().get(0) };
    assert_eq!(records().await, 2_500);
    let earlier = "DROP TABLE fetchwell.column_blocks, fetchwell.column_segments;
         DELETE FROM fetchwell.migrations WHERE version = 6";
    client.batch_execute(earlier).await.unwrap();
    let migrate = fetchwell(["store", "migrate", "--store", &database.url]);
    assert!(migrate.status.success(), "{migrate:?}");
    assert_eq!(records().await, 2_500);
    client.batch_execute("DELETE FROM fetchwell.column_segments").await.unwrap();
    let mut server = binary();
    server.args(["serve", "--stdio", "--state-dir", "none", "--store", &database.url]);
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while records().await == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(records().await, 2_500);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn missing_indexes_are_named_and_built() {
    let database = Database::create().await;
    database.import("work", &lines(3));
    let client = connect(&database.url).await;
    let before: String = client.query_one(INDEXES, &[]).await.unwrap().get(0);
    // As an import leaves it that was interrupted.
    client
        .batch_execute("DROP INDEX fetchwell.texts_by_word; DROP INDEX fetchwell.records_in_order")
        .await
        .unwrap();
    let doctor = fetchwell(["doctor", "--store", &database.url]);
    let shown = format!("{}{}", String::from_utf8_lossy(&doctor.stdout), stderr(&doctor));
    assert!(shown.contains("fetchwell store migrate"), "{shown}");
    let found = fetchwell(["search", "number2", "--store", &database.url, "--json"]);
    assert!(stdout(&found).contains("k2"), "{found:?}");
    let migrate = fetchwell(["store", "migrate", "--store", &database.url]);
    assert!(migrate.status.success(), "{migrate:?}");
    assert_eq!(client.query_one(INDEXES, &[]).await.unwrap().get::<_, String>(0), before);
    client.batch_execute("DROP INDEX fetchwell.texts_by_time").await.unwrap();
    database.import("work", &lines(4));
    assert_eq!(client.query_one(INDEXES, &[]).await.unwrap().get::<_, String>(0), before);
}

/// A role that may write and does not own the tables imports with the indexes in place.
#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_role_that_does_not_own_the_tables_imports_many_records() {
    let mut database = Database::create().await;
    database.store().state().await.unwrap();
    database.url = database
        .role(
            "GRANT USAGE ON SCHEMA fetchwell TO ROLE_NAME;
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA fetchwell TO ROLE_NAME;
             GRANT DELETE ON fetchwell.texts, fetchwell.term_runs, fetchwell.term_blocks, fetchwell.column_segments TO ROLE_NAME",
        )
        .await;
    database.import("work", &lines(2_500));
    assert_eq!(database.store().state().await.unwrap().missing_indexes, 0);
}

/// Sets the time after which a session that waits for a lock looks for a deadlock and is ended by it.
async fn set_deadlock_timeout(database: &Database, client: &Client, timeout: &str) {
    let sql = format!("ALTER DATABASE {} SET deadlock_timeout = '{timeout}'", database.name);
    client.batch_execute(&sql).await.unwrap();
}

/// Waits until another session waits for a lock.
async fn wait_for_waiter(admin: &Client) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
}

/// Waits until the server has counted a deadlock in the database.
async fn wait_for_deadlock(admin: &Client) {
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    for _ in 0..200 {
        if admin.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("there was no deadlock");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_read_is_repeated_after_a_deadlock_with_an_import() {
    let database = Database::create().await;
    database.import("work", &lines(3));
    let (import, admin) = (database.client().await, database.client().await);
    set_deadlock_timeout(&database, &admin, "3s").await;
    // The locks of an import that drops the indexes, which does not look for deadlocks.
    let first = "SET deadlock_timeout = '10min'; BEGIN; DROP INDEX fetchwell.records_in_order";
    import.batch_execute(first).await.unwrap();
    let mut search = binary();
    search.args(["search", "number2", "--store", &database.url, "--json"]);
    let search = search.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_waiter(&admin).await;
    import.batch_execute("DROP INDEX fetchwell.texts_by_word").await.unwrap();
    import.batch_execute("ROLLBACK").await.unwrap();
    let found = search.wait_with_output().unwrap();
    assert!(found.status.success() && stdout(&found).contains("k2"), "{found:?}");
    wait_for_deadlock(&admin).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn an_import_leaves_the_indexes_after_a_deadlock_with_a_read() {
    let database = Database::create().await;
    database.store().state().await.unwrap();
    let (reader, admin) = (database.client().await, database.client().await);
    let before: String = admin.query_one(INDEXES, &[]).await.unwrap().get(0);
    // An import gives up waiting for a reader after two seconds.
    set_deadlock_timeout(&database, &admin, "1500ms").await;
    let first = "SET deadlock_timeout = '10min'; BEGIN; SELECT FROM fetchwell.texts";
    reader.batch_execute(first).await.unwrap();
    std::thread::scope(|scope| {
        let import = scope.spawn(|| database.import("work", &lines(4_500)));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                wait_for_waiter(&admin).await;
                reader.batch_execute("SELECT FROM fetchwell.records; ROLLBACK").await.unwrap();
            });
        });
        assert!(import.join().unwrap().contains("4,500"));
    });
    assert_eq!(admin.query_one(INDEXES, &[]).await.unwrap().get::<_, String>(0), before);
    wait_for_deadlock(&admin).await;
}

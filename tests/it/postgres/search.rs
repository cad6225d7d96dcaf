//! Search of a store in PostgreSQL: it finds and ranks like the embedded store. `ranking`, `search_properties` and
//! `query_operators` run on it too, when `tests/postgres/run` has started a server.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_core::record::{HitId, Score};
use fetchwell_postgres::{PostgresPool, PostgresStore, PostgresUrl};
use fetchwell_source::{Accuracy, BoundSource, Count, SearchMode, SearchPage, SearchQuery, SourceError};
use fetchwell_sqlite::SqliteStore;
use serde_json::json;

use crate::support::import_records;
use crate::support::stores::postgres::{Database, connect};

/// Tables of the first version, before there was a search.
const FIRST_TABLES: &str = include_str!("../../../crates/postgres/src/migrations/0001_records.sql");

fn line(key: &str, body: &str) -> String {
    json!({"stream": "s", "key": key, "data": {"title": format!("Title {key}"), "body": body}}).to_string()
}

/// Returns a record of words of which each has another frequency.
fn mixed_line(number: usize) -> String {
    let words = ["the", "meeting", "budget", "review", "quarterly", "offsite", "zeppelin"];
    let chosen = words.iter().enumerate().filter(|(at, _)| (number * 7 + 3).is_multiple_of(at * at * 3 + 1));
    let chosen: Vec<&str> = chosen.map(|(_, word)| *word).collect();
    let filler: Vec<String> = (0..number % 23).map(|at| format!("filler{}", (number * at) % 97)).collect();
    line(&format!("k{number}"), &format!("{} {} {}", filler.join(" "), chosen.join(" "), number % 11))
}

/// Returns the keys of all hits of a search, page by page.
async fn walk(source: &BoundSource, query: &SearchQuery, mut between: impl FnMut(usize)) -> Vec<String> {
    let (mut keys, mut query) = (Vec::new(), query.clone());
    for number in 0.. {
        let page = source.search(&query).await.unwrap();
        keys.extend(page.hits.iter().map(|hit| match &hit.id {
            HitId::Record(address) => address.record.as_str().to_owned(),
            other => panic!("{other:?}"),
        }));
        query.position = page.next;
        if query.position.is_none() {
            break;
        }
        between(number);
    }
    keys
}

/// The number of records of each word and stream, as a table of SQL.
pub(super) const TERMS: &str = "(SELECT split_part(line, chr(9), 1) AS word, split_part(number, ':', 1)::bigint AS stream,
             sum(split_part(number, ':', 2)::bigint) AS records
         FROM fetchwell.term_blocks JOIN fetchwell.term_runs ON run = id, string_to_table(terms, chr(10)) AS line,
             string_to_table(split_part(line, chr(9), 2), ' ') AS number
         WHERE line <> '' GROUP BY 1, 2 HAVING sum(split_part(number, ':', 2)::bigint) <> 0)";

/// Checks the statistics of words against the words of the records.
pub(super) async fn check_statistics(database: &Database) {
    let wrong = format!(
        "SELECT count(*) FROM (
             SELECT w.word, t.stream, count(*) AS records FROM fetchwell.texts t, unnest(tsvector_to_array(t.words)) AS w (word)
             WHERE left(w.word, 1) NOT IN ('=', '@', '/') GROUP BY 1, 2
         ) real FULL JOIN {TERMS} known USING (word, stream)
         WHERE real.records IS DISTINCT FROM known.records"
    );
    let lengths = "SELECT count(*) FROM fetchwell.streams s
         WHERE s.word_count <> (SELECT coalesce(sum(length), 0) FROM fetchwell.texts WHERE stream = s.id)
            OR s.record_count <> (SELECT count(*) FROM fetchwell.texts WHERE stream = s.id)";
    let client = database.client().await;
    for sql in [&*wrong, lengths] {
        assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0, "{sql}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn hits_equal_those_of_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twin.db");
    let lines: Vec<String> = (0..350).map(mixed_line).collect();
    import_records(&path, "c", &lines.join("\n"));
    let database = Database::create().await;
    database.import("c", &lines.join("\n"));
    let embedded: BoundSource = SqliteStore::open("store".parse().unwrap(), &path).unwrap().into();
    let postgres: BoundSource = database.store().into();
    for words in
        ["zeppelin", "budget review", "quartely", "the offsite meeting 7", "fillers", "title k12", "nothing"]
    {
        let query = SearchQuery::new(words, 20);
        let (expect, found) =
            (embedded.search(&query).await.unwrap(), postgres.search(&query).await.unwrap());
        // The embedded store knows fewer counts exactly.
        assert_eq!(found.count.unwrap().value, expect.count.unwrap().value, "{words}");
        // The embedded store rounds lengths of records.
        let best = |page: &SearchPage| page.hits.first().and_then(|hit| hit.evidence.score).map(Score::value);
        let difference =
            best(&found).zip(best(&expect)).map_or(0.0, |(found, expect)| (found - expect).abs());
        assert!(difference < 0.02, "{words}: {difference}");
        let sorted = |mut keys: Vec<String>| {
            keys.sort();
            keys
        };
        let expect = sorted(walk(&embedded, &query, |_| ()).await);
        assert_eq!(sorted(walk(&postgres, &query, |_| ()).await), expect, "{words}");
    }
    let hybrid = SearchQuery { mode: SearchMode::Hybrid, ..SearchQuery::new("budget", 3) };
    assert!(postgres.search(&hybrid).await.unwrap().lexical_instead);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_walk_beyond_the_ranked_records_has_every_match_once() {
    let database = Database::create().await;
    let lines: Vec<String> = (0..5_000).map(mixed_line).collect();
    database.import("c", &lines.join("\n"));
    let source: BoundSource = database.store().into();
    // More records than are scored have the first word, more than are ranked the second, and few the third.
    for words in ["the", "the meeting", "budget", "the zeppelin"] {
        let query = SearchQuery::new(words, 100);
        let quiet = walk(&source, &query, |_| ()).await;
        let Count { value, accuracy } = source.search(&query).await.unwrap().count.unwrap();
        let all = quiet.len() as u64;
        assert!(
            value == all || (accuracy == Accuracy::LowerBound && value < all),
            "{words}: {value} of {all}"
        );
        let mut next = 5_000;
        let busy = walk(&source, &query, |page| {
            if page % 9 == 4 {
                let new: Vec<String> = (next..next + 20).map(mixed_line).collect();
                next += 20;
                database.import("c", &new.join("\n"));
            }
        });
        let busy = busy.await;
        let (before, during): (BTreeSet<&String>, BTreeSet<&String>) =
            (quiet.iter().collect(), busy.iter().collect());
        assert_eq!((before.len(), during.len()), (quiet.len(), busy.len()), "{words}: repeated");
        assert!(before.is_subset(&during), "{words}: lost");
        // Deleting the new records leaves the same list.
        let deletion =
            |number: usize| json!({"stream": "s", "key": format!("k{number}"), "op": "delete"}).to_string();
        if next > 5_000 {
            database.import("c", &(5_000..next).map(deletion).collect::<Vec<_>>().join("\n"));
        }
    }
    check_statistics(&database).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn statistics_follow_changes_and_deletions() {
    let database = Database::create().await;
    database.import("c", &[line("1", "alpha beta"), line("2", "alpha alpha"), line("3", "gamma")].join("\n"));
    database.import("d", &[line("1", "alpha"), line("1", "beta")].join("\n"));
    check_statistics(&database).await;
    let deletion = json!({"stream": "s", "key": "2", "op": "delete"}).to_string();
    let back_and_forth = [deletion.clone(), line("2", "delta"), deletion, line("4", "new")];
    database.import("c", &[&back_and_forth[..], &[line("1", "beta gamma")]].concat().join("\n"));
    check_statistics(&database).await;
    let source: BoundSource = database.store().into();
    assert_eq!(walk(&source, &SearchQuery::new("alpha", 5), |_| ()).await, [""; 0]);
    assert_eq!(walk(&source, &SearchQuery::new("delta", 5), |_| ()).await, [""; 0]);
    assert_eq!(walk(&source, &SearchQuery::new("new", 5), |_| ()).await, ["4"]);
}

/// Records of the first version of the tables are found after the next import, and until then the answer says so.
#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn records_of_an_earlier_release_are_found_after_an_import() {
    let database = Database::create().await;
    let client = database.client().await;
    let migrations = "CREATE SCHEMA fetchwell;
        CREATE TABLE fetchwell.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
        INSERT INTO fetchwell.migrations (version) VALUES (1);";
    client.batch_execute(&format!("{migrations}{FIRST_TABLES}")).await.unwrap();
    let records = "INSERT INTO fetchwell.connections (connection_id, connector_key, display_name) VALUES ('c', 'k', 'C');
        INSERT INTO fetchwell.streams (connection, name, record_count) VALUES (1, 's', 4999);
        INSERT INTO fetchwell.records (stream, key, data, sort_value, version)
        SELECT 1, 'k' || n, CASE WHEN n = 7 THEN NULL ELSE '{\"body\":\"early bird ' || n || '\"}' END, '\\x00', n
        FROM generate_series(1, 5000) n";
    client.batch_execute(records).await.unwrap();
    let reader = database.role("GRANT USAGE ON SCHEMA fetchwell TO ROLE_NAME; GRANT SELECT ON fetchwell.records, fetchwell.streams, fetchwell.connections, fetchwell.store, fetchwell.migrations, fetchwell.fields TO ROLE_NAME").await;
    let source: BoundSource = database.store().into();
    let page = source.search(&SearchQuery::new("bird", 5)).await.unwrap();
    assert!(page.hits.is_empty() && page.notes.iter().any(|note| note.contains("import")), "{page:?}");
    database.import("d", &line("1", "late bird"));
    check_statistics(&database).await;
    let page = source.search(&SearchQuery::new("early 4711", 5)).await.unwrap();
    assert!(page.notes.is_empty(), "{page:?}");
    assert!(page.hits[0].excerpt.text().contains("4711"), "{page:?}");
    assert_eq!(source.search(&SearchQuery::new("bird", 5)).await.unwrap().count.unwrap().value, 5_000);
    // A role that may read records may search them.
    let reader: BoundSource = crate::support::stores::postgres::store(&reader).into();
    assert_eq!(reader.search(&SearchQuery::new("4711", 5)).await.unwrap().hits.len(), 1);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn long_records_are_searched() {
    let database = Database::create().await;
    let long: String = (0..120_000).map(|number| format!("word{number} ")).collect();
    let repeated = "again and again ".repeat(100_000);
    database.import("c", &[line("1", &long), line("2", &repeated), line("3", "short again")].join("\n"));
    let source: BoundSource = database.store().into();
    for (words, expect) in [("word3", "1"), ("word60000", "1"), ("short again", "3")] {
        let found = walk(&source, &SearchQuery::new(words, 5), |_| ()).await;
        assert_eq!(found.first().map(String::as_str), Some(expect), "{words}");
    }
    check_statistics(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_search_ends_at_the_deadline_and_with_its_call() {
    let database = Database::create().await;
    database.import("c", &line("1", "alpha"));
    let mut blocker = database.client().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE fetchwell.texts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let url: PostgresUrl = database.url.parse().unwrap();
    let fetchwell_postgres::PasswordPlace::Url(password) = url.password().clone() else { panic!() };
    let pool = PostgresPool::new(&url, Some(&password), None).unwrap();
    let hasty: BoundSource =
        PostgresStore::new("store".parse().unwrap(), pool, Duration::from_millis(300)).into();
    let late = hasty.search(&SearchQuery::new("alpha", 5)).await.unwrap_err();
    assert!(matches!(late, SourceError::Timeout { .. }), "{late:?}");
    let patient: BoundSource = database.store().into();
    let call = tokio::spawn({
        let patient = patient.clone();
        async move { patient.search(&SearchQuery::new("alpha", 5)).await.map(drop) }
    });
    let admin = connect(&database.url).await;
    let waiting = async || -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        admin.query_one(sql, &[]).await.unwrap().get(0)
    };
    while waiting().await == 0 {
        tokio::task::yield_now().await;
    }
    call.abort();
    // The statement would wait for 20 s. The test ends when it is cancelled.
    while waiting().await > 0 {
        tokio::task::yield_now().await;
    }
    transaction.rollback().await.unwrap();
    assert_eq!(patient.search(&SearchQuery::new("alpha", 5)).await.unwrap().hits.len(), 1);
}

//! Figures from columns compared with those from the JSON of the records, on real servers. `tests/postgres/run` starts them.

use std::time::Duration;

use fetchwell_conformance::column_comparison::{
    ComparedAnswers, ComparedStore, RecordChange, answer, check, write,
};
use fetchwell_conformance::random_queries::{Random, RandomRecords, StoreQuery};
use fetchwell_core::handle::RecordScope;
use fetchwell_ranking::relational::tables::Tables as _;
use fetchwell_source::RecordStore as _;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;

use super::{BuildLimits, ColumnUse, build_columns};
use crate::read::read;
use crate::test_database::{connect, new_store, url_of};
use crate::{PostgresPool, PostgresStore, PostgresTarget};

/// Maximum time of a read.
const DEADLINE: Duration = Duration::from_secs(600);

/// Small segments, a few in each step.
const LIMITS: BuildLimits = BuildLimits { min_records: 0, max_unbuilt: 0, records: 90, segments: 3 };

/// Store in a database of its own.
struct TestedStore {
    runtime: Runtime,
    store: PostgresStore,
    admin: Client,
    keeps_columns: bool,
}

impl TestedStore {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (store, admin) = runtime.block_on(new_store());
        Self { runtime, store, admin, keeps_columns: false }
    }

    fn pool(&self) -> &PostgresPool {
        &self.store.pool
    }

    fn build(&self) {
        self.runtime.block_on(async {
            let mut database = self.pool().connection().await.unwrap();
            build_columns(&mut database, self.pool(), LIMITS).await.unwrap();
        });
    }

    fn execute(&self, sql: &str) {
        self.runtime.block_on(self.admin.batch_execute(sql)).unwrap();
    }

    fn count(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.admin.query_one(sql, &[])).unwrap().get(0)
    }

    /// Answers a query by the connections of a pool.
    fn answers_by(&self, pool: &PostgresPool, query: &StoreQuery) -> ComparedAnswers {
        let query = query.clone();
        let answers = read(pool, DEADLINE, move |tables, _| {
            let plain = answer(&tables.with_columns(ColumnUse::None), &query);
            let tables = tables.with_columns(ColumnUse::All);
            let has_columns = tables.columns(1, &["a"], None)?.is_some();
            Ok(ComparedAnswers { plain, from_columns: answer(&tables, &query), has_columns })
        });
        self.runtime.block_on(answers).unwrap()
    }
}

impl ComparedStore for TestedStore {
    fn write(&mut self, connection: &str, records: Vec<RecordChange>) {
        write(&PostgresTarget::new(self.pool().clone(), self.runtime.handle().clone()), connection, records);
        if !self.keeps_columns {
            self.build();
        }
    }

    fn keep_columns(&mut self) {
        self.keeps_columns = true;
    }

    fn answers(&self, query: &StoreQuery) -> ComparedAnswers {
        self.answers_by(self.pool(), query)
    }
}

#[test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
fn columns_in_postgres_give_the_answers_of_the_records() {
    check(TestedStore::new);
}

/// Damages the middle of a block.
const DAMAGE: &str =
    "SET data = set_byte(data, octet_length(data) / 2, get_byte(data, octet_length(data) / 2) # 1)";

/// Removes a record as an earlier release does, which knows no columns.
const REMOVAL: &str = "DELETE FROM fetchwell.records WHERE stream = 1 AND key = 'k7' AND data IS NOT NULL;
    UPDATE fetchwell.streams SET record_count = (SELECT count(*) FROM fetchwell.records WHERE stream = 1 AND data IS NOT NULL)
    WHERE id = 1";

/// A reader that has no columns of one state of the records reads all of them, and the next build makes columns again.
#[test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
fn columns_that_are_damaged_or_missing_are_not_used() {
    let mut tested = TestedStore::new();
    let random = &mut Random(11);
    let records = RandomRecords::new(random, 400);
    let all: Vec<RecordChange> =
        records.records.iter().map(|(key, data)| (key.clone(), Some(data.clone()))).collect();
    tested.write("one", all.clone());
    assert_eq!(tested.count("SELECT count(*) FROM fetchwell.column_segments"), 5);
    let stream = "s".parse().unwrap();
    let queries: Vec<StoreQuery> = (0..12).map(|_| StoreQuery::new(random, &records, &stream)).collect();
    tested.keep_columns();
    let damaged = |blocks: &str| format!("UPDATE fetchwell.column_blocks {DAMAGE} WHERE {blocks}");
    let changed = |values: &str| format!("UPDATE fetchwell.column_segments SET {values}");
    // Some reads notice damage only when they read the block.
    let count =
        |by: i64| format!("UPDATE fetchwell.streams SET record_count = record_count + {by} WHERE id = 1");
    let cases: [(&str, String, Option<bool>, Option<bool>); 15] = [
        ("nothing", "SELECT".to_owned(), Some(true), Some(true)),
        ("keys", damaged("name = 'keys'"), Some(false), Some(true)),
        ("rows", damaged("name = 'rows'"), None, None),
        ("marks", damaged("name = 'marks'"), Some(false), None),
        ("values", damaged("length(name) = 32 AND part = 0"), None, None),
        ("texts", damaged("part > 0"), None, None),
        ("no blocks", "DELETE FROM fetchwell.column_blocks".to_owned(), Some(false), Some(true)),
        (
            "a hole",
            "DELETE FROM fetchwell.column_segments WHERE id = (SELECT min(id) + 1 FROM fetchwell.column_segments)".to_owned(),
            Some(false),
            Some(true),
        ),
        ("outdated", changed("outdated = set_bit(outdated, 5, 1 - get_bit(outdated, 5))"), Some(false), Some(true)),
        ("another format", changed("format = 0"), Some(false), Some(true)),
        ("a previous format", changed("format = 1"), Some(true), Some(true)),
        ("an earlier release", REMOVAL.to_owned(), Some(false), Some(true)),
        ("a wrong number", count(1), Some(false), Some(false)),
        (
            "no index",
            format!("{}; DROP INDEX fetchwell.records_by_version", count(-1)),
            Some(false),
            Some(false),
        ),
        ("a newer release", changed("format = 9"), Some(false), Some(false)),
    ];
    for (name, sql, expect, expect_built) in cases {
        // A change, a deletion and a new record that columns do not have.
        let (first, second) = (random.below(400), random.below(400));
        let changes = vec![
            (format!("k{first}"), Some(records.data(random))),
            (format!("k{second}"), None),
            (format!("new{name}"), Some(records.data(random))),
        ];
        tested.write("one", changes);
        tested.execute(&sql);
        let check = |expect: Option<bool>, when: &str| {
            for query in &queries {
                let ComparedAnswers { plain, from_columns, has_columns } =
                    tested.answers_by(tested.pool(), query);
                assert_eq!(plain, from_columns, "{name}, {when}: {query:?}");
                assert!(expect.is_none_or(|expect| expect == has_columns), "{name}, {when}: {has_columns}");
            }
        };
        check(expect, "before");
        tested.build();
        check(expect_built, "after");
        if expect_built.is_none() {
            tested.execute("DELETE FROM fetchwell.column_segments");
            tested.build();
            check(Some(true), "anew");
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
fn removed_records_have_no_columns_and_other_roles_read_records() {
    let mut tested = TestedStore::new();
    let random = &mut Random(12);
    let records = RandomRecords::new(random, 200);
    let put = |(key, data): &(String, _)| (key.clone(), Some(Clone::clone(data)));
    tested.write("one", records.records.iter().map(put).collect());
    let stream = "s".parse().unwrap();
    let query = StoreQuery::new(random, &records, &stream);
    // A role that may not read columns.
    let url = tested.runtime.block_on(url_of(&tested.admin));
    tested.execute(
        "DROP ROLE IF EXISTS no_columns; CREATE ROLE no_columns LOGIN PASSWORD 'secret';
         GRANT USAGE ON SCHEMA fetchwell TO no_columns; GRANT SELECT ON ALL TABLES IN SCHEMA fetchwell TO no_columns;
         REVOKE ALL ON fetchwell.column_blocks FROM no_columns",
    );
    let (_, place) = url.rsplit_once('@').unwrap();
    let url = format!("postgres://no_columns@{place}").parse().unwrap();
    let pool = PostgresPool::new(&url, Some(&"secret".to_owned().into()), None).unwrap();
    let answers = tested.answers_by(&pool, &query);
    assert_eq!((answers.plain == answers.from_columns, answers.has_columns), (true, false));
    drop(pool);
    tested.execute("DROP OWNED BY no_columns; DROP ROLE no_columns");
    // A removal leaves no value of the record.
    let scope = RecordScope {
        connection: "one".parse().unwrap(),
        stream: Some("s".parse().unwrap()),
        record: Some("k199".parse().unwrap()),
    };
    let remove = |scope: &RecordScope| {
        let removal = tested.pool().remove(scope);
        tested.runtime.block_on(removal)
    };
    remove(&scope).unwrap();
    assert_eq!(tested.count("SELECT count(*) FROM fetchwell.column_segments WHERE last_version >= 200"), 0);
    assert!(!tested.answers(&query).has_columns);
    tested.build();
    assert!(tested.answers(&query).has_columns);
    remove(&RecordScope { stream: None, record: None, ..scope }).unwrap();
    assert_eq!(tested.count("SELECT count(*) FROM fetchwell.column_blocks"), 0);
}

/// Many processes build and write at the same time.
#[test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
fn builds_that_are_ended_change_nothing() {
    let mut tested = TestedStore::new();
    tested.keep_columns();
    let random = &mut Random(13);
    let records = RandomRecords::new(random, 300);
    let put = |(key, data): &(String, _)| (key.clone(), Some(Clone::clone(data)));
    tested.write("one", records.records.iter().map(put).collect());
    let stream = "s".parse().unwrap();
    let query = StoreQuery::new(random, &records, &stream);
    let other = tested.runtime.block_on(async { connect(&url_of(&tested.admin).await).await });
    // The insert of a segment waits for this lock; then the session of the build is ended.
    let ended = tested.runtime.block_on(async {
        other.batch_execute("BEGIN; LOCK TABLE fetchwell.column_blocks IN SHARE MODE").await.unwrap();
        let pool = tested.pool().clone();
        let build = tokio::spawn(async move {
            let mut database = pool.connection().await.unwrap();
            build_columns(&mut database, &pool, LIMITS).await
        });
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while tested.admin.query_one(end, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        other.batch_execute("COMMIT").await.unwrap();
        build.await.unwrap()
    });
    assert!(ended.is_err());
    assert_eq!(tested.count("SELECT count(*) FROM fetchwell.column_segments"), 0);
    assert!(!tested.answers(&query).has_columns);
    while !tested.answers(&query).has_columns {
        tested.build();
    }
    let answers = tested.answers(&query);
    assert_eq!(answers.plain, answers.from_columns);
}

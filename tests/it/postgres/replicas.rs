//! A real streaming replica, and a primary that dies.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fetchwell_core::handle::RecordAddress;
use fetchwell_postgres::{PasswordPlace, PostgresPool, PostgresStore, PostgresUrl, ReadReplicas};
use fetchwell_source::contract::{PostgresError, StoreError};
use fetchwell_source::{BoundSource, RecordQuery, SourceError};

use crate::sources::conformance::records_of;
use crate::support::stores::postgres::connect;
use crate::support::{fetchwell, import_records, stdout, text};

/// Primary with a streaming replica. Both stop with the test.
struct Cluster {
    folder: tempfile::TempDir,
    primary: String,
    replica: String,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("stop");
    }
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self { folder, primary: String::new(), replica: String::new() };
        cluster.run("start");
        let url = |name: &str| {
            let file = cluster.folder.path().join("cluster").join(name);
            std::fs::read_to_string(file).unwrap().trim().to_owned()
        };
        (cluster.primary, cluster.replica) = (url("primary.url"), url("replica.url"));
        cluster
    }

    fn run(&self, command: &str) {
        // The folder of the test is only for its user.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(self.folder.path(), open).unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/cluster");
        let folder = self.folder.path().join("cluster");
        let output = Command::new(script).arg(command).arg(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn import(&self, key: &str) {
        let lines = format!("{{\"stream\":\"s\",\"key\":\"{key}\",\"data\":{{\"title\":\"Zeppelin\"}}}}\n");
        import_records(Path::new(&self.primary), "c", &lines);
    }

    fn store(&self, max_lag: Duration) -> PostgresStore {
        let replicas = ReadReplicas::new(vec![pool(&self.replica)], max_lag);
        let store =
            PostgresStore::new("store".parse().unwrap(), pool(&self.primary), Duration::from_secs(20));
        store.with_replicas(replicas)
    }
}

fn pool(url: &str) -> PostgresPool {
    let url: PostgresUrl = url.parse().unwrap();
    let PasswordPlace::Url(password) = url.password().clone() else { panic!("{url} has no password") };
    PostgresPool::new(&url, Some(&password), None).unwrap()
}

async fn keys(source: &BoundSource) -> Result<usize, SourceError> {
    source.records(&records_of("s")).await.map(|page| page.rows.len())
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn reads_go_to_a_replica_while_it_is_up_to_date() {
    let cluster = Cluster::start();
    cluster.import("a");
    let store = cluster.store(Duration::from_secs(2));
    let source: BoundSource = store.clone().into();
    until("the replica is not used", async || store.replicas().await[0].is_used).await;
    let on_replica = connect(&cluster.replica).await;
    assert_eq!(keys(&source).await.unwrap(), 1);

    // The replica falls behind: reads go to the primary when the lag is above the bound, and back later.
    on_replica.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
    cluster.import("b");
    until("the lag is not noticed", async || !store.replicas().await[0].is_used).await;
    assert_eq!(keys(&source).await.unwrap(), 2);
    on_replica.batch_execute("SELECT pg_wal_replay_resume()").await.unwrap();
    until("the replica is not used again", async || store.replicas().await[0].is_used).await;
    assert_eq!(keys(&source).await.unwrap(), 2);
}

/// Within the bound a replica may lack a record that another process has printed: it is read from the primary.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_record_that_the_replica_lacks_is_read_from_the_primary() {
    let cluster = Cluster::start();
    cluster.import("a");
    let store = cluster.store(Duration::from_secs(600));
    let source: BoundSource = store.clone().into();
    until("the replica is not used", async || store.replicas().await[0].is_used).await;
    let on_replica = connect(&cluster.replica).await;
    on_replica.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
    cluster.import("b");
    assert_eq!(keys(&source).await.unwrap(), 1);
    let query = RecordQuery::new(RecordAddress {
        connection: Some("c".parse().unwrap()),
        stream: "s".parse().unwrap(),
        record: "b".parse().unwrap(),
    });
    let record = source.record(&query).await.unwrap();
    assert_eq!(record.data["title"], "Zeppelin");
    assert!(store.replicas().await[0].is_used);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_dead_primary_is_an_error_until_it_is_back() {
    let cluster = Cluster::start();
    cluster.import("a");
    let alone = PostgresStore::new("store".parse().unwrap(), pool(&cluster.primary), Duration::from_secs(5));
    let alone: BoundSource = alone.into();
    let with_replica: BoundSource = cluster.store(Duration::from_millis(500)).into();
    for source in [&alone, &with_replica] {
        assert_eq!(keys(source).await.unwrap(), 1);
    }
    cluster.run("stop-primary");
    let is_named = |error: &SourceError| {
        matches!(
            error,
            SourceError::Store(StoreError::Postgres(
                PostgresError::Unreachable { .. } | PostgresError::Stopping { .. }
            ))
        )
    };
    for _ in 0..5 {
        let error = keys(&alone).await.unwrap_err();
        assert!(is_named(&error) && error.is_source_failure(), "{error:?}");
        assert!(alone.health().await.is_err());
    }
    // Nothing is known of the lag of a replica while the primary is silent.
    until("the replica is still read from", async || match keys(&with_replica).await {
        Ok(found) => {
            assert_eq!(found, 1);
            false
        }
        Err(error) => {
            assert!(is_named(&error), "{error:?}");
            true
        }
    })
    .await;
    cluster.run("start-primary");
    for source in [&alone, &with_replica] {
        until("the primary is not used again", async || keys(source).await.is_ok_and(|found| found == 1))
            .await;
    }
    cluster.import("b");
    until("the new record is not read", async || keys(&alone).await.is_ok_and(|found| found == 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn doctor_names_the_lag_of_each_replica() {
    let cluster = Cluster::start();
    cluster.import("a");
    let config = cluster.folder.path().join("fetchwell.toml");
    let settings = format!(
        "[[source]]\nname = \"team\"\nstore = \"{}\"\nread_urls = [\"{}\"]\nmax_lag = \"3s\"\n",
        cluster.primary, cluster.replica
    );
    std::fs::write(&config, settings).unwrap();
    let doctor = stdout(&fetchwell(["doctor", "--config", text(&config)]));
    assert!(doctor.contains("ms behind") && !doctor.contains("fetchwell-test"), "{doctor}");
}

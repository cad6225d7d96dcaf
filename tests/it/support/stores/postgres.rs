//! Databases of a real PostgreSQL server, which `tests/postgres/run` starts.

use std::sync::atomic::{AtomicU32, Ordering};

use fetchwell_postgres::{PostgresPool, PostgresStore, PostgresUrl};
use tokio_postgres::{Client, NoTls};

use crate::support::{fetchwell, text};

/// Password of the roles that tests create.
pub(crate) const ROLE_PASSWORD: &str = "r0le-5ecret";

/// New database of one test. Dropped at the end of the test, so that the tests need little disk.
pub(crate) struct Database {
    /// URL for the superuser.
    pub(crate) url: String,
    /// Host and port of the server.
    pub(crate) authority: String,
    pub(crate) name: String,
}

/// Returns the URL of the superuser.
fn server() -> String {
    variable("FETCHWELL_TEST_POSTGRES").unwrap_or_else(|| {
        panic!(
            "FETCHWELL_TEST_POSTGRES is not set; run these tests with \
             `tests/postgres/run cargo test --test it -- --ignored postgres`"
        )
    })
}

/// Returns the folder with the programs of the server, such as `pg_dump`.
pub(crate) fn programs() -> String {
    variable("FETCHWELL_TEST_POSTGRES_BIN")
        .unwrap_or_else(|| panic!("FETCHWELL_TEST_POSTGRES_BIN is not set"))
}

/// Returns true if a server was started for the tests.
pub(crate) fn has_server() -> bool {
    variable("FETCHWELL_TEST_POSTGRES").is_some()
}

/// Returns the file with the authority of the server's certificate, if the server has TLS.
pub(crate) fn authority_file() -> Option<String> {
    variable("FETCHWELL_TEST_POSTGRES_CA")
}

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "tests/postgres/run sets it for the tests")]
    let value = std::env::var(name);
    value.ok()
}

impl Database {
    /// Creates an empty database.
    pub(crate) async fn create() -> Self {
        Self::create_with("").await
    }

    /// Creates an empty database with options of `CREATE DATABASE`.
    pub(crate) async fn create_with(options: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = server();
        let admin = connect(&server).await;
        admin.batch_execute(&format!("CREATE DATABASE {name} {options}")).await.unwrap();
        let (before, _postgres) = server.rsplit_once('/').unwrap();
        let authority = before.rsplit_once('@').unwrap().1.to_owned();
        Self { url: format!("{before}/{name}"), authority, name }
    }

    /// Returns the URL of the database, which stays.
    pub(crate) fn into_url(self) -> String {
        std::mem::ManuallyDrop::new(self).url.clone()
    }

    /// Connects as the superuser.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url).await
    }

    /// Creates a role with grants, in which `ROLE` stands for its name. Returns its URL.
    pub(crate) async fn role(&self, grants: &str) -> String {
        let role = format!("role_{}", self.name);
        let sql = format!("CREATE ROLE {role} LOGIN PASSWORD '{ROLE_PASSWORD}'; {grants}");
        self.client().await.batch_execute(&sql.replace("ROLE_NAME", &role)).await.unwrap();
        format!("postgres://{role}:{ROLE_PASSWORD}@{}/{}", self.authority, self.name)
    }

    /// Opens the store in the database.
    pub(crate) fn store(&self) -> PostgresStore {
        store(&self.url)
    }

    /// Imports record envelopes into a connection.
    #[track_caller]
    pub(crate) fn import(&self, connection: &str, lines: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("records.ndjson");
        std::fs::write(&file, lines).unwrap();
        let output =
            fetchwell(["import", "records", text(&file), "--store", &self.url, "--connection", connection]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // The runtime of a test does not run during a drop.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move { connect(&server()).await.batch_execute(&sql).await })
        });
        // A test may have stopped or filled its server; the database is then left.
        let _left = dropping.join();
    }
}

/// Opens a store by its URL, with the password in it.
pub(crate) fn store(url: &str) -> PostgresStore {
    let url: PostgresUrl = url.parse().unwrap();
    let fetchwell_postgres::PasswordPlace::Url(password) = url.password().clone() else {
        panic!("{url} has no password")
    };
    let pool = PostgresPool::new(&url, Some(&password), None).unwrap();
    PostgresStore::new("store".parse().unwrap(), pool, std::time::Duration::from_secs(20))
}

/// Connects to a database.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    client
}

//! Databases of tests, on real servers. `tests/postgres/run` starts them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use crate::{PasswordPlace, PostgresPool, PostgresStore, PostgresUrl};

/// Returns the URL of the superuser.
fn server() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests/postgres/run sets it for the tests")]
    let url = std::env::var("FETCHWELL_TEST_POSTGRES");
    url.expect(
        "FETCHWELL_TEST_POSTGRES is not set; run `tests/postgres/run cargo test --lib -- --ignored postgres`",
    )
}

/// Connects to a database.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    client
}

/// Creates a database, and returns its store with a connection.
pub(crate) async fn new_store() -> (PostgresStore, Client) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = server();
    let name = format!("store_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let parsed: PostgresUrl = url.parse().unwrap();
    let PasswordPlace::Url(password) = parsed.password().clone() else { panic!("{parsed} has no password") };
    let pool = PostgresPool::new(&parsed, Some(&password), None).unwrap();
    let store = PostgresStore::new("store".parse().unwrap(), pool, Duration::from_secs(30));
    (store, connect(&url).await)
}

/// Returns the URL of the database of a connection.
pub(crate) async fn url_of(client: &Client) -> String {
    let name: String = client.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    format!("{}/{name}", server().rsplit_once('/').unwrap().0)
}

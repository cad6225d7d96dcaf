//! The rules of a store of documents, on real servers. `tests/postgres/run` starts them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use crate::source::documents::{DocumentStore, conformance};
use crate::source::postgres::{PasswordPlace, PostgresPool, PostgresStore, PostgresUrl};

/// Returns the URL of the superuser.
fn server() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests/postgres/run sets it for the tests")]
    let url = std::env::var("FETCHWELL_TEST_POSTGRES");
    url.expect(
        "FETCHWELL_TEST_POSTGRES is not set; run `tests/postgres/run cargo test --lib -- --ignored postgres`",
    )
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    client
}

/// Creates a database, and returns its store with a connection.
async fn new_store() -> (PostgresStore, Client) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = server();
    let name = format!("documents_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let parsed: PostgresUrl = url.parse().unwrap();
    let PasswordPlace::Url(password) = parsed.password().clone() else { panic!("{parsed} has no password") };
    let pool = PostgresPool::new(&parsed, Some(&password), None).unwrap();
    let store = PostgresStore::new("store".parse().unwrap(), pool, Duration::from_secs(30));
    (store, connect(&url).await)
}

/// Returns true if the server has pgvector. Debian's version 15 has none.
async fn has_pgvector(client: &Client) -> bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn the_store_in_postgres_conforms() {
    let (store, client) = new_store().await;
    if has_pgvector(&client).await {
        conformance::check(&store).await;
        return;
    }
    assert!(store.projects().await.unwrap().is_empty());
    let refused = store.project(&"docs".parse().unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("the server has no pgvector"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_chunk_in_postgres_belongs_to_the_project_of_its_document() {
    let (store, client) = new_store().await;
    if !has_pgvector(&client).await {
        return;
    }
    let one = conformance::project(&store, "one").await;
    let other = conformance::project(&store, "other").await;
    conformance::put(&store, &one, "a.md", "text").await;
    let moved = format!("UPDATE fetchwell.chunks SET project_id = '{}'", other.id);
    let refused = client.execute(&moved, &[]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&tokio_postgres::error::SqlState::FOREIGN_KEY_VIOLATION));
    let short = "UPDATE fetchwell.chunks SET embedding = '[1,2,3]'";
    assert!(client.execute(short, &[]).await.unwrap_err().to_string().contains("db error"));
    let before: String = time_of(&client).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    client.execute("UPDATE fetchwell.documents SET title = 'New'", &[]).await.unwrap();
    assert!(time_of(&client).await > before);
}

async fn time_of(client: &Client) -> String {
    client.query_one("SELECT updated_at::text FROM fetchwell.documents", &[]).await.unwrap().get(0)
}

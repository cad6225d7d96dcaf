//! The rules of a store of documents, on real servers. `tests/postgres/run` starts them.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_conformance::documents::{self as conformance, TestedStore};
use fetchwell_source::documents::{DocumentStore, Uuid};
use tokio_postgres::Client;

use crate::PostgresStore;
use crate::test_database::{connect, new_store, url_of};
use crate::vectors::index::{create_index_after_import, drop_index_for};

#[async_trait]
impl TestedStore for PostgresStore {
    async fn remove_project(&self, project: Uuid) -> bool {
        self.delete_project(project).await.unwrap()
    }
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

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn the_index_of_vectors_is_kept_for_readers_and_built_for_vectors_of_a_model() {
    let (store, client) = new_store().await;
    if !has_pgvector(&client).await {
        return;
    }
    let project = conformance::project(&store, "one").await;
    // Only the name of the index counts.
    let many = format!(
        "DROP INDEX fetchwell.idx_chunks_embedding;
         INSERT INTO fetchwell.documents (id, project_id, path, content_hash)
             VALUES ('{0}', '{0}', 'a.md', 'h');
         INSERT INTO fetchwell.chunks (document_id, project_id, content, embedding, chunk_index)
             SELECT '{0}', '{0}', 'text', ('[1' || repeat(',0', 1023) || ']')::vector, number
             FROM generate_series(1, 2000) number;
         CREATE INDEX idx_chunks_embedding ON fetchwell.chunks (chunk_index)",
        project.id
    );
    client.batch_execute(&many).await.unwrap();
    let is_indexed = "SELECT to_regclass('fetchwell.idx_chunks_embedding') IS NOT NULL";
    let is_indexed = async || client.query_one(is_indexed, &[]).await.unwrap().get::<_, bool>(0);
    let drop_index = async || {
        let mut connection = store.pool.connection().await.unwrap();
        let dropped = drop_index_for(&mut connection, store.pool.url(), "1");
        // Without a limit it would wait for the reader until the end of the test.
        tokio::time::timeout(Duration::from_secs(60), dropped).await.unwrap().unwrap();
    };
    let reader = connect(&url_of(&client).await).await;
    reader.batch_execute("BEGIN; LOCK TABLE fetchwell.chunks IN ACCESS SHARE MODE").await.unwrap();
    drop_index().await;
    assert!(is_indexed().await, "a reader locks the table");
    reader.batch_execute("COMMIT").await.unwrap();
    drop_index().await;
    assert!(!is_indexed().await);
    let mut connection = store.pool.connection().await.unwrap();
    let changes = [
        ("SELECT 1", false),
        ("INSERT INTO fetchwell.embedding_models (model, dimensions, probe) VALUES ('m', 1024, '{1}')", true),
        ("DROP INDEX fetchwell.idx_chunks_embedding; DELETE FROM fetchwell.embedding_models", false),
        ("DELETE FROM fetchwell.chunks WHERE chunk_index = 1", true),
    ];
    for (change, expect) in changes {
        client.batch_execute(change).await.unwrap();
        create_index_after_import(&mut connection, store.pool.url()).await.unwrap();
        assert_eq!(is_indexed().await, expect, "{change}");
    }
}

async fn time_of(client: &Client) -> String {
    client.query_one("SELECT updated_at::text FROM fetchwell.documents", &[]).await.unwrap().get(0)
}

//! The index of the vectors of chunks. It takes a fraction of the time to build it over many vectors that it takes to change
//! it as often, so it is dropped before they are written. Searches meanwhile read all vectors.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::extension::{owns_table, use_extension};
use crate::transaction::{begin_read, begin_write};
use crate::url::PostgresUrl;

/// Minimum number of chunks for which the index is dropped or left out, and the least share of all chunks, as a divisor.
const MANY_CHUNKS: i64 = 2_000;
const MANY_SHARE: i64 = 3;

/// Statement that creates the index of the contract.
const CREATE_INDEX: &str = "CREATE INDEX IF NOT EXISTS idx_chunks_embedding ON fetchwell.chunks
     USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64)";

/// Maximum time that the removal of the index waits for readers. With the index kept, vectors are written more slowly.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

/// Drops the index if many chunks get new vectors, with another label than this one. Only the owner of the table can do that,
/// and only while no long read locks it; otherwise the index is changed vector by vector.
pub(crate) async fn drop_index_for(
    connection: &mut Object,
    url: &PostgresUrl,
    label: &str,
) -> Result<(), Error> {
    let transaction = begin_write(connection, url).await?;
    let sql = format!(
        "SELECT count(*), count(*) FILTER (WHERE metadata ->> 'embedding' IS DISTINCT FROM $1),
             {}
         FROM fetchwell.chunks",
        owns_table("'fetchwell.chunks'")
    );
    let row = transaction.query_one(&sql, &[&label]).await?;
    let (all, missing, is_owner): (i64, i64, bool) = (row.get(0), row.get(1), row.get(2));
    if is_owner && missing >= MANY_CHUNKS && missing >= all / MANY_SHARE {
        drop_index(transaction).await?;
    }
    Ok(())
}

/// Drops the index and commits, unless readers lock the table for too long.
async fn drop_index(transaction: Transaction<'_>) -> Result<(), Error> {
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    match transaction.batch_execute("DROP INDEX IF EXISTS fetchwell.idx_chunks_embedding").await {
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => transaction.commit().await,
    }
}

/// Drops the index if there are no chunks yet, before an import. A table that others use keeps it.
pub(crate) async fn drop_empty_index(connection: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    let transaction = begin_write(connection, url).await?;
    let owns = owns_table("'fetchwell.chunks'");
    let sql = format!("SELECT NOT EXISTS (SELECT 1 FROM fetchwell.chunks) AND {owns}");
    if transaction.query_one(&sql, &[]).await?.get::<_, bool>(0) {
        drop_index(transaction).await?;
    }
    Ok(())
}

/// Creates the index after an import if it does not exist, unless all of many vectors are hashes of words: no search compares
/// them, and the build of the first vectors of a model creates the index.
pub(crate) async fn create_index_after_import(
    connection: &mut Object,
    url: &PostgresUrl,
) -> Result<(), Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM fetchwell.embedding_models)
         OR (SELECT count(*) FROM (SELECT 1 FROM fetchwell.chunks LIMIT $1) c) < $1";
    let is_needed = begin_read(connection, url).await?.query_one(sql, &[&MANY_CHUNKS]).await?.get(0);
    if is_needed { create_index(connection, url).await } else { Ok(()) }
}

/// Creates the index if it does not exist.
pub(crate) async fn create_index(connection: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    let exists = "SELECT to_regclass('fetchwell.idx_chunks_embedding') IS NOT NULL";
    if begin_read(connection, url).await?.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(());
    }
    let transaction = begin_write(connection, url).await?;
    use_extension(transaction.client()).await?;
    transaction.batch_execute("SET LOCAL maintenance_work_mem = '512MB'").await?;
    transaction.batch_execute(CREATE_INDEX).await?;
    transaction.commit().await
}

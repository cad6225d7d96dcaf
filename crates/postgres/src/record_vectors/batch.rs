//! Stores the vectors of a batch and the new coverage of its stream in one transaction.
//!
//! The transaction locks the version of the store, as every writer of records does. So no record is deleted meanwhile, and no
//! deleted record gets vectors.

use deadpool_postgres::Transaction;
use fetchwell_core::saturate::saturated;
use fetchwell_ranking::meaning::PlannedChunk;
use fetchwell_source::contract::PostgresError;
use tokio_postgres::Error;

use super::changes::Plan;
use super::generations::Generation;
use crate::extension::use_extension;
use crate::extension::vector::SqlVector;
use crate::pool::PostgresPool;
use crate::transaction::{begin_write, lock_version};

/// Columns of the chunks of a batch.
#[derive(Debug, Default)]
struct ChunkColumns<'p> {
    record: Vec<i64>,
    part: Vec<i32>,
    first_byte: Vec<i32>,
    end_byte: Vec<i32>,
    digest: Vec<&'p [u8]>,
    embedding: Vec<SqlVector<'p>>,
}

impl<'p> ChunkColumns<'p> {
    fn push(&mut self, row: i64, plan: &'p Plan, chunks: &'p [PlannedChunk]) {
        let number = |number: usize| saturated::<i32>(number);
        for (part, chunk) in (0..).zip(chunks) {
            let Some(vector) = plan.texts.known.get(&chunk.digest) else { continue };
            self.record.push(row);
            self.part.push(part);
            self.first_byte.push(number(chunk.first_byte));
            self.end_byte.push(number(chunk.end_byte));
            self.digest.push(&chunk.digest);
            self.embedding.push(SqlVector(vector));
        }
    }
}

/// Stores a plan after its texts were embedded. A record that lacks a vector is stored as refused. Returns the number of records
/// that were refused.
pub(super) async fn store_batch(
    pool: &PostgresPool,
    generation: &Generation,
    plan: &Plan,
) -> Result<usize, PostgresError> {
    let (mut rows, mut refused, mut chunks) = (Vec::new(), Vec::new(), ChunkColumns::default());
    for record in &plan.records {
        let Some(row) = record.row else { continue };
        rows.push(row);
        if plan.texts.has_vectors(&record.chunks) {
            chunks.push(row, plan, &record.chunks);
        } else {
            refused.push(row);
        }
    }
    let mut database = pool.connection().await?;
    let store = async {
        let transaction = begin_write(&mut database, pool.url()).await?;
        use_extension(transaction.client()).await?;
        lock_version(&transaction).await?;
        put(&transaction, generation, &rows, &chunks).await?;
        put_refused(&transaction, generation, &rows, &refused).await?;
        if let Some(version) = plan.version {
            let sql = "INSERT INTO fetchwell.vector_coverage (generation, stream, version)
                 SELECT $1, id, $3 FROM fetchwell.streams WHERE id = $2
                 ON CONFLICT (stream, generation) DO UPDATE SET version = excluded.version";
            transaction.execute(sql, &[&generation.id(), &plan.stream, &version]).await?;
        }
        if plan.texts.omitted > 0 {
            let omitted = saturated::<i64>(plan.texts.omitted);
            let sql = "UPDATE fetchwell.vector_generations SET omitted = omitted + $2 WHERE id = $1";
            transaction.execute(sql, &[&generation.id(), &omitted]).await?;
        }
        transaction.commit().await
    };
    store.await.map_err(|error| pool.failure(&error))?;
    Ok(refused.len())
}

/// Replaces the chunks of records. A record that was deleted since it was read gets none.
async fn put(
    transaction: &Transaction<'_>,
    generation: &Generation,
    rows: &[i64],
    chunks: &ChunkColumns<'_>,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!("DELETE FROM {} WHERE record = ANY ($1)", generation.table());
    transaction.execute(&sql, &[&rows]).await?;
    let sql = format!(
        "INSERT INTO {} (record, part, stream, first_byte, end_byte, digest, embedding)
         SELECT n.record, n.part, t.stream, n.first_byte, n.end_byte, n.digest, n.embedding::{}
         FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::bytea[], $6::vector[])
             AS n (record, part, first_byte, end_byte, digest, embedding)
         JOIN fetchwell.texts t ON t.id = n.record",
        generation.table(),
        generation.cast()
    );
    let ChunkColumns { record, part, first_byte, end_byte, digest, embedding } = chunks;
    transaction.execute(&sql, &[record, part, first_byte, end_byte, digest, embedding]).await.map(drop)
}

/// Replaces the rows that mark records as refused.
async fn put_refused(
    transaction: &Transaction<'_>,
    generation: &Generation,
    rows: &[i64],
    refused: &[i64],
) -> Result<(), Error> {
    let sql = "DELETE FROM fetchwell.refused_records WHERE generation = $1 AND record = ANY ($2)";
    transaction.execute(sql, &[&generation.id(), &rows]).await?;
    if refused.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO fetchwell.refused_records (generation, record)
         SELECT $1, id FROM fetchwell.texts WHERE id = ANY ($2)";
    transaction.execute(sql, &[&generation.id(), &refused]).await.map(drop)
}

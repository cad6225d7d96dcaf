//! The state of the vectors of records.

use fetchwell_source::contract::{EmbeddedStreams, GenerationStatus, VectorScan, VectorStatus};
use tokio_postgres::{Client, Error};

use super::changes::is_embedded_sql;
use super::generations::{Generation, VectorColumn};

/// Reads the state of the vectors of records, in a transaction.
pub(super) async fn record_vector_status(
    client: &Client,
    streams: &EmbeddedStreams,
) -> Result<VectorStatus, Error> {
    let mut status = VectorStatus::default();
    for generation in &Generation::all(client).await? {
        if generation.is_current {
            status.scan = Some(scan(client, generation).await?);
            status.current = Some(describe(client, generation, streams).await?);
        } else if !generation.is_replaced {
            status.building = Some(describe(client, generation, streams).await?);
        }
        let sql = "SELECT coalesce(pg_total_relation_size(to_regclass($1)), 0)";
        let bytes: i64 = client.query_one(sql, &[&generation.table()]).await?.get(0);
        status.bytes += bytes.unsigned_abs();
    }
    Ok(status)
}

async fn describe(
    client: &Client,
    generation: &Generation,
    streams: &EmbeddedStreams,
) -> Result<GenerationStatus, Error> {
    let refused = "SELECT count(*) FROM fetchwell.refused_records WHERE generation = $1";
    let refused: i64 = client.query_one(refused, &[&generation.id()]).await?.get(0);
    Ok(GenerationStatus {
        model: generation.model.name.clone(),
        dimensions: generation.model.dimensions,
        chunks: count_chunks(client, generation).await?,
        missing_records: count_missing(client, generation.id(), streams).await? + refused.unsigned_abs(),
        omitted_bytes: generation.omitted,
    })
}

async fn scan(client: &Client, generation: &Generation) -> Result<VectorScan, Error> {
    Ok(match generation.column() {
        VectorColumn::Unindexed => VectorScan::Exact,
        _ if !generation.is_indexed(client).await? => VectorScan::MissingIndex,
        VectorColumn::Half => VectorScan::HalfPrecisionIndex,
        VectorColumn::Full => VectorScan::Index,
    })
}

/// Returns the number of chunks of a generation.
pub(super) async fn count_chunks(client: &Client, generation: &Generation) -> Result<u64, Error> {
    let sql = format!("SELECT count(*) FROM {}", generation.table());
    Ok(client.query_one(&sql, &[]).await?.get::<_, i64>(0).unsigned_abs())
}

/// Returns the number of records of embedded streams that a generation lacks.
pub(super) async fn count_missing(
    client: &Client,
    generation: i64,
    streams: &EmbeddedStreams,
) -> Result<u64, Error> {
    let sql = format!(
        "SELECT count(*) FROM fetchwell.streams s
         LEFT JOIN fetchwell.vector_coverage c ON c.generation = $1 AND c.stream = s.id
         JOIN fetchwell.records r ON r.stream = s.id AND r.version > coalesce(c.version, 0)
         WHERE r.data IS NOT NULL AND {}",
        is_embedded_sql("$2")
    );
    Ok(client.query_one(&sql, &[&generation, &streams.names()]).await?.get::<_, i64>(0).unsigned_abs())
}

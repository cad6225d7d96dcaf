//! Measures the same searches in PostgreSQL. The table is that of a generation. Drops the schema `fetchwell`.

use std::pin::pin;
use std::time::Instant;

use bytes::BytesMut;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls};

use super::{FILTERS, Results, Set};

/// Table of a generation as the program creates it.
const TABLE: &str = include_str!("../../crates/postgres/src/migrations/documents/record_vectors_table.sql");

/// Settings of a search in the index, as the program has them.
const SETTINGS: &str = "SET hnsw.iterative_scan = relaxed_order; SET hnsw.ef_search = 400;
    SET hnsw.max_scan_tuples = 50000; SET random_page_cost = 1.1; SET plan_cache_mode = force_custom_plan";

/// Number of chunks in scope below which the program scans all of them.
const MIN_INDEXED: usize = 5_000;

/// A vector as a value of a statement.
#[derive(Debug)]
struct SqlVector<'v>(&'v [f32]);

impl ToSql for SqlVector<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&u16::try_from(self.0.len())?.to_be_bytes());
        out.extend_from_slice(&0_u16.to_be_bytes());
        for number in self.0 {
            out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        of.name() == "vector"
    }

    to_sql_checked!();
}

/// Returns the stream of a record, by which it is filtered. 20 % of the records are in the first three, 2 % in the first two.
fn stream(record: usize) -> i64 {
    match record {
        _ if record.is_multiple_of(1_000) => 0,
        _ if record.is_multiple_of(50) => 1,
        _ if record.is_multiple_of(5) => 2,
        _ => 3,
    }
}

fn streams(share: usize) -> Option<Vec<i64>> {
    match share {
        1 => None,
        5 => Some(vec![0, 1, 2]),
        50 => Some(vec![0, 1]),
        _ => Some(vec![0]),
    }
}

/// Loads the vectors, builds the index, and measures searches.
pub(super) async fn measure(url: &str, set: &Set) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    load(&client, set).await;
    for is_index_forced in [false, true] {
        for ((filter, share), nearest) in FILTERS.iter().zip(&set.nearest) {
            let in_scope = set.vectors.len() / share;
            let is_indexed = in_scope >= MIN_INDEXED;
            if is_index_forced && is_indexed {
                continue;
            }
            let mut results = Results::default();
            for (query, nearest) in set.queries.iter().zip(nearest) {
                let start = Instant::now();
                let hits = search(&client, query, streams(*share), is_indexed || is_index_forced).await;
                results.add(start, &hits, nearest);
            }
            let way = if is_indexed || is_index_forced { "HNSW" } else { "scan" };
            let note = if is_index_forced { ", not what a store does" } else { "" };
            results.print(&format!("PostgreSQL, {way}{note}"), filter);
        }
    }
}

async fn load(client: &Client, set: &Set) {
    let row = client.query_one("SELECT to_regclass('fetchwell.store') IS NULL", &[]).await.unwrap();
    assert!(row.get::<_, bool>(0), "the database has a store, which this bench would delete");
    let dimensions = set.vectors[0].len();
    let table = TABLE
        .replace("TABLE_NAME", "record_vectors_1")
        .replace("COLUMN_TYPE", &format!("vector({dimensions})"))
        .replace(" REFERENCES fetchwell.texts (id) ON DELETE CASCADE", "");
    // The grants of the table are those of the records.
    client
        .batch_execute(
            "CREATE EXTENSION IF NOT EXISTS vector; DROP SCHEMA IF EXISTS fetchwell CASCADE; CREATE SCHEMA fetchwell;
             CREATE TABLE fetchwell.records (id bigint)",
        )
        .await
        .unwrap();
    client.batch_execute(&table).await.unwrap();
    let row = client.query_one("SELECT 'vector'::regtype::oid", &[]).await.unwrap();
    let types = client.prepare("SELECT $1::vector").await.unwrap().params().to_vec();
    assert_eq!(types[0].oid(), row.get::<_, u32>(0));
    let columns = [Type::INT8, Type::INT4, Type::INT8, Type::INT4, Type::INT4, Type::BYTEA, types[0].clone()];
    let start = Instant::now();
    let sink = client.copy_in("COPY fetchwell.record_vectors_1 FROM STDIN (FORMAT binary)").await.unwrap();
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &columns));
    for (record, vector) in set.vectors.iter().enumerate() {
        let digest = (record as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        let (row, vector) = (record as i64, SqlVector(vector));
        let values: [&(dyn ToSql + Sync); 7] =
            [&row, &0_i32, &stream(record), &0_i32, &1_i32, &digest, &vector];
        writer.as_mut().write(&values).await.unwrap();
    }
    writer.finish().await.unwrap();
    let loaded = start.elapsed().as_secs_f64();
    let start = Instant::now();
    client
        .batch_execute(
            "SET maintenance_work_mem = '512MB'; CREATE INDEX record_vectors_1_nearest ON fetchwell.record_vectors_1
                 USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);
             ANALYZE fetchwell.record_vectors_1",
        )
        .await
        .unwrap();
    let built = start.elapsed().as_secs_f64();
    let sizes = "SELECT pg_table_size('fetchwell.record_vectors_1'), pg_relation_size('fetchwell.record_vectors_1_nearest')";
    let sizes = client.query_one(sizes, &[]).await.unwrap();
    let bytes = |at: usize| sizes.get::<_, i64>(at);
    println!(
        "\nPostgreSQL: loaded in {loaded:.0} s, index built in {built:.0} s; table {} bytes, index {} bytes\n",
        bytes(0),
        bytes(1)
    );
}

/// Returns the nearest records, the nearest first.
async fn search(client: &Client, query: &[f32], streams: Option<Vec<i64>>, is_indexed: bool) -> Vec<i64> {
    let vector = SqlVector(query);
    let sql = if is_indexed {
        client.batch_execute(SETTINGS).await.unwrap();
        "SELECT record FROM (
             SELECT v.record, v.embedding <=> $2 AS distance FROM fetchwell.record_vectors_1 v
             WHERE ($1::bigint[] IS NULL OR v.stream = ANY ($1)) ORDER BY v.embedding <=> $2 LIMIT 400) near
         ORDER BY distance LIMIT 50"
    } else {
        "WITH scored AS MATERIALIZED (
             SELECT v.record, v.embedding <=> $2 AS distance FROM fetchwell.record_vectors_1 v
             WHERE ($1::bigint[] IS NULL OR v.stream = ANY ($1)))
         SELECT record FROM scored ORDER BY distance LIMIT 50"
    };
    client
        .batch_execute(if is_indexed { "SET enable_sort = off" } else { "SET enable_sort = on" })
        .await
        .unwrap();
    let rows = client.query(sql, &[&streams, &vector]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

//! Reads the next records to embed, and splits them into chunks.
//!
//! The coverage of a generation is the version of the last embedded change of each stream. This is enough, because changes of
//! a stream become visible in the order of their versions. Streams of documents are left out: their chunks have vectors.

use std::collections::{HashMap, HashSet};

use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_ranking::meaning::{ChunkText, PlannedChunk, PlannedTexts, TextDigest, plan_chunks};
use fetchwell_source::contract::{BuildProgress, EmbeddedStreams, PostgresError};
use fetchwell_source::documents::DOCUMENTS_STREAM;
use tokio_postgres::{Client, Error, Row};

use super::generations::Generation;
use crate::extension::use_extension;
use crate::pool::PostgresPool;
use crate::tables::optional_text;
use crate::transaction::begin_read;

/// Minimum number of records that are read at once.
const MIN_RECORDS: usize = 32;

/// Maximum bytes of record text that are read at once.
const MAX_TEXT_BYTES: i64 = 4 * 1024 * 1024;

/// Version of the last embedded change of each stream, by the row ids of the streams.
pub(super) type Coverage = HashMap<i64, i64>;

/// Returns the SQL condition that a stream `s` is embedded. `parameter` stands for `EmbeddedStreams::names`.
pub(super) fn is_embedded_sql(parameter: &str) -> String {
    format!(
        "({parameter}::text[] IS NULL OR s.name = ANY ({parameter})) AND NOT (s.name = '{DOCUMENTS_STREAM}' AND EXISTS (
             SELECT 1 FROM fetchwell.projects p JOIN fetchwell.connections n ON n.connection_id = p.slug
             WHERE n.id = s.connection))"
    )
}

/// Reads the coverage of a generation.
pub(super) async fn coverage(client: &Client, generation: i64) -> Result<Coverage, Error> {
    let sql = "SELECT stream, version FROM fetchwell.vector_coverage WHERE generation = $1";
    let rows = client.query(sql, &[&generation]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// A changed record with its chunks.
#[derive(Debug, Default)]
pub(super) struct PlannedRecord {
    /// Row id of the record's words, to which its vectors refer; `None` for a deleted record.
    pub(super) row: Option<i64>,
    pub(super) chunks: Vec<PlannedChunk>,
}

/// The next changes of a stream, in the order of their versions.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) stream: i64,
    /// Version of the last of these changes; `None` if the coverage stays as it is.
    pub(super) version: Option<i64>,
    pub(super) records: Vec<PlannedRecord>,
    /// Texts of the chunks.
    pub(super) texts: PlannedTexts<Vec<f32>>,
}

impl Plan {
    /// Returns the amount of work of the plan.
    pub(super) fn progress(&self) -> BuildProgress {
        BuildProgress {
            records: self.records.iter().filter(|record| record.row.is_some()).count(),
            chunks: self.records.iter().map(|record| record.chunks.len()).sum(),
            embedded: self.texts.new.len(),
            pieces: self.texts.pieces,
        }
    }
}

/// Reader of the changes that a generation lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changes<'a> {
    pub(super) pool: &'a PostgresPool,
    /// Generation with the vectors of earlier texts; `None` before there is one.
    pub(super) generation: Option<&'a Generation>,
    pub(super) model: &'a dyn EmbeddingModel,
    pub(super) streams: &'a EmbeddedStreams,
}

impl Changes<'_> {
    /// Reads the next changes, until there are enough texts for one batch. Returns `None` if there are none.
    pub(super) async fn next(&self, covered: &Coverage) -> Result<Option<Plan>, PostgresError> {
        let mut database = self.pool.connection().await?;
        let failed = |error| self.pool.failure(&error);
        let transaction = begin_read(&mut database, self.pool.url()).await.map_err(failed)?;
        let client = transaction.client();
        let Some((stream, after)) = self.next_stream(client, covered).await.map_err(failed)? else {
            return Ok(None);
        };
        let sql = "SELECT version, data, id FROM (
                 SELECT version, data, id, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY version)
                     - coalesce(octet_length(data), 0) AS before
                 FROM (SELECT r.version, r.data, t.id FROM fetchwell.records r
                       LEFT JOIN fetchwell.texts t ON t.stream = r.stream AND t.key = r.key
                       WHERE r.stream = $1 AND r.version > $2 ORDER BY r.version LIMIT $3) r
             ) r WHERE before < $4 ORDER BY version";
        let limit = saturated::<i64>(self.model.batch().max(MIN_RECORDS));
        let rows = client.query(sql, &[&stream, &after, &limit, &MAX_TEXT_BYTES]).await.map_err(failed)?;
        self.plan(client, stream, &rows).await.map(Some).map_err(failed)
    }

    /// Plans one record again, by the row of its words. The coverage stays the same.
    pub(super) async fn record(&self, row: i64) -> Result<Plan, PostgresError> {
        let mut database = self.pool.connection().await?;
        let failed = |error| self.pool.failure(&error);
        let transaction = begin_read(&mut database, self.pool.url()).await.map_err(failed)?;
        let sql = "SELECT r.version, r.data, t.id FROM fetchwell.texts t
             JOIN fetchwell.records r ON r.stream = t.stream AND r.key = t.key WHERE t.id = $1";
        let rows = transaction.query(sql, &[&row]).await.map_err(failed)?;
        let plan = self.plan(transaction.client(), 0, &rows).await.map_err(failed)?;
        Ok(Plan { version: None, ..plan })
    }

    /// Returns the first stream with changes that the generation lacks, with the last version that it has.
    async fn next_stream(&self, client: &Client, covered: &Coverage) -> Result<Option<(i64, i64)>, Error> {
        let (streams, versions): (Vec<i64>, Vec<i64>) = covered.iter().unzip();
        let sql = format!(
            "SELECT s.id, coalesce(c.version, 0) FROM fetchwell.streams s
             LEFT JOIN unnest($1::bigint[], $2::bigint[]) AS c (stream, version) ON c.stream = s.id
             WHERE {} AND EXISTS (
                 SELECT 1 FROM fetchwell.records r WHERE r.stream = s.id AND r.version > coalesce(c.version, 0))
             ORDER BY s.id LIMIT 1",
            is_embedded_sql("$3")
        );
        let found = client.query_opt(&sql, &[&streams, &versions, &self.streams.names()]).await?;
        Ok(found.map(|row| (row.get(0), row.get(1))))
    }

    /// Splits records into chunks and looks for vectors of equal texts. Records after a full batch are left for the next
    /// one.
    async fn plan(&self, client: &Client, stream: i64, rows: &[Row]) -> Result<Plan, Error> {
        let mut plan = Plan { stream, ..Plan::default() };
        let split = |row: &Row| {
            let id: Option<i64> = row.try_get(2).ok().flatten();
            let data = optional_text(row, 1).filter(|_| id.is_some());
            let data = data.and_then(|data| serde_json::from_str::<RecordData>(data).ok());
            let (chunks, omitted) = data.map(|data| plan_chunks(&data, self.model)).unwrap_or_default();
            SplitRecord { row: id, version: row.try_get(0).unwrap_or_default(), chunks, omitted }
        };
        let split: Vec<SplitRecord> = rows.iter().map(split).collect();
        let known = self.known(client, &split).await?;
        for record in split {
            plan.texts.omitted += record.omitted;
            let chunks = plan.texts.add(record.chunks, |digest| known.get(digest).cloned());
            plan.records.push(PlannedRecord { row: record.row, chunks });
            plan.version = Some(record.version);
            if plan.texts.new.len() >= self.model.batch() {
                break;
            }
        }
        Ok(plan)
    }

    /// Returns the vectors of texts that the generation has.
    async fn known(
        &self,
        client: &Client,
        records: &[SplitRecord],
    ) -> Result<HashMap<TextDigest, Vec<f32>>, Error> {
        let Some(generation) = self.generation else { return Ok(HashMap::new()) };
        let digests: HashSet<TextDigest> =
            records.iter().flat_map(|record| &record.chunks).map(|text| text.chunk.digest).collect();
        if digests.is_empty() {
            return Ok(HashMap::new());
        }
        use_extension(client).await?;
        let digests: Vec<&[u8]> = digests.iter().map(<[u8; 16]>::as_slice).collect();
        let sql = format!(
            "SELECT DISTINCT ON (digest) digest, embedding::vector::real[] FROM {} WHERE digest = ANY ($1)",
            generation.table()
        );
        let rows = client.query(&sql, &[&digests]).await?;
        let known = |row: &Row| Some((row.get::<_, &[u8]>(0).try_into().ok()?, row.get(1)));
        Ok(rows.iter().filter_map(known).collect())
    }
}

/// A record that was split into chunks.
struct SplitRecord {
    row: Option<i64>,
    version: i64,
    chunks: Vec<ChunkText>,
    /// Bytes after the last chunk.
    omitted: usize,
}

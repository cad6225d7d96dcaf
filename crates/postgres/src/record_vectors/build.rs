//! Builds the vectors of the records of a database, one batch at a time.
//!
//! A batch is one transaction with the version up to which its stream is complete, so an interrupted build continues where it
//! stopped. A new model, and a rebuild, get a generation of their own beside the current one, which searches use until the
//! new one is complete.

use std::sync::Arc;

use fetchwell_embedding::EmbeddingModel;
use fetchwell_ranking::meaning::PlannedChunk;
use fetchwell_source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, PostgresError, StoreError, VectorError,
};
use tokio_postgres::{Client, Error};

use super::batch::store_batch;
use super::changes::{Changes, Coverage, Plan, coverage};
use super::generations::{Generation, remove_replaced};
use super::status::{count_chunks, count_missing};
use crate::pool::PostgresPool;
use crate::search::backfill::add_missing_words;
use crate::terms::{merge_terms, warn_unmerged};
use crate::transaction::{begin_read, begin_write};

/// Minimum number of missing records for dropping the index. The second is their share of all chunks, as a divisor.
const MANY_RECORDS: u64 = 2_000;
const MANY_SHARE: u64 = 3;

/// Builder of the vectors of records. The caller holds the lease of builds.
pub(super) struct RecordVectorBuilder {
    pool: PostgresPool,
    model: Arc<dyn EmbeddingModel>,
    streams: EmbeddedStreams,
    generation: Generation,
    covered: Coverage,
    /// Number of records with a text that the model refused.
    pub(super) refused: usize,
}

fn failed(pool: &PostgresPool, error: &Error) -> VectorError {
    StoreError::from(pool.failure(error)).into()
}

/// Returns the generations with the name and dimensions of a model. One that is being built comes before the current one.
async fn named(client: &Client, model: &dyn EmbeddingModel) -> Result<Vec<Generation>, Error> {
    let mut known = Generation::all(client).await?;
    known.retain(|known| {
        let is_named = known.model.name == model.id() && known.model.dimensions == model.dimensions();
        is_named && !known.is_replaced
    });
    known.sort_by_key(|known| (known.is_current, -known.id()));
    Ok(known)
}

/// Returns the work that a build has to do, without a call of the model.
pub(super) async fn estimate_records(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
    streams: &EmbeddedStreams,
) -> Result<BuildProgress, PostgresError> {
    let mut database = pool.connection().await?;
    let known = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        let known = match mode {
            BuildMode::All => None,
            BuildMode::Missing => named(transaction.client(), model).await?.into_iter().next(),
        };
        let covered = match &known {
            Some(known) => coverage(transaction.client(), known.id()).await?,
            None => Coverage::new(),
        };
        Ok((known, covered))
    };
    let (known, mut covered) = known.await.map_err(|error| pool.failure(&error))?;
    drop(database);
    let changes = Changes { pool, generation: known.as_ref(), model, streams };
    let mut progress = BuildProgress::default();
    if let Some(known) = &known {
        for row in refused(pool, known.id()).await? {
            progress.extend(changes.record(row).await?.progress());
        }
    }
    // Equal texts of different batches count once for each.
    while let Some(plan) = changes.next(&covered).await? {
        progress.extend(plan.progress());
        let Some(version) = plan.version else { break };
        covered.insert(plan.stream, version);
    }
    Ok(progress)
}

/// Returns the records of which the model refused a text, by the rows of their words.
async fn refused(pool: &PostgresPool, generation: i64) -> Result<Vec<i64>, PostgresError> {
    let mut database = pool.connection().await?;
    let rows = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        let sql = "SELECT record FROM fetchwell.refused_records WHERE generation = $1 ORDER BY record";
        transaction.query(sql, &[&generation]).await
    };
    let rows = rows.await.map_err(|error| pool.failure(&error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

impl RecordVectorBuilder {
    /// Continues the generation that this model made according to `probe`, or creates one.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or the stored model of this name returned other vectors.
    pub(super) async fn open(
        pool: &PostgresPool,
        model: Arc<dyn EmbeddingModel>,
        probe: &[f32],
        mode: BuildMode,
        streams: EmbeddedStreams,
    ) -> Result<Self, VectorError> {
        let mut database = pool.connection().await.map_err(StoreError::from)?;
        // Vectors refer to the row of a record's words, so missing rows are added first.
        while add_missing_words(&mut database, pool.url()).await.map_err(|error| failed(pool, &error))? {}
        warn_unmerged(merge_terms(&mut database, pool).await);
        let opened = async {
            let transaction = begin_write(&mut database, pool.url()).await?;
            let client = transaction.client();
            let known = match mode {
                BuildMode::All => Vec::new(),
                BuildMode::Missing => named(client, &*model).await?,
            };
            let same = known.iter().find(|known| known.model.made(model.id(), probe)).cloned();
            let generation = match same {
                Some(same) => same,
                None if !known.is_empty() => return Ok(None),
                None => Generation::create(client, model.id(), probe).await?,
            };
            let covered = coverage(client, generation.id()).await?;
            transaction.commit().await?;
            Ok(Some((generation, covered)))
        };
        let opened = opened.await.map_err(|error| failed(pool, &error))?;
        let (generation, covered) = opened.ok_or_else(|| VectorError::ModelChanged(model.id().to_owned()))?;
        Ok(Self { pool: pool.clone(), model, streams, generation, covered, refused: 0 })
    }

    /// Removes generations that are not needed any more. Drops the index before a build that changes many vectors.
    pub(super) async fn prepare(&mut self) -> Result<(), PostgresError> {
        let pool = self.pool.clone();
        let mut database = pool.connection().await?;
        let prepare = async {
            remove_replaced(&mut database, pool.url(), self.generation.id()).await?;
            let transaction = begin_read(&mut database, pool.url()).await?;
            let client = transaction.client();
            let missing = count_missing(client, self.generation.id(), &self.streams).await?;
            let chunks = count_chunks(client, &self.generation).await?;
            drop(transaction);
            if missing >= MANY_RECORDS && missing >= chunks / MANY_SHARE {
                self.generation.drop_index(&mut database, pool.url()).await?;
            }
            Ok(())
        };
        prepare.await.map_err(|error| pool.failure(&error))
    }

    /// Embeds the refused records again.
    pub(super) async fn retry_refused(&mut self) -> Result<(), VectorError> {
        for row in refused(&self.pool, self.generation.id()).await.map_err(StoreError::from)? {
            let plan = self.changes().record(row).await.map_err(StoreError::from)?;
            self.embed(plan).await?;
        }
        Ok(())
    }

    fn changes(&self) -> Changes<'_> {
        Changes {
            pool: &self.pool,
            generation: Some(&self.generation),
            model: &*self.model,
            streams: &self.streams,
        }
    }

    /// Embeds and stores the next batch. Returns `None` if nothing is missing.
    pub(super) async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError> {
        let plan = self.changes().next(&self.covered).await.map_err(StoreError::from)?;
        let Some(plan) = plan else { return Ok(None) };
        let (progress, stream, version) = (plan.progress(), plan.stream, plan.version);
        self.embed(plan).await?;
        if let Some(version) = version {
            self.covered.insert(stream, version);
        }
        Ok(Some(progress))
    }

    /// Embeds and stores one plan.
    async fn embed(&mut self, mut plan: Plan) -> Result<(), VectorError> {
        let records: Vec<&[PlannedChunk]> =
            plan.records.iter().map(|record| record.chunks.as_slice()).collect();
        plan.texts.embed(&*self.model, &records).await?;
        self.refused += store_batch(&self.pool, &self.generation, &plan).await.map_err(StoreError::from)?;
        Ok(())
    }

    /// Builds the index, and makes the generation the one that searches use.
    pub(super) async fn complete(&mut self) -> Result<(), PostgresError> {
        let pool = self.pool.clone();
        let mut database = pool.connection().await?;
        let complete = async {
            self.generation.create_index(&mut database, pool.url()).await?;
            if !self.generation.is_current {
                self.generation.make_current(&mut database, pool.url()).await?;
            }
            remove_replaced(&mut database, pool.url(), self.generation.id()).await
        };
        complete.await.map_err(|error| pool.failure(&error))
    }
}

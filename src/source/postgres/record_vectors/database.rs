//! Builds, state and removal of all vectors of a database, of records and of documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use tokio_postgres::Error;

use super::build::{RecordVectorBuilder, estimate_records, extend};
use super::generations::Generation;
use super::status::RecordVectorStatus;
use crate::embedding::{EmbeddingModel, probe_vector};
use crate::source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, PostgresError, StoreError, VectorError,
};
use crate::source::documents::DOCUMENTS_STREAM;
use crate::source::postgres::administration::Lease;
use crate::source::postgres::extension::problem;
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::store::PostgresStore;
use crate::source::postgres::transaction::{begin_read, begin_write};
use crate::source::postgres::vectors::build::{DocumentVectorBuilder, check_dimensions, estimate_documents};
use crate::source::postgres::vectors::lease::{is_taken, take_or_wait};
use crate::source::postgres::vectors::status::{DocumentVectorStatus, ModelStatus, remove_document_vectors};

/// State of the vectors of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostgresVectorStatus {
    /// Vectors of records.
    pub records: RecordVectorStatus,
    /// Models of the vectors of documents with their numbers of chunks, the first used one first.
    pub models: Vec<ModelStatus>,
    /// Model of an unfinished build that is to replace these, with its number of chunks so far.
    pub building: Option<ModelStatus>,
    /// Number of chunks of documents without a vector of a model.
    pub missing: u64,
    /// True if a process is embedding now.
    pub is_locked: bool,
    /// True if the index of the vectors of documents exists. Without it, searches read all vectors.
    pub is_indexed: bool,
}

impl PostgresVectorStatus {
    /// Returns the number of chunks of documents that a build with a model has to embed.
    pub(super) fn missing_documents(&self, model: &str) -> u64 {
        let all = self.missing + self.models.iter().map(|known| known.chunks).sum::<u64>();
        let named = |known: &&ModelStatus| known.model == model;
        // While a rebuild with this model is unfinished, its earlier vectors do not count.
        let is_building = self.building.as_ref().is_some_and(|building| named(&building));
        let made = self.models.iter().filter(named).filter(|_| !is_building).map(|known| known.chunks);
        all.saturating_sub(made.sum())
    }
}

/// Builder of the vectors of a database. Holds their lease.
pub struct PostgresVectorBuilder {
    pool: PostgresPool,
    model: Arc<dyn EmbeddingModel>,
    probe: Vec<f32>,
    mode: BuildMode,
    streams: EmbeddedStreams,
    lease: Lease,
}

impl std::fmt::Debug for PostgresVectorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresVectorBuilder").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Checks that a database can have vectors.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector.
pub(super) async fn check_extension(pool: &PostgresPool) -> Result<(), PostgresError> {
    let mut database = pool.connection().await?;
    let found = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        problem(transaction.client()).await
    };
    match found.await.map_err(|error| pool.failure(&error))? {
        None => Ok(()),
        Some(problem) => Err(PostgresError::NoPgvector { database: pool.url().to_string(), problem }),
    }
}

/// Checks that vectors of a model fit the documents of a database, if documents are embedded.
async fn check_model(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    streams: &EmbeddedStreams,
) -> Result<(), VectorError> {
    check_extension(pool).await.map_err(StoreError::from)?;
    if streams.contains(DOCUMENTS_STREAM) { check_dimensions(pool, model.dimensions()).await } else { Ok(()) }
}

/// Returns the work that a build has to do, without a call of the model.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector, or has documents for which the model has other dimensions.
pub async fn estimate_postgres_build(
    pool: &PostgresPool,
    model: &dyn EmbeddingModel,
    mode: BuildMode,
    streams: &EmbeddedStreams,
) -> Result<BuildProgress, VectorError> {
    check_model(pool, model, streams).await?;
    let mut progress = estimate_records(pool, model, mode, streams).await.map_err(StoreError::from)?;
    if streams.contains(DOCUMENTS_STREAM) {
        let documents = estimate_documents(pool, model, mode).await.map_err(StoreError::from)?;
        extend(&mut progress, documents.progress);
    }
    Ok(progress)
}

/// Returns the state of the vectors of a database.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector.
pub async fn postgres_vector_status(
    pool: &PostgresPool,
    streams: &EmbeddedStreams,
) -> Result<PostgresVectorStatus, VectorError> {
    check_extension(pool).await.map_err(StoreError::from)?;
    let mut database = pool.connection().await.map_err(StoreError::from)?;
    let status = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        let records = RecordVectorStatus::read(transaction.client(), streams).await?;
        Ok((records, DocumentVectorStatus::read(transaction.client()).await?))
    };
    let status = status.await.map_err(|error: Error| StoreError::from(pool.failure(&error)));
    let (records, DocumentVectorStatus { models, building, missing, is_indexed }) = status?;
    let is_locked = is_taken(pool).await.map_err(StoreError::from)?;
    Ok(PostgresVectorStatus { records, models, building, missing, is_locked, is_indexed })
}

impl PostgresStore {
    /// Returns the state of the vectors of the database.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or has no pgvector.
    pub async fn vector_status(
        &self,
        streams: &EmbeddedStreams,
    ) -> Result<PostgresVectorStatus, VectorError> {
        postgres_vector_status(&self.pool, streams).await
    }
}

/// Removes the vectors of all records and documents. Returns false if there were none of a model.
///
/// # Errors
///
/// The database cannot be used, another process builds its vectors, or the role does not own them.
pub async fn remove_postgres_vectors(pool: &PostgresPool) -> Result<bool, VectorError> {
    check_extension(pool).await.map_err(StoreError::from)?;
    let lease = take_or_wait(pool).await?;
    let mut database = pool.connection().await.map_err(StoreError::from)?;
    let remove = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        let generations = Generation::all(transaction.client()).await?;
        drop(transaction);
        let mut is_complete = true;
        for generation in &generations {
            is_complete &= generation.remove(&mut database, pool.url()).await?;
        }
        let transaction = begin_write(&mut database, pool.url()).await?;
        let had_documents = remove_document_vectors(transaction.client()).await?;
        transaction.commit().await?;
        Ok((is_complete, !generations.is_empty() || had_documents))
    };
    let removed = remove.await.map_err(|error: Error| pool.failure(&error));
    lease.release().await;
    match removed.map_err(StoreError::from)? {
        (true, removed) => Ok(removed),
        // Another role owns a table, or a reader uses one.
        (false, _) => {
            let database = pool.url().to_string();
            Err(StoreError::from(PostgresError::VectorsInUse { database }).into())
        }
    }
}

impl PostgresVectorBuilder {
    /// Takes the lease of builds, and embeds one fixed text to recognize the model. Waits for the batch of another process
    /// to end.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used, the model does not fit the documents, or another process builds the vectors.
    pub async fn open(
        pool: &PostgresPool,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
        streams: EmbeddedStreams,
    ) -> Result<Self, VectorError> {
        check_model(pool, &*model, &streams).await?;
        let lease = take_or_wait(pool).await?;
        let probe = probe_vector(&*model).await?;
        Ok(Self { pool: pool.clone(), model, probe, mode, streams, lease })
    }

    /// Embeds what is missing, of records first. Calls `report` with the progress after each batch.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used, the build was stopped, or the model refused texts. Other records are embedded
    /// then, and earlier batches are kept.
    pub async fn build(
        self,
        stop: &AtomicBool,
        mut report: impl FnMut(BuildProgress),
    ) -> Result<BuildProgress, VectorError> {
        let (mut progress, mut refused) = (BuildProgress::default(), 0);
        let built = async {
            refused += self.build_records(stop, &mut progress, &mut report).await?;
            if self.streams.contains(DOCUMENTS_STREAM) {
                refused += self.build_documents(stop, &mut progress, &mut report).await?;
            }
            Ok::<(), VectorError>(())
        };
        let built = built.await;
        self.lease.release().await;
        built?;
        match refused {
            0 => Ok(progress),
            records => Err(VectorError::RefusedRecords { records }),
        }
    }

    async fn build_records(
        &self,
        stop: &AtomicBool,
        progress: &mut BuildProgress,
        report: &mut impl FnMut(BuildProgress),
    ) -> Result<usize, VectorError> {
        let (model, streams) = (Arc::clone(&self.model), self.streams.clone());
        let mut builder =
            RecordVectorBuilder::open(&self.pool, model, &self.probe, self.mode, streams).await?;
        builder.prepare().await.map_err(StoreError::from)?;
        let mut refused = builder.retry_refused().await?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(VectorError::Stopped);
            }
            let Some((batch, batch_refused)) = builder.batch().await? else { break };
            extend(progress, batch);
            refused += batch_refused;
            report(*progress);
        }
        builder.complete().await.map_err(StoreError::from)?;
        Ok(refused)
    }

    async fn build_documents(
        &self,
        stop: &AtomicBool,
        progress: &mut BuildProgress,
        report: &mut impl FnMut(BuildProgress),
    ) -> Result<usize, VectorError> {
        let work = estimate_documents(&self.pool, &*self.model, self.mode).await;
        // `open` refuses a model of other dimensions, which is no error in a database without documents.
        if !work.map_err(StoreError::from)?.is_needed {
            return Ok(0);
        }
        let model = Arc::clone(&self.model);
        let mut builder = DocumentVectorBuilder::open(&self.pool, model, &self.probe, self.mode).await?;
        builder.prepare().await.map_err(StoreError::from)?;
        let before = *progress;
        let built = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(VectorError::Stopped);
            }
            match builder.batch().await {
                Ok(true) => {
                    *progress = before;
                    extend(progress, builder.progress());
                    report(*progress);
                }
                Ok(false) => break Ok(builder.refused()),
                Err(error) => break Err(error),
            }
        };
        builder.complete(built.is_ok()).await.map_err(StoreError::from)?;
        built
    }
}

//! Builds, state and removal of all vectors of a database, of records and of documents.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_embedding::{EmbeddingModel, probe_vector};
use fetchwell_source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, PostgresError, StoreError, StoreVersion, VectorError,
    VectorStatus,
};
use fetchwell_source::documents::DOCUMENTS_STREAM;
use fetchwell_source::vectors::{StoreVectors, VectorBuild};
use tokio_postgres::Error;

use super::build::estimate_records;
use super::generations::Generation;
use super::status::record_vector_status;
use super::steps::{BuildSteps, LeasedBuild};
use crate::extension::problem;
use crate::pool::PostgresPool;
use crate::store::PostgresStore;
use crate::transaction::{begin_read, begin_write};
use crate::vectors::build::{check_dimensions, estimate_documents};
use crate::vectors::lease::{is_taken, take, take_or_wait};
use crate::vectors::status::{document_vector_status, remove_document_vectors};

/// Vectors of a database, of records and of documents.
pub struct PostgresVectors {
    pool: PostgresPool,
    streams: EmbeddedStreams,
    /// Build in steps; dropped by an error and at its end.
    steps: Option<BuildSteps>,
}

impl fmt::Debug for PostgresVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresVectors").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Checks that a database can have vectors.
///
/// # Errors
///
/// The database cannot be used, or has no pgvector.
async fn check_extension(pool: &PostgresPool) -> Result<(), PostgresError> {
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

/// Returns the state of the vectors of a database.
async fn vector_status(pool: &PostgresPool, streams: &EmbeddedStreams) -> Result<VectorStatus, VectorError> {
    check_extension(pool).await.map_err(StoreError::from)?;
    let mut database = pool.connection().await.map_err(StoreError::from)?;
    let status = async {
        let transaction = begin_read(&mut database, pool.url()).await?;
        let client = transaction.client();
        let records = record_vector_status(client, streams).await?;
        let documents = document_vector_status(client, streams.contains(DOCUMENTS_STREAM)).await?;
        Ok(VectorStatus { documents: Some(documents), ..records })
    };
    let status = status.await.map_err(|error: Error| StoreError::from(pool.failure(&error)))?;
    let is_locked = is_taken(pool).await.map_err(StoreError::from)?;
    Ok(VectorStatus { is_locked, ..status })
}

impl PostgresStore {
    /// Returns the state of the vectors of the database.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or has no pgvector.
    pub async fn vector_status(&self, streams: &EmbeddedStreams) -> Result<VectorStatus, VectorError> {
        vector_status(&self.pool, streams).await
    }
}

impl PostgresVectors {
    /// Creates the vectors of a database of which some streams are embedded. Nothing is opened.
    #[must_use]
    pub fn new(pool: PostgresPool, streams: EmbeddedStreams) -> Self {
        Self { pool, streams, steps: None }
    }

    /// Checks that the database can have vectors, and that those of a model fit its documents, if documents are embedded.
    async fn check_model(&self, model: &dyn EmbeddingModel) -> Result<(), VectorError> {
        check_extension(&self.pool).await.map_err(StoreError::from)?;
        if self.streams.contains(DOCUMENTS_STREAM) {
            check_dimensions(&self.pool, model.dimensions()).await?;
        }
        Ok(())
    }

    /// Recognizes the model by its vector of the fixed text. The caller holds the lease.
    async fn begin_steps(
        &self,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<BuildSteps, VectorError> {
        let probe = probe_vector(&*model).await?;
        let (pool, streams) = (self.pool.clone(), self.streams.clone());
        let (records, documents, drops_indexes) = (None, None, false);
        Ok(BuildSteps { pool, model, probe, mode, streams, drops_indexes, records, documents, refused: 0 })
    }

    async fn locked_step(
        &mut self,
        model: &Arc<dyn EmbeddingModel>,
    ) -> Result<Option<BuildProgress>, VectorError> {
        let mut steps = match self.steps.take() {
            Some(steps) => steps,
            None => {
                self.check_model(&**model).await?;
                self.begin_steps(Arc::clone(model), BuildMode::Missing).await?
            }
        };
        let Some(batch) = steps.batch().await? else { return Ok(None) };
        // Another process can change the generations of records between two steps.
        steps.records = None;
        // Chunks of documents count as missing records.
        let records = if steps.documents.is_some() { batch.chunks } else { batch.records };
        self.steps = Some(steps);
        Ok(Some(BuildProgress { records, ..batch }))
    }
}

#[async_trait]
impl StoreVectors for PostgresVectors {
    async fn version(&mut self) -> Result<StoreVersion, VectorError> {
        let mut database = self.pool.connection().await.map_err(StoreError::from)?;
        let version = async {
            let transaction = begin_read(&mut database, self.pool.url()).await?;
            let sql = "SELECT uuid, version FROM fetchwell.store WHERE id = 1";
            let row = transaction.query_one(sql, &[]).await?;
            Ok(StoreVersion::new(row.get(0), row.get(1)))
        };
        Ok(version.await.map_err(|error| StoreError::from(self.pool.failure(&error)))?)
    }

    async fn status(&self) -> Result<VectorStatus, VectorError> {
        vector_status(&self.pool, &self.streams).await
    }

    async fn estimate(
        &self,
        model: &dyn EmbeddingModel,
        mode: BuildMode,
    ) -> Result<BuildProgress, VectorError> {
        self.check_model(model).await?;
        let pool = &self.pool;
        let mut work = estimate_records(pool, model, mode, &self.streams).await.map_err(StoreError::from)?;
        if self.streams.contains(DOCUMENTS_STREAM) {
            work.extend(estimate_documents(pool, model, mode).await.map_err(StoreError::from)?.progress);
        }
        Ok(work)
    }

    async fn open_build(
        &self,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<Box<dyn VectorBuild>, VectorError> {
        self.check_model(&*model).await?;
        let lease = Some(take_or_wait(&self.pool).await?);
        let steps = BuildSteps { drops_indexes: true, ..self.begin_steps(model, mode).await? };
        Ok(Box::new(LeasedBuild { steps, lease }))
    }

    async fn step(&mut self, model: &Arc<dyn EmbeddingModel>) -> Result<Option<BuildProgress>, VectorError> {
        let lease = take(&self.pool).await?;
        let done = self.locked_step(model).await;
        lease.release().await;
        done
    }

    async fn remove(&self) -> Result<bool, VectorError> {
        remove_vectors(&self.pool).await
    }
}

/// Removes the vectors of all records and documents. Returns false if there were none of a model.
async fn remove_vectors(pool: &PostgresPool) -> Result<bool, VectorError> {
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

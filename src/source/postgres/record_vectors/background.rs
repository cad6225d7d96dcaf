//! Builds vectors in the background of a server, one batch at a time. Between batches the lease is free for commands and for
//! other replicas.

use std::sync::Arc;

use super::build::RecordVectorBuilder;
use super::database::{check_extension, postgres_vector_status};
use crate::embedding::{EmbeddingModel, probe_vector};
use crate::source::contract::{
    BuildMode, BuildProgress, EMBEDDING_DIMENSIONS, EmbeddedStreams, GenerationStatus, PostgresError,
    StoreError, StoreVersion, VectorError, VectorStatus,
};
use crate::source::documents::DOCUMENTS_STREAM;
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::transaction::begin_read;
use crate::source::postgres::vectors::build::{DocumentVectorBuilder, check_dimensions, estimate_documents};
use crate::source::postgres::vectors::lease::take;

/// Builder of the vectors of a database in steps. Each step embeds one batch.
pub struct PostgresBackgroundBuild {
    pool: PostgresPool,
    streams: EmbeddedStreams,
    /// Vector of the fixed text; cleared by an error and at the end of a build.
    probe: Option<Vec<f32>>,
    /// Builder of the documents, after all records have their vectors.
    documents: Option<DocumentVectorBuilder>,
}

impl std::fmt::Debug for PostgresBackgroundBuild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresBackgroundBuild").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl PostgresBackgroundBuild {
    /// Creates the builder for some streams of a database.
    #[must_use]
    pub fn new(pool: PostgresPool, streams: EmbeddedStreams) -> Self {
        Self { pool, streams, probe: None, documents: None }
    }

    /// Returns the version of the store.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn version(&self) -> Result<StoreVersion, StoreError> {
        let mut database = self.pool.connection().await?;
        let version = async {
            let transaction = begin_read(&mut database, self.pool.url()).await?;
            let sql = "SELECT uuid, version FROM fetchwell.store WHERE id = 1";
            let row = transaction.query_one(sql, &[]).await?;
            Ok(StoreVersion::new(row.get(0), row.get(1)))
        };
        Ok(version.await.map_err(|error| self.pool.failure(&error))?)
    }

    /// Returns the state of the vectors. Chunks of documents without vectors count as missing records.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or has no pgvector.
    pub async fn status(&self) -> Result<VectorStatus, VectorError> {
        let status = postgres_vector_status(&self.pool, &self.streams).await?;
        let missing = |model: &str| status.missing_documents(model);
        let with_documents = |generation: &GenerationStatus| {
            let documents =
                if self.streams.contains(DOCUMENTS_STREAM) { missing(&generation.model) } else { 0 };
            GenerationStatus { missing_records: generation.missing_records + documents, ..generation.clone() }
        };
        Ok(VectorStatus {
            current: status.records.current.as_ref().map(with_documents),
            building: status.records.building.as_ref().map(with_documents),
            is_locked: status.is_locked,
            bytes: status.records.bytes,
        })
    }

    /// Embeds and stores one batch. Returns `None` if nothing is missing. The first step of a build checks the model.
    ///
    /// # Errors
    ///
    /// The database or the model cannot be used, the model has changed or does not fit the documents, or another process
    /// builds the vectors.
    pub async fn step(
        &mut self,
        model: &Arc<dyn EmbeddingModel>,
    ) -> Result<Option<BuildProgress>, VectorError> {
        let lease = take(&self.pool).await?;
        let done = self.locked_step(model).await;
        lease.release().await;
        if !matches!(done, Ok(Some(_))) {
            (self.probe, self.documents) = (None, None);
        }
        done
    }

    async fn locked_step(
        &mut self,
        model: &Arc<dyn EmbeddingModel>,
    ) -> Result<Option<BuildProgress>, VectorError> {
        let probe = match &self.probe {
            Some(probe) => probe.clone(),
            None => {
                check_extension(&self.pool).await.map_err(StoreError::from)?;
                if self.streams.contains(DOCUMENTS_STREAM) {
                    check_dimensions(&self.pool, model.dimensions()).await?;
                }
                let probe = probe_vector(&**model).await?;
                self.probe.insert(probe).clone()
            }
        };
        if self.documents.is_none() {
            let (pool, streams) = (&self.pool, self.streams.clone());
            let mut builder =
                RecordVectorBuilder::open(pool, Arc::clone(model), &probe, BuildMode::Missing, streams)
                    .await?;
            if let Some((batch, _refused)) = builder.batch().await? {
                return Ok(Some(batch));
            }
            builder.complete().await.map_err(StoreError::from)?;
            if !self.has_missing_documents(model).await.map_err(StoreError::from)? {
                return Ok(None);
            }
            let builder =
                DocumentVectorBuilder::open(pool, Arc::clone(model), &probe, BuildMode::Missing).await?;
            self.documents = Some(builder);
        }
        let Some(builder) = &mut self.documents else { return Ok(None) };
        let before = builder.progress();
        if builder.batch().await? {
            let now = builder.progress();
            return Ok(Some(BuildProgress {
                records: now.chunks.saturating_sub(before.chunks),
                chunks: now.chunks.saturating_sub(before.chunks),
                embedded: now.embedded.saturating_sub(before.embedded),
                pieces: now.pieces.saturating_sub(before.pieces),
            }));
        }
        builder.complete(true).await.map_err(StoreError::from)?;
        Ok(None)
    }

    async fn has_missing_documents(&self, model: &Arc<dyn EmbeddingModel>) -> Result<bool, PostgresError> {
        if !self.streams.contains(DOCUMENTS_STREAM) || model.dimensions() != EMBEDDING_DIMENSIONS {
            return Ok(false);
        }
        Ok(estimate_documents(&self.pool, &**model, BuildMode::Missing).await?.is_needed)
    }
}

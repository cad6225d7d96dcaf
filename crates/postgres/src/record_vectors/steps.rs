//! The batches of a build of all vectors of a database: of records first, then of documents.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_source::contract::{BuildMode, BuildProgress, EmbeddedStreams, StoreError, VectorError};
use fetchwell_source::documents::DOCUMENTS_STREAM;
use fetchwell_source::vectors::VectorBuild;

use super::build::RecordVectorBuilder;
use crate::administration::Lease;
use crate::pool::PostgresPool;
use crate::vectors::build::{DocumentVectorBuilder, estimate_documents};

/// The next batches of a build. The caller holds the lease of builds.
pub(super) struct BuildSteps {
    pub(super) pool: PostgresPool,
    pub(super) model: Arc<dyn EmbeddingModel>,
    /// Vector of the fixed text.
    pub(super) probe: Vec<f32>,
    pub(super) mode: BuildMode,
    pub(super) streams: EmbeddedStreams,
    /// True if the index is dropped before a build that changes many vectors.
    pub(super) drops_indexes: bool,
    pub(super) records: Option<RecordVectorBuilder>,
    /// Builder of the documents, after all records have their vectors.
    pub(super) documents: Option<DocumentVectorBuilder>,
    /// Number of refused records of builders that are complete.
    pub(super) refused: usize,
}

impl BuildSteps {
    async fn open_records(&self) -> Result<RecordVectorBuilder, VectorError> {
        let (model, streams) = (Arc::clone(&self.model), self.streams.clone());
        RecordVectorBuilder::open(&self.pool, model, &self.probe, self.mode, streams).await
    }

    /// Opens the builder of the documents, if there is something to do.
    async fn open_documents(&self) -> Result<Option<DocumentVectorBuilder>, VectorError> {
        if !self.streams.contains(DOCUMENTS_STREAM) {
            return Ok(None);
        }
        let work = estimate_documents(&self.pool, &*self.model, self.mode).await;
        // `open` refuses a model of other dimensions, which is no error in a database without documents.
        if !work.map_err(StoreError::from)?.is_needed {
            return Ok(None);
        }
        let model = Arc::clone(&self.model);
        let documents = DocumentVectorBuilder::open(&self.pool, model, &self.probe, self.mode).await?;
        if self.drops_indexes {
            documents.prepare().await.map_err(StoreError::from)?;
        }
        Ok(Some(documents))
    }

    /// Embeds and stores the next batch. Returns `None` if nothing is missing.
    pub(super) async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError> {
        if self.documents.is_none() {
            let mut records = match self.records.take() {
                Some(records) => records,
                None => self.open_records().await?,
            };
            if let Some(batch) = records.batch().await? {
                self.records = Some(records);
                return Ok(Some(batch));
            }
            records.complete().await.map_err(StoreError::from)?;
            self.refused += records.refused;
            self.documents = self.open_documents().await?;
            if self.documents.is_some() {
                // The caller may stop here, before text of documents is embedded.
                return Ok(Some(BuildProgress::default()));
            }
        }
        let Some(documents) = &mut self.documents else { return Ok(None) };
        if let Some(batch) = documents.batch().await? {
            return Ok(Some(batch));
        }
        self.complete_documents(true).await?;
        Ok(None)
    }

    /// Ends the build of the documents. Searches use its vectors if it `is_whole`.
    async fn complete_documents(&mut self, is_whole: bool) -> Result<(), VectorError> {
        let Some(documents) = self.documents.take() else { return Ok(()) };
        self.refused += documents.refused();
        Ok(documents.complete(is_whole).await.map_err(StoreError::from)?)
    }
}

/// A build of a command, which holds the lease until its end.
pub(super) struct LeasedBuild {
    pub(super) steps: BuildSteps,
    pub(super) lease: Option<Lease>,
}

#[async_trait]
impl VectorBuild for LeasedBuild {
    async fn begin(&mut self) -> Result<(), VectorError> {
        let mut records = self.steps.open_records().await?;
        records.prepare().await.map_err(StoreError::from)?;
        records.retry_refused().await?;
        self.steps.records = Some(records);
        Ok(())
    }

    async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError> {
        self.steps.batch().await
    }

    async fn end(&mut self) -> Result<(), VectorError> {
        let ended = self.steps.complete_documents(false).await;
        if let Some(lease) = self.lease.take() {
            lease.release().await;
        }
        ended
    }

    fn refused(&self) -> usize {
        self.steps.refused
    }
}

//! The vectors of a store, for commands, and for a server that builds them in steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_embedding::EmbeddingModel;
use fetchwell_source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, StoreError, StoreVersion, VectorError, VectorStatus,
};
use fetchwell_source::vectors::{StoreVectors, VectorBuild};

use super::build::{LockedVectors, VectorBuilder, estimate_build, remove_vectors};
use super::file::vectors_path;
use super::lock::lock;
use super::probe::ModelProbe;
use super::status::{check_vectors, vector_status};
use crate::database::{Database, identity};

/// Vectors of a store in a file.
#[derive(Debug)]
pub struct SqliteVectors {
    path: PathBuf,
    streams: EmbeddedStreams,
    /// Open from the first read of its version on, because opening it takes longer than reading that.
    database: Option<Arc<Database>>,
    /// Probe of the model since the last error or end of a build.
    probe: Option<ModelProbe>,
}

impl SqliteVectors {
    /// Creates the vectors of a store of which some streams are embedded. Nothing is opened.
    #[must_use]
    pub fn new(store: &Path, streams: EmbeddedStreams) -> Self {
        Self { path: store.to_owned(), streams, database: None, probe: None }
    }

    fn database(&mut self) -> Result<Arc<Database>, StoreError> {
        if let Some(database) = &self.database {
            return Ok(Arc::clone(database));
        }
        let database = Arc::new(Database::open(&self.path)?);
        self.database = Some(Arc::clone(&database));
        Ok(database)
    }
}

#[async_trait]
impl StoreVectors for SqliteVectors {
    async fn version(&mut self) -> Result<StoreVersion, VectorError> {
        let (store, version) = self.database()?.read(identity)?;
        Ok(StoreVersion::new(store, version))
    }

    async fn status(&self) -> Result<VectorStatus, VectorError> {
        vector_status(&self.path, &self.streams)
    }

    async fn check(&self) -> Result<(), VectorError> {
        check_vectors(&self.path)
    }

    async fn estimate(
        &self,
        model: &dyn EmbeddingModel,
        mode: BuildMode,
    ) -> Result<BuildProgress, VectorError> {
        estimate_build(&self.path, model, mode, &self.streams)
    }

    async fn open_build(
        &self,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<Box<dyn VectorBuild>, VectorError> {
        Ok(Box::new(VectorBuilder::open(&self.path, model, mode, self.streams.clone()).await?))
    }

    async fn step(&mut self, model: &Arc<dyn EmbeddingModel>) -> Result<Option<BuildProgress>, VectorError> {
        let probe = self.probe.take();
        let database = self.database()?;
        let lock = lock(&vectors_path(&self.path))?;
        let probe = match probe {
            Some(probe) => probe,
            None => ModelProbe::new(&**model).await?,
        };
        let vectors = LockedVectors { database, store: &self.path, lock, streams: self.streams.clone() };
        let builder = VectorBuilder::locked(vectors, Arc::clone(model), &probe, BuildMode::Missing);
        let done = builder?.batch().await?;
        self.probe = done.is_some().then_some(probe);
        Ok(done)
    }

    async fn remove(&self) -> Result<bool, VectorError> {
        remove_vectors(&self.path).await
    }
}

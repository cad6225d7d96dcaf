//! Builds in small steps, for a server: between two batches the lock is free, so that a command can have it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::{LockedVectors, VectorBuilder};
use super::file::vectors_path;
use super::lock::lock;
use super::probe::ModelProbe;
use crate::embedding::EmbeddingModel;
use crate::source::contract::{
    BuildMode, BuildProgress, EmbeddedStreams, StoreError, StoreVersion, VectorError,
};
use crate::source::sqlite::database::{Database, identity};

/// A store that gets its vectors in steps. Only the version of the store is read until a step is made.
#[derive(Debug)]
pub struct BackgroundBuild {
    path: PathBuf,
    /// Open as long as the build, because opening it takes longer than reading its version.
    database: Arc<Database>,
    streams: EmbeddedStreams,
    /// Probe of the model since the last error or end of a build.
    probe: Option<ModelProbe>,
}

impl BackgroundBuild {
    /// Opens a store of which some streams are embedded.
    ///
    /// # Errors
    ///
    /// The store cannot be opened.
    pub fn open(store: &Path, streams: EmbeddedStreams) -> Result<Self, StoreError> {
        let database = Arc::new(Database::open(store)?);
        Ok(Self { path: store.to_owned(), database, streams, probe: None })
    }

    /// Returns the version of the store.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn version(&self) -> Result<StoreVersion, StoreError> {
        let (store, version) = self.database.read(identity)?;
        Ok(StoreVersion::new(store, version))
    }

    /// Embeds and stores one batch. Returns `None` if nothing is missing. The first step of a build checks the model.
    ///
    /// # Errors
    ///
    /// The store, its vectors or the model cannot be used, the model has changed, or another process builds the vectors.
    pub async fn step(
        &mut self,
        model: &Arc<dyn EmbeddingModel>,
    ) -> Result<Option<BuildProgress>, VectorError> {
        let probe = self.probe.take();
        let lock = lock(&vectors_path(&self.path))?;
        let probe = match probe {
            Some(probe) => probe,
            None => ModelProbe::new(&**model).await?,
        };
        let (database, streams) = (Arc::clone(&self.database), self.streams.clone());
        let vectors = LockedVectors { database, store: &self.path, lock, streams };
        let builder = VectorBuilder::locked(vectors, Arc::clone(model), &probe, BuildMode::Missing);
        let done = builder?.batch().await?;
        self.probe = done.is_some().then_some(probe);
        Ok(done)
    }
}

//! Builds of the vectors of a store, in one go for a command and in steps for a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_embedding::EmbeddingModel;
use tokio::time::{Instant, sleep};

use crate::contract::{BuildMode, BuildProgress, StoreVersion, VectorError, VectorStatus};

/// Maximum time that a command waits for the batch of another process. A server releases the lock after each batch.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Interval at which a command tries to get the lock. Shorter than the pause of a server between two batches.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Vectors of a store of which some streams are embedded. An error says that the store, its vectors or the model cannot be used.
#[async_trait]
pub trait StoreVectors: Send + Sync {
    /// Returns the version of the store, which stays open.
    async fn version(&mut self) -> Result<StoreVersion, VectorError>;

    /// Returns the state of the vectors.
    async fn status(&self) -> Result<VectorStatus, VectorError>;

    /// Checks vectors that can be damaged, before a command uses them.
    async fn check(&self) -> Result<(), VectorError> {
        Ok(())
    }

    /// Returns the work that a build has to do, without a call of the model.
    async fn estimate(
        &self,
        model: &dyn EmbeddingModel,
        mode: BuildMode,
    ) -> Result<BuildProgress, VectorError>;

    /// Locks the vectors for a build, and embeds one fixed text to recognize the model. Waits for the batch of another process.
    async fn open_build(
        &self,
        model: Arc<dyn EmbeddingModel>,
        mode: BuildMode,
    ) -> Result<Box<dyn VectorBuild>, VectorError>;

    /// Embeds and stores one batch. Returns `None` if nothing is missing. The first step of a build checks the model. Between
    /// two steps other processes can have the lock.
    async fn step(&mut self, model: &Arc<dyn EmbeddingModel>) -> Result<Option<BuildProgress>, VectorError>;

    /// Removes the vectors, damaged ones as well. Returns false if there were none.
    async fn remove(&self) -> Result<bool, VectorError>;
}

/// A build that holds the lock of the vectors.
#[async_trait]
pub trait VectorBuild: Send {
    /// Removes what earlier builds left, and embeds the refused records again.
    async fn begin(&mut self) -> Result<(), VectorError>;

    /// Embeds and stores the next batch. Returns `None` if nothing is missing.
    async fn batch(&mut self) -> Result<Option<BuildProgress>, VectorError>;

    /// Ends a build that is complete, or that was stopped or failed.
    async fn end(&mut self) -> Result<(), VectorError> {
        Ok(())
    }

    /// Returns the number of records with a text that the model refused.
    fn refused(&self) -> usize;
}

/// Embeds everything that is missing. Calls `report` after each batch with the work so far.
///
/// # Errors
///
/// The store, its vectors or the model cannot be used, the build was stopped, or the model refused texts. Other records are
/// embedded then, and earlier batches are kept.
pub async fn build_vectors(
    build: &mut dyn VectorBuild,
    stop: &AtomicBool,
    mut report: impl FnMut(BuildProgress),
) -> Result<BuildProgress, VectorError> {
    let mut progress = BuildProgress::default();
    let built = async {
        build.begin().await?;
        while !stop.load(Ordering::Relaxed) {
            let Some(batch) = build.batch().await? else { return Ok(()) };
            progress.extend(batch);
            report(progress);
        }
        Err(VectorError::Stopped)
    };
    let built = built.await;
    build.end().await?;
    built?;
    match build.refused() {
        0 => Ok(progress),
        records => Err(VectorError::RefusedRecords { records }),
    }
}

/// Takes the lock of the vectors, and waits for the batch of another process if that has it.
///
/// # Errors
///
/// Another process has it for too long, or `take` returns an error.
pub async fn wait_while_busy<Lock, Taken: Future<Output = Result<Lock, VectorError>>>(
    take: impl Fn() -> Taken,
) -> Result<Lock, VectorError> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        match take().await {
            Err(VectorError::Busy(_)) if Instant::now() < deadline => sleep(RETRY_INTERVAL).await,
            taken => return taken,
        }
    }
}

//! Builds of vectors while a server runs: new and changed records of its stores are embedded in the background.
//!
//! The builds have a thread of their own, because reading and splitting records takes time that calls would wait for. The
//! versions of the stores are read every few seconds, so records that any process imports are followed. After an error
//! the next attempt waits: as long as the service asks for, or longer with each error.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fetchwell_core::handle::SourceName;
use fetchwell_core::saturate::saturated;
use fetchwell_embedding::{EmbeddingError, EmbeddingModel};
use fetchwell_source::contract::{EmbeddedStreams, StoreVersion, VectorError};
use fetchwell_source::vectors::StoreVectors;
use fetchwell_telemetry::{EmbeddingState, Telemetry};
use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::super::embedding::{open_background_model, open_vectors, shown_streams};
use super::super::failure::Failure;
use super::super::imports::ImportStore;
use crate::config::{ConfiguredEmbedding, Environment, FileSettings};

/// Time from the start of a server to the first build. Some clients start a server for each call, and none of those builds.
const START_DELAY: Duration = Duration::from_secs(2);

/// Interval at which the versions of stores are read.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);

/// Minimum pause between two batches, in which another process can get the lock.
const MIN_STEP_PAUSE: Duration = Duration::from_millis(50);

/// Pause after which vectors that another process builds are looked at again.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// First pause after an error; it doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum pause after an error.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// Maximum pause that a service can ask for.
const MAX_REQUESTED_PAUSE: Duration = Duration::from_secs(3_600);

/// The builds of a server. They end with the server's token.
pub(crate) struct BackgroundBuilds {
    environment: Environment,
    telemetry: Telemetry,
    server: CancellationToken,
    running: Mutex<RunningBuilds>,
}

/// The builds that run now.
#[derive(Default)]
struct RunningBuilds {
    plan: Option<BuildPlan>,
    stop: CancellationToken,
}

/// The model and the stores of a configuration, by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BuildPlan {
    embedding: ConfiguredEmbedding,
    stores: Vec<PlannedStore>,
}

/// A store to build, with the streams that the configuration shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedStore {
    name: SourceName,
    place: ImportStore,
    streams: EmbeddedStreams,
}

impl BuildPlan {
    fn from_settings(settings: &FileSettings) -> Option<Self> {
        let embedding = settings.embedding.clone()?;
        let stores = settings.sources.iter().filter_map(|source| {
            let place = ImportStore::from_source(&source.place)?;
            let streams = shown_streams(settings, &place);
            Some(PlannedStore { name: source.name.clone(), place, streams })
        });
        Some(Self { embedding, stores: stores.collect() })
    }
}

impl BackgroundBuilds {
    /// Creates the builds of no store.
    pub(crate) fn new(environment: Environment, telemetry: Telemetry, server: CancellationToken) -> Self {
        Self { environment, telemetry, server, running: Mutex::default() }
    }

    /// Follows the stores of a configuration. Builds with other settings are stopped; unchanged ones go on.
    pub(crate) fn follow(&self, settings: &FileSettings) {
        let plan = BuildPlan::from_settings(settings);
        let mut running = self.running.lock();
        if plan == running.plan {
            return;
        }
        running.stop.cancel();
        *running = RunningBuilds { plan: plan.clone(), stop: self.server.child_token() };
        let stores = plan.iter().flat_map(|plan| &plan.stores);
        let names: Vec<&str> = stores.map(|store| store.name.as_str()).collect();
        self.telemetry.retain_embeddings(&names);
        let Some(plan) = plan else { return };
        if !plan.embedding.background {
            for PlannedStore { name, .. } in &plan.stores {
                self.telemetry
                    .update_embedding(name.as_str(), |build| build.state = EmbeddingState::Disabled);
            }
            return;
        }
        let (environment, telemetry) = (self.environment.clone(), self.telemetry.clone());
        let stop = running.stop.clone();
        let builds = move || run(plan, &environment, &telemetry, &stop);
        if let Err(error) = thread::Builder::new().name("embed".to_owned()).spawn(builds) {
            tracing::warn!(%error, "records are not embedded in the background: no thread can be started");
        }
    }
}

/// Builds until the token is cancelled. A batch in progress is dropped: nothing of it is stored, and it is embedded again.
fn run(plan: BuildPlan, environment: &Environment, telemetry: &Telemetry, stop: &CancellationToken) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!(%error, "records are not embedded in the background");
            return;
        }
    };
    runtime.block_on(async {
        let follower = Follower { embedding: plan.embedding, environment, telemetry };
        stop.run_until_cancelled(follower.follow(plan.stores)).await;
    });
    // A local model that computes a batch is not waited for.
    runtime.shutdown_background();
}

/// A store with the state of its builds.
struct FollowedStore {
    planned: PlannedStore,
    vectors: Option<Box<dyn StoreVectors>>,
    /// Version up to which all records are known to have vectors.
    complete: Option<StoreVersion>,
    attempt: u32,
    retry_at: Option<Instant>,
    /// Last error that was logged. It is not repeated.
    logged: Option<String>,
}

/// Reason why a build ended early.
enum BuildFault {
    Vectors(VectorError),
    /// The model cannot be opened, or its key cannot be read.
    Model(Failure),
}

impl From<VectorError> for BuildFault {
    fn from(error: VectorError) -> Self {
        Self::Vectors(error)
    }
}

impl BuildFault {
    /// Returns the code for `/health`.
    fn code(&self) -> &'static str {
        match self {
            Self::Vectors(error) => error.code(),
            Self::Model(_) => "model_unusable",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Vectors(error) => error.to_string(),
            Self::Model(failure) => failure.message.clone(),
        }
    }

    /// Returns the pause before the next attempt.
    fn pause(&self, attempt: u32) -> Duration {
        let backoff = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(MAX_PAUSE);
        match self {
            Self::Vectors(VectorError::Busy(_)) => BUSY_PAUSE,
            Self::Vectors(VectorError::Embedding(EmbeddingError::RateLimited {
                retry_after: Some(pause),
                ..
            })) => (*pause).clamp(FIRST_PAUSE, MAX_REQUESTED_PAUSE),
            _ => backoff,
        }
    }
}

/// Builds the vectors of stores, one store after the other.
struct Follower<'a> {
    embedding: ConfiguredEmbedding,
    environment: &'a Environment,
    telemetry: &'a Telemetry,
}

impl Follower<'_> {
    async fn follow(&self, stores: Vec<PlannedStore>) {
        let followed = |planned| FollowedStore {
            planned,
            vectors: None,
            complete: None,
            attempt: 0,
            retry_at: None,
            logged: None,
        };
        let mut stores: Vec<FollowedStore> = stores.into_iter().map(followed).collect();
        for store in &stores {
            self.telemetry.update_embedding(store.planned.name.as_str(), |_build| {});
        }
        sleep(START_DELAY).await;
        loop {
            for store in &mut stores {
                if store.retry_at.is_none_or(|at| Instant::now() >= at) {
                    self.attempt(store).await;
                }
            }
            sleep(FOLLOW_INTERVAL).await;
        }
    }

    /// Builds what a store lacks, and decides on the next attempt.
    async fn attempt(&self, store: &mut FollowedStore) {
        let name = store.planned.name.to_string();
        let Err(fault) = self.build(store).await else {
            (store.attempt, store.retry_at, store.logged) = (0, None, None);
            self.telemetry.update_embedding(&name, |build| {
                (build.state, build.missing_records, build.problem) = (EmbeddingState::Complete, 0, None);
            });
            return;
        };
        let pause = fault.pause(store.attempt);
        store.retry_at = Some(Instant::now() + pause);
        if matches!(fault, BuildFault::Vectors(VectorError::Busy(_))) {
            self.telemetry.update_embedding(&name, |build| build.state = EmbeddingState::Waiting);
            return;
        }
        store.attempt += 1;
        self.telemetry.update_embedding(&name, |build| {
            build.state = EmbeddingState::Failing;
            build.problem = Some(fault.code());
            build.failures += 1;
        });
        let message = fault.message();
        if store.logged.as_ref() != Some(&message) {
            tracing::warn!(source = name, "records are not embedded: {message}");
            store.logged = Some(message);
        }
    }

    /// Builds what a store lacks. Does nothing if the store has not changed since the last time.
    async fn build(&self, store: &mut FollowedStore) -> Result<(), BuildFault> {
        let vectors = match &mut store.vectors {
            Some(vectors) => vectors,
            empty => {
                let PlannedStore { place, streams, .. } = &store.planned;
                empty.insert(open_vectors(place, streams.clone(), self.environment)?)
            }
        };
        let version = vectors.version().await?;
        if store.complete.as_ref() == Some(&version) {
            return Ok(());
        }
        let name = store.planned.name.to_string();
        let status = vectors.status().await?;
        let current = match &status.current {
            Some(current) if status.building.is_none() => {
                let is_ours = self.embedding.settings.is_identity(&current.model);
                is_ours.map_err(VectorError::from)?.then_some(current)
            }
            _ => None,
        };
        let mut missing = status.building.as_ref().or(current).map(|generation| status.missing(generation));
        // A local model is not opened if there is nothing to embed.
        if current.is_some() && missing == Some(0) {
            store.complete = Some(version);
            return Ok(());
        }
        let model = open_background_model(&self.embedding, self.environment).map_err(BuildFault::Model)?;
        self.telemetry.update_embedding(&name, |build| {
            (build.state, build.missing_records) = (EmbeddingState::Building, missing.unwrap_or_default());
        });
        let mut embedded = 0;
        loop {
            let started = Instant::now();
            let Some(batch) = vectors.step(&model).await? else { break };
            embedded += batch.embedded;
            let (records, chunks) = (count(batch.records), count(batch.embedded));
            let left = match missing {
                Some(before) => before.saturating_sub(records),
                // The first batch of a model creates the generation that the missing records are counted by.
                None => {
                    let status = vectors.status().await?;
                    status.building.as_ref().map_or(0, |building| status.missing(building))
                }
            };
            missing = Some(left);
            self.telemetry.update_embedding(&name, |build| {
                build.missing_records = left;
                build.embedded_chunks += chunks;
            });
            sleep(step_pause(&model, started.elapsed())).await;
        }
        if embedded > 0 {
            tracing::info!(source = name, chunks = embedded, "records embedded");
        }
        store.complete = Some(version);
        Ok(())
    }
}

fn count(number: usize) -> u64 {
    saturated::<u64>(number)
}

/// Returns the pause after a batch. A local model uses all processors, and leaves them to calls for a part of the time.
fn step_pause(model: &Arc<dyn EmbeddingModel>, took: Duration) -> Duration {
    let share = if model.is_remote() { Duration::ZERO } else { took / 4 };
    share.max(MIN_STEP_PAUSE)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn pauses_follow_the_service_and_grow_with_each_error() {
        let limited = |retry_after| {
            let place = "models.example.com".to_owned();
            BuildFault::Vectors(EmbeddingError::RateLimited { place, retry_after }.into())
        };
        for (fault, attempt, expect) in [
            (limited(Some(Duration::from_secs(90))), 0, 90),
            (limited(Some(Duration::ZERO)), 0, 5),
            (limited(Some(Duration::from_secs(1_000_000))), 0, 3_600),
            (limited(None), 0, 5),
            (limited(None), 3, 40),
            (limited(None), u32::MAX, 300),
            (BuildFault::Vectors(VectorError::Busy(PathBuf::new())), 9, 5),
            (BuildFault::Model(Failure::new("no")), 1, 10),
        ] {
            assert_eq!(fault.pause(attempt).as_secs(), expect, "{attempt}");
        }
    }
}

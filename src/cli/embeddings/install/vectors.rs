//! The vectors of all stores of a configuration.

use std::fmt;

use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::{BuildMode, BuildProgress};
use serde_json::{Value, json};

use super::super::build::{counted, embed};
use super::configured::ModelConfig;
use crate::app::default_store::default_store;
use crate::app::embedding::{embedding_settings, open_embedding_model, vectors_of};
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::runtime;
use crate::config::Environment;

/// A store with what was embedded, or with the reason why not.
pub(in crate::cli) struct BuiltStore {
    store: String,
    result: Result<BuildProgress, String>,
}

impl BuiltStore {
    /// Returns true if the records were not embedded.
    pub(in crate::cli) fn has_failed(&self) -> bool {
        self.result.is_err()
    }

    /// Returns the store for JSON output.
    pub(super) fn json(&self) -> Value {
        match &self.result {
            Ok(done) => json!({"store": self.store, "chunks": done.chunks, "embedded": done.embedded}),
            Err(problem) => json!({"store": self.store, "problem": problem}),
        }
    }
}

impl fmt::Display for BuiltStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(done) => write!(
                f,
                "{}: {} chunks embedded; the vectors are complete. `fetchwell search` finds records by meaning, too.",
                self.store,
                counted(done.embedded)
            ),
            Err(problem) => write!(f, "{}: not embedded: {problem}", self.store),
        }
    }
}

/// Embeds the records of all stores of a configuration, or of the default store.
///
/// # Errors
///
/// The user stops the command. Failures of a store are in its result.
pub(in crate::cli) fn build_vectors(
    config: &ModelConfig,
    environment: &Environment,
) -> Result<Vec<BuiltStore>, Failure> {
    if !config.is_trusted() {
        note(&"no vectors are built: the configuration was only found, and is not trusted");
        return Ok(Vec::new());
    }
    let sources = &config.settings().sources;
    let mut stores: Vec<ImportStore> =
        sources.iter().filter_map(|source| ImportStore::from_source(&source.place)).collect();
    if sources.is_empty()
        && let Some(path) = default_store(environment)
    {
        stores.push(ImportStore::from_place(&path)?);
    }
    stores.retain(|store| match store {
        ImportStore::File(path) => path.exists(),
        ImportStore::Postgres(_) => true,
    });
    if stores.is_empty() {
        note(&"there are no records to embed yet; what is imported is embedded after its import");
    }
    let mut built = Vec::new();
    for store in stores {
        let result = match build_one(&store, config, environment) {
            Ok(done) => Ok(done),
            Err(failure) if failure.is_stop() => return Err(failure),
            Err(failure) => Err(failure.to_string()),
        };
        built.push(BuiltStore { store: store.to_string(), result });
    }
    Ok(built)
}

fn build_one(
    store: &ImportStore,
    config: &ModelConfig,
    environment: &Environment,
) -> Result<BuildProgress, Failure> {
    let model = open_embedding_model(embedding_settings(config.settings())?, environment)?;
    let vectors = vectors_of(store, config.settings(), environment)?;
    runtime()?.block_on(async {
        vectors.check().await?;
        let estimate = vectors.estimate(&*model, BuildMode::Missing).await?;
        embed(&*vectors, model, BuildMode::Missing, estimate).await
    })
}

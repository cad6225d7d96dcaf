//! Opening the embedding model of a configuration, for builds and for searches.

use std::sync::Arc;

use super::failure::Failure;
use super::secret::secret;
use crate::config::{ConfiguredEmbedding, Environment, FileSettings};
use crate::embedding::{EmbeddingModel, QueryEmbedder, open_model};

/// Returns the embedding settings of a configuration, or an error that says how to add them.
pub(crate) fn embedding_settings(settings: &FileSettings) -> Result<&ConfiguredEmbedding, Failure> {
    settings.embedding.as_ref().ok_or_else(|| {
        Failure::usage(
            &"no embedding model is configured; add [embedding] to a configuration file and name it with --config",
        )
    })
}

/// Opens a model with its key.
pub(crate) fn open_embedding_model(
    configured: &ConfiguredEmbedding,
    environment: &Environment,
) -> Result<Arc<dyn EmbeddingModel>, Failure> {
    let key =
        configured.api_key.as_ref().map(|place| secret(place, environment, "[embedding]")).transpose()?;
    Ok(open_model(&configured.settings, key)?)
}

/// What searches of stores by meaning need: the embedder of queries, with the configuration that it was made for.
#[derive(Debug, Clone)]
pub(crate) struct SearchEmbedding {
    configured: ConfiguredEmbedding,
    pub(crate) embedder: Arc<QueryEmbedder>,
}

impl SearchEmbedding {
    /// Creates the embedder of a configuration. The model is opened by the first query.
    pub(crate) fn new(configured: &ConfiguredEmbedding, environment: &Environment) -> Result<Self, Failure> {
        let key =
            configured.api_key.as_ref().map(|place| secret(place, environment, "[embedding]")).transpose()?;
        let settings = configured.settings.clone();
        let embedder = QueryEmbedder::new(move || open_model(&settings, key.clone()));
        Ok(Self { configured: configured.clone(), embedder: Arc::new(embedder) })
    }

    /// Returns true if the embedder was made for a configuration.
    pub(crate) fn is_of(&self, configured: Option<&ConfiguredEmbedding>) -> bool {
        configured == Some(&self.configured)
    }

    /// Returns the maximum number of bytes of the vectors of a store in memory.
    pub(crate) fn vector_memory(&self) -> usize {
        self.configured.vector_memory
    }
}

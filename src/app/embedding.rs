//! Opening the embedding model of a configuration.

use std::sync::Arc;

use super::failure::Failure;
use super::secret::secret;
use crate::config::{ConfiguredEmbedding, Environment, FileSettings};
use crate::embedding::{EmbeddingModel, open_model};

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

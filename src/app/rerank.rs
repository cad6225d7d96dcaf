//! Opening the reranker of a configuration.

use std::sync::Arc;

use fetchwell_core::terminal::note;
use fetchwell_embedding::{Reranker, open_reranker};
use fetchwell_source::Reranking;

use super::failure::Failure;
use super::secret::secret;
use crate::config::{ConfiguredRerank, Environment, FileSettings};

/// Returns the reranking of searches, or `None` without `[rerank]`. A reranker that cannot be opened is noted, because
/// searches work without it.
pub(crate) fn reranking(settings: &FileSettings, environment: &Environment) -> Option<Reranking> {
    let configured = settings.rerank.as_ref()?;
    match open_configured_reranker(configured, environment) {
        Ok(reranker) => Some(Reranking::new(configured.settings.name(), reranker, configured.timeout)),
        Err(failure) => {
            note(&format_args!("searches are not reranked: {failure}"));
            None
        }
    }
}

/// Opens a reranker with its key. Its model is read by the first search.
pub(crate) fn open_configured_reranker(
    configured: &ConfiguredRerank,
    environment: &Environment,
) -> Result<Arc<dyn Reranker>, Failure> {
    let key = configured.api_key.as_ref().map(|place| secret(place, environment, "[rerank]")).transpose()?;
    open_reranker(&configured.settings, key).map_err(|error| Failure::new(error.to_string()))
}

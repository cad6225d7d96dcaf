//! Embedding of the records that an import has added or changed.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::{BuildMode, PostgresError, StoreError, VectorError};

use super::build::{counted, described, embed};
use crate::app::embedding::{open_embedding_model, open_vectors, settings_beside_store, shown_streams};
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::config::Environment;

/// Embedding after an import.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EmbedArgs {
    /// A configuration file with [embedding]; the records are embedded after the import [default: fetchwell.toml in
    /// this folder, or else the one in your configuration folder]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Embed nothing after the import.
    #[arg(long)]
    no_embed: bool,

    /// Send the text to an embedding service on another machine. Without it, an estimate is printed.
    #[arg(long, conflicts_with = "no_embed")]
    yes: bool,
}

impl EmbedArgs {
    /// Returns the named configuration file.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Embeds the records of a store that have no vectors, if an embedding model is configured. Returns the number of
    /// embedded chunks, or `None` if nothing was sent to a model.
    pub(crate) async fn embed_imported(
        &self,
        store: &ImportStore,
        environment: &Environment,
    ) -> Result<Option<usize>, Failure> {
        if self.no_embed {
            return Ok(None);
        }
        let settings = settings_beside_store(self.config.as_deref(), environment)?;
        let Some(settings) = settings else { return Ok(None) };
        let Some(configured) = &settings.embedding else { return Ok(None) };
        let (model, mode) = (open_embedding_model(configured, environment)?, BuildMode::Missing);
        let vectors = open_vectors(store, shown_streams(&settings, store), environment)?;
        let estimate = match vectors.estimate(&*model, mode).await {
            // A database without pgvector has no vectors.
            Err(VectorError::Store(StoreError::Postgres(PostgresError::NoPgvector { .. }))) => {
                return Ok(None);
            }
            estimate => estimate?,
        };
        if estimate.records == 0 {
            return Ok(Some(0));
        }
        let may_send = configured.background || self.yes || !model.is_remote();
        if !may_send && estimate.embedded > 0 {
            note(&configured.settings.disclosure());
            note(&format_args!(
                "{}; nothing was sent: run `fetchwell embeddings build --yes`, or import with --yes",
                described(estimate)
            ));
            return Ok(None);
        }
        let done = embed(&*vectors, model, mode, estimate).await?;
        note(&format_args!("{} chunks embedded; the vectors are complete", counted(done.embedded)));
        Ok(Some(done.embedded))
    }
}

//! The arguments that name the store and connection of an import.

use std::path::PathBuf;

use clap::Args;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::SourceName;
use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_postgres::PostgresStore;
use fetchwell_source::Source;
use fetchwell_sqlite::SqliteStore;

use super::super::embeddings::EmbedArgs;
use crate::app::default_store::store_or_database_to_fill;
use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::secret::postgres_pool;
use crate::config::Environment;

/// The store and connection of the records.
#[derive(Debug, Clone, Args)]
pub(super) struct TargetArgs {
    /// The store: a file, or the URL of a PostgreSQL database; created if it does not exist [default: `FETCHWELL_STORE`,
    /// or else the default store]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
    /// The account or folder that the records belong to, such as `work-mail`.
    #[arg(long, value_name = "ID")]
    pub(super) connection: String,
    /// The kind of data [default: that of the manifest, or else the kind of the import]
    #[arg(long, value_name = "KEY")]
    pub(super) connector: Option<String>,
    /// A label for people, such as `Work mail`.
    #[arg(long, value_name = "LABEL")]
    pub(super) name: Option<String>,
    /// Write every rejected record and skipped file to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) embed: EmbedArgs,
}

impl TargetArgs {
    /// Returns the store. Notes that the default store is new, or that no command reads it.
    pub(super) fn store(&self, environment: &Environment) -> Result<ImportStore, Failure> {
        ImportStore::from_place(&store_or_database_to_fill(self.store.as_deref(), environment)?)
    }

    /// Returns a note if `--connector` differs from the connector of the existing connection, which is kept.
    pub(super) async fn connector_mismatch_note(
        &self,
        store: &ImportStore,
        environment: &Environment,
    ) -> Option<String> {
        let asked = self.connector.as_deref()?;
        let name: SourceName = "store".parse().ok()?;
        let store: Box<dyn Source> = match store {
            ImportStore::File(path) => Box::new(SqliteStore::open(name, path).ok()?),
            ImportStore::Postgres(url) => {
                Box::new(PostgresStore::new(name, postgres_pool(url, environment).ok()?, DEFAULT_DEADLINE))
            }
        };
        let connections = store.schema(&CallContext::default()).await.ok()?.connections;
        let known = connections.into_iter().find(|known| known.connection_id.as_str() == self.connection)?;
        let stays = known.connector_key.filter(|stays| stays != asked)?;
        Some(format!(
            "{} has the connector {stays}, which cannot change; --connector is for new connections",
            self.connection
        ))
    }
}

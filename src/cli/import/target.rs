//! The arguments that name the store and connection of an import.

use std::path::PathBuf;

use clap::Args;

use super::super::embeddings::EmbedArgs;
use crate::callers::CallContext;
use crate::source::Source;
use crate::source::store::Store;

/// The store and connection of the records.
#[derive(Debug, Clone, Args)]
pub(super) struct TargetArgs {
    /// The store; created if it does not exist.
    #[arg(long, value_name = "DB")]
    pub(super) store: PathBuf,
    /// The account or folder that the records belong to, such as `work-mail`.
    #[arg(long, value_name = "ID")]
    pub(super) connection: String,
    /// The kind of data [default: that of the manifest, or else the kind of the import]
    #[arg(long, value_name = "KEY")]
    pub(super) connector: Option<String>,
    /// A label for people, such as `Work mail`.
    #[arg(long, value_name = "LABEL")]
    pub(super) name: Option<String>,
    #[command(flatten)]
    pub(super) embed: EmbedArgs,
}

impl TargetArgs {
    /// Returns a note if `--connector` differs from the connector of the existing connection, which is kept.
    pub(super) async fn connector_mismatch_note(&self) -> Option<String> {
        let asked = self.connector.as_deref()?;
        let store = Store::open("store".parse().ok()?, &self.store).ok()?;
        let connections = store.schema(&CallContext::default()).await.ok()?.connections;
        let known = connections.into_iter().find(|known| known.connection_id.as_str() == self.connection)?;
        let stays = known.connector_key.filter(|stays| stays != asked)?;
        Some(format!(
            "{} has the connector {stays}, which cannot change; --connector is for new connections",
            self.connection
        ))
    }
}

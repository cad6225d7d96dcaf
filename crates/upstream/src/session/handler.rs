//! Refusal of all that a server may ask of a client: input, models and folders.

#![expect(deprecated, reason = "servers of earlier revisions still ask for roots")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorCode, ErrorData, Implementation, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

/// Handler of a server's requests and notifications.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    client_name: String,
    /// Number of times that the server said that its tools changed.
    pub(super) changes: Arc<AtomicU64>,
}

impl Handler {
    pub(super) fn new(client_name: String) -> Self {
        Self { client_name, changes: Arc::default() }
    }
}

impl ClientHandler for Handler {
    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client has no roots", None))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new(self.client_name.clone(), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
    }
}

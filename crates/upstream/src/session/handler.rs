//! Refusal of all that a server may ask of a client: input, models and folders.

#![expect(deprecated, reason = "servers of earlier revisions still ask for roots")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorCode, ErrorData, Implementation, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

/// Handler of a server's requests and notifications.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    client_name: String,
    /// True if the tools have changed since they were listed.
    pub(super) is_stale: Arc<AtomicBool>,
}

impl Handler {
    pub(super) fn new(client_name: String) -> Self {
        Self { client_name, is_stale: Arc::default() }
    }
}

impl ClientHandler for Handler {
    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client has no roots", None))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.is_stale.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new(self.client_name.clone(), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
    }
}

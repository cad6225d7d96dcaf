//! The Streamable HTTP service of one profile: stateless, JSON replies.

use std::net::IpAddr;
use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::telemetry::Telemetry;
use crate::tools::Profile;

/// The largest request, in bytes.
pub(crate) const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// What answers MCP requests over HTTP.
pub type McpService = StreamableHttpService<Server, NeverSessionManager>;

/// The service of `profile` at `address`, for requests to this machine from this machine: `Host` has to name it, and
/// `Origin`, where a browser sends one, too, so that no web page elsewhere can reach it by a DNS trick.
/// Cancelling `stop` drops calls in flight.
#[must_use]
pub fn mcp_service(
    profile: Profile,
    telemetry: Telemetry,
    address: IpAddr,
    stop: CancellationToken,
) -> McpService {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        .with_allowed_hosts(LOOPBACK_NAMES.map(str::to_owned).into_iter().chain([address.to_string()]))
        .with_allowed_origins(
            LOOPBACK_NAMES.iter().flat_map(|name| [format!("http://{name}:*"), format!("https://{name}:*")]),
        )
        .enforce_origin_validation()
        .with_cancellation_token(stop);
    let server = Server::of_requests(profile, telemetry);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

/// The names this machine has for itself.
pub(crate) const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

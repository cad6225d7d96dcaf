//! Browsers on this machine.

use axum::http::{HeaderName, HeaderValue, Method, header, request};
use tower_http::cors::{AllowOrigin, CorsLayer};
use url::Url;

use crate::mcp::LOOPBACK_NAMES;

/// Lets pages served from this machine (an MCP inspector, say) call the endpoints. Other origins get no
/// permission here and a refusal behind.
pub(super) fn from_this_machine() -> CorsLayer {
    let is_local = |origin: &HeaderValue, _: &request::Parts| origin.to_str().is_ok_and(is_loopback);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_local))
        .allow_methods([Method::POST])
        .allow_headers([
            header::CONTENT_TYPE,
            header::ACCEPT,
            header::AUTHORIZATION,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("last-event-id"),
        ])
}

fn is_loopback(origin: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    matches!(origin.scheme(), "http" | "https")
        && origin.host_str().is_some_and(|host| LOOPBACK_NAMES.contains(&host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for local in ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(is_loopback(local), "{local}");
        }
        for foreign in [
            "http://localhost.evil.example",
            "https://example.com",
            "null",
            "file://",
            "http://127.0.0.1.nip.io",
        ] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }
}

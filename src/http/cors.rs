//! Browsers on this machine.

use axum::http::{HeaderName, HeaderValue, Method, header, request};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::api::{CONTEXT_BUDGET, ORIGINAL_TOKENS, RETURNED_TOKENS};
use super::rate_limit::{LIMIT, REMAINING, RESET};
use super::request_id::{CORRELATION_ID, REQUEST_ID, X_REQUEST_ID};
use super::this_machine::is_local_origin;

/// Lets pages served from this machine (an MCP inspector, say) call the endpoints. Other origins get no
/// permission here and a refusal behind.
pub(super) fn from_this_machine() -> CorsLayer {
    let is_local = |origin: &HeaderValue, _: &request::Parts| origin.to_str().is_ok_and(is_local_origin);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_local))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            header::CONTENT_TYPE,
            header::ACCEPT,
            header::AUTHORIZATION,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("last-event-id"),
            REQUEST_ID,
            CORRELATION_ID,
            X_REQUEST_ID,
            HeaderName::from_static(CONTEXT_BUDGET),
        ])
        .expose_headers([
            REQUEST_ID,
            CORRELATION_ID,
            header::RETRY_AFTER,
            LIMIT,
            REMAINING,
            RESET,
            ORIGINAL_TOKENS,
            RETURNED_TOKENS,
        ])
}

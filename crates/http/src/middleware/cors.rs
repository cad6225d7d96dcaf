//! CORS: answers the preflight requests of browsers.

use axum::http::{HeaderName, HeaderValue, Method, header, request};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::check_host::AllowedNames;
use crate::headers::{
    CONTEXT_BUDGET, CORRELATION_ID, LAST_EVENT_ID, ORIGINAL_TOKENS, RATE_LIMIT, RATE_LIMIT_REMAINING,
    RATE_LIMIT_RESET, REQUEST_ID, RERANKED, RETURNED_TOKENS, SEARCH_ID, SEARCH_WARNING, X_REQUEST_ID,
};

/// Allows pages of allowed origins, such as an MCP inspector on this machine, to call the endpoints. Other origins
/// get no CORS headers, and their requests are refused by the `Origin` check.
pub(crate) fn from_origins(names: AllowedNames) -> CorsLayer {
    let is_allowed = move |origin: &HeaderValue, _: &request::Parts| names.allow_origin(origin);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_allowed))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::ACCEPT,
            header::AUTHORIZATION,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            HeaderName::from_static("mcp-session-id"),
            LAST_EVENT_ID,
            REQUEST_ID,
            CORRELATION_ID,
            X_REQUEST_ID,
            CONTEXT_BUDGET,
        ])
        .expose_headers([
            REQUEST_ID,
            CORRELATION_ID,
            header::RETRY_AFTER,
            header::WWW_AUTHENTICATE,
            HeaderName::from_static("mcp-protocol-version"),
            RATE_LIMIT,
            RATE_LIMIT_REMAINING,
            RATE_LIMIT_RESET,
            ORIGINAL_TOKENS,
            RETURNED_TOKENS,
            SEARCH_ID,
            RERANKED,
            SEARCH_WARNING,
        ])
}

//! Names of HTTP headers that the `http` crate does not define, and what `Accept` says of a client.

use axum::http::{HeaderMap, HeaderName, header};

/// Headers with the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
pub(crate) const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Header with the id of a document search, by which feedback names it.
pub(crate) const SEARCH_ID: HeaderName = HeaderName::from_static("search-id");

/// Header with the reranker of a document search, or `none`.
pub(crate) const RERANKED: HeaderName = HeaderName::from_static("reranked");

/// Header with the reasons why the answer to a document search is less than was asked for.
pub(crate) const SEARCH_WARNING: HeaderName = HeaderName::from_static("search-warning");

/// Header with the id of the last event that a client received.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Header with which a browser says how it uses the response.
pub(crate) const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Header with which a browser says whether a request is from a page of the same origin.
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Header that tells a reverse proxy not to hold events back.
pub(crate) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Header with the number of requests that a client may make at once.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");

/// Header with the number of requests that a client may make now.
pub(crate) const RATE_LIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");

/// Header with the number of seconds until the bucket is full again.
pub(crate) const RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Header with which a caller of `/api/v1` asks for the size of the response without any shaping.
pub(crate) const CONTEXT_BUDGET: HeaderName = HeaderName::from_static("x-context-budget");

/// Header with the number of tokens that the response would take without any shaping.
pub(crate) const ORIGINAL_TOKENS: HeaderName = HeaderName::from_static("x-context-original-tokens");

/// Header with the number of tokens that the response takes.
pub(crate) const RETURNED_TOKENS: HeaderName = HeaderName::from_static("x-context-returned-tokens");

/// Returns true if the client is a browser that shows the response: programs accept no HTML by name.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.map(str::to_ascii_lowercase).any(|value| value.contains("text/html"))
}

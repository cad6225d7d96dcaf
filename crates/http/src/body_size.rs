//! Sizes of response bodies, as telemetry records them.

use axum::body::HttpBody;
use axum::http::Method;
use axum::response::Response;

/// Returns the number of bytes of a complete body, or 0 if it is unknown.
pub(crate) fn size_of(response: &Response) -> usize {
    response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
}

/// Returns the number of body bytes that are sent, which is 0 for `HEAD`.
pub(crate) fn sent_bytes(method: &Method, body: usize) -> usize {
    if *method == Method::HEAD { 0 } else { body }
}

//! Formats of the error responses of middleware, by the API that a path belongs to.

use axum::response::Response;

use super::middleware::refusal::{Refusal, RefusedRequest};
use super::{api, mcp, v1};

/// Renders a refusal of a request. Paths that belong to no API get the format of `/api/v1`.
pub(crate) fn render(refusal: &Refusal, request: &RefusedRequest<'_>) -> Response {
    let path = request.path;
    if path == "/mcp" || path.starts_with("/mcp/") {
        mcp::refused(refusal)
    } else if v1::is_contract(path) {
        v1::refused(refusal, request.id)
    } else {
        api::refused(refusal, request.id)
    }
}

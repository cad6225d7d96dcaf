//! Formats of the error responses of middleware: that of the API that a path belongs to.

use axum::response::Response;
use fetchwell_telemetry::RequestId;

use super::middleware::refusal::Refusal;
use super::{api, mcp, v1};

/// Renders a refusal of the request for a path. Paths that belong to no API get the format of `/api/v1`.
pub(crate) fn render(refusal: &Refusal, path: &str, id: &RequestId) -> Response {
    if path == "/mcp" || path.starts_with("/mcp/") {
        mcp::refused(refusal)
    } else if v1::is_contract(path) {
        v1::refused(refusal, id)
    } else {
        api::refused(refusal, id)
    }
}

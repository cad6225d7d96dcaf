//! Formats of the error responses of middleware: that of the API that a path belongs to, or a page.

use axum::response::Response;

use super::middleware::refusal::{Refusal, RefusedRequest};
use super::{api, mcp, pages, v1};

/// Renders a refusal of a request. A browser gets a page at the path of one. Paths that belong to no API get the format of
/// `/api/v1`.
pub(crate) fn render(refusal: &Refusal, request: &RefusedRequest<'_>) -> Response {
    let path = request.path;
    if path == "/mcp" || path.starts_with("/mcp/") {
        mcp::refused(refusal)
    } else if v1::is_contract(path) {
        v1::refused(refusal, request.id)
    } else if request.accepts_html && pages::is_page(path) {
        pages::refused(refusal)
    } else {
        api::refused(refusal, request.id)
    }
}

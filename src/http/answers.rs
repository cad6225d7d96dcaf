//! What the specification says and the service behind does not: broken JSON is a JSON-RPC parse error, a
//! client need not list what it accepts, and other methods are told which one there is.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;

use crate::mcp::MAX_REQUEST_BYTES;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Passes requests on in the form the service wants, and its refusals back in the form clients want.
pub(super) async fn as_specified(mut request: Request, next: Next) -> Response {
    if *request.method() != Method::POST {
        let allow = [(header::ALLOW, HeaderValue::from_static("POST"))];
        return (
            StatusCode::METHOD_NOT_ALLOWED,
            allow,
            "This is an MCP endpoint: POST JSON-RPC messages to it.\n",
        )
            .into_response();
    }
    if accepts_json(request.headers()) {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(header::ACCEPT, both);
    }
    let sent_json = is_json(request.headers());
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        let problem = format!("the request is longer than {MAX_REQUEST_BYTES} bytes, or broke off");
        return json_rpc_error(StatusCode::PAYLOAD_TOO_LARGE, -32600, &problem);
    };
    let answer = next.run(Request::from_parts(parts, Body::from(body.clone()))).await;
    // The service says 415 to JSON that it cannot read, as to what is no JSON by its own account.
    if answer.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE || !sent_json {
        return answer;
    }
    match serde_json::from_slice::<IgnoredAny>(&body) {
        Ok(_) => json_rpc_error(StatusCode::BAD_REQUEST, -32600, "the body is not one JSON-RPC message"),
        Err(_) => json_rpc_error(StatusCode::BAD_REQUEST, -32700, "the body is not JSON"),
    }
}

/// Any other path.
pub(super) async fn unknown_path() -> Response {
    (StatusCode::NOT_FOUND, "There is nothing here. The MCP endpoints are /mcp and /mcp/openai.\n")
        .into_response()
}

/// Whether JSON is among what the client takes; one that says nothing takes anything.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut accepted =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if accepted.peek().is_none() {
        return true;
    }
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let essence = range.split(';').next().unwrap_or_default().trim();
        ["*/*", "application/*", "application/json"].iter().any(|json| essence.eq_ignore_ascii_case(json))
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type
        .split(';')
        .next()
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Bytes of a body that go out: of an answer to `HEAD`, none.
pub(super) fn sent_bytes(method: &Method, body: usize) -> usize {
    if *method == Method::HEAD { 0 } else { body }
}

/// An error of the protocol, about no request in particular.
pub(super) fn json_rpc_error(status: StatusCode, code: i32, message: &str) -> Response {
    let body =
        serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    (status, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
}

//! What a request is told that no face has answered, in the words of the one that would have.

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::answers::{json_rpc_error, sent_bytes};
use super::v1;
use crate::telemetry::{Endpoint, Refused, RequestId, Telemetry};

/// Why a request is refused, or was given up.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// One that the telemetry knows.
    pub(super) code: &'static str,
    /// The code of a JSON-RPC error.
    pub(super) json_rpc: i32,
    pub(super) problem: String,
}

/// Who a request is from and what it is for, as its answer needs it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    method: Method,
    path: String,
    id: RequestId,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
        Self { method: request.method().clone(), path: request.uri().path().to_owned(), id }
    }

    /// Answers with a refusal, and counts it. What it was for is not looked at: a path that nobody serves is no
    /// endpoint.
    pub(super) fn refused(&self, refusal: &Refusal, telemetry: &Telemetry) -> Response {
        let record = telemetry.call(Endpoint::route("/{any}"), Some(self.id.to_string()));
        let response = self.in_words(refusal);
        let body = axum::body::HttpBody::size_hint(response.body()).exact();
        let bytes = body.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
        record.refused(refusal.code, Refused { bytes: sent_bytes(&self.method, bytes), reason: None });
        response
    }

    fn in_words(&self, refusal: &Refusal) -> Response {
        let Refusal { status, code, json_rpc, problem } = refusal;
        let Self { path, id, .. } = self;
        if path == "/mcp" || path.starts_with("/mcp/") {
            return json_rpc_error(*status, *json_rpc, problem);
        }
        if v1::is_contract(path) {
            return v1::refused(*status, code, problem.clone(), id);
        }
        let body = serde_json::json!({
            "error": title(code),
            "detail": problem,
            "code": code.to_ascii_uppercase(),
            "request_id": id.as_str(),
        });
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (*status, json, body.to_string()).into_response()
    }
}

/// Answers a request with a refusal, and counts it.
pub(super) fn refused(request: &Request, refusal: &Refusal, telemetry: &Telemetry) -> Response {
    Asked::of(request).refused(refusal, telemetry)
}

/// A code as people read it.
fn title(code: &str) -> String {
    let mut letters = code.chars().map(|letter| if letter == '_' { ' ' } else { letter });
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

//! Refusals before anybody has looked at a request, in the words of whoever would have answered it.

use axum::body::HttpBody;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::v1;
use crate::telemetry::RequestId;

/// Why a request goes no further.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The stable word.
    pub(super) code: &'static str,
    /// What it is for people who read `/api/v1`.
    pub(super) title: &'static str,
    /// The code of JSON-RPC, from the range that servers may use as they like.
    pub(super) json_rpc: i32,
    /// What is wrong, and what to do.
    pub(super) problem: String,
    /// Seconds to wait.
    pub(super) retry_after: Option<u64>,
    /// What a client has to show.
    pub(super) challenge: Option<HeaderValue>,
    /// Where a client learns how to get a token.
    pub(super) resource_metadata: Option<String>,
}

impl Refusal {
    /// The answer to a request for `path`.
    pub(super) fn response(self, path: &str, id: &RequestId) -> Response {
        let body = if path == "/mcp" || path.starts_with("/mcp/") {
            self.json_rpc()
        } else if v1::is_contract(path) {
            v1::refused(&self, id)
        } else {
            self.plain(id)
        };
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, wait.into());
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    fn json_rpc(&self) -> Value {
        let mut data = Map::new();
        data.insert("code".to_owned(), self.code.into());
        self.add_metadata(&mut data);
        let error = json!({ "code": self.json_rpc, "message": self.problem, "data": data });
        json!({ "jsonrpc": "2.0", "id": null, "error": error })
    }

    fn plain(&self, id: &RequestId) -> Value {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.title.into());
        body.insert("detail".to_owned(), self.problem.as_str().into());
        body.insert("code".to_owned(), self.code.to_ascii_uppercase().into());
        body.insert("request_id".to_owned(), id.as_str().into());
        self.add_metadata(&mut body);
        body.into()
    }

    fn add_metadata(&self, body: &mut Map<String, Value>) {
        if let Some(url) = &self.resource_metadata {
            body.insert("resource_metadata".to_owned(), url.as_str().into());
        }
    }
}

/// Bytes of a body that is whole.
pub(super) fn size_of(response: &Response) -> usize {
    response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
}

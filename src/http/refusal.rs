//! What a request is told that no face has answered, in the words of the one that would have.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::answers::sent_bytes;
use super::v1;
use crate::telemetry::{Endpoint, Origin, Refused, RequestId, Telemetry};

/// Why a request is refused, or was given up.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// One that the telemetry knows.
    pub(super) code: &'static str,
    /// The code of a JSON-RPC error.
    pub(super) json_rpc: i32,
    pub(super) problem: String,
    /// Seconds to wait.
    pub(super) retry_after: Option<u64>,
    /// What a client has to show.
    pub(super) challenge: Option<HeaderValue>,
    /// Where a client learns how to get a token.
    pub(super) resource_metadata: Option<String>,
}

/// Who a request is from and what it is for, as its answer needs it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    method: Method,
    path: String,
    id: RequestId,
    origin: Origin,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, json_rpc: i32, problem: String) -> Self {
        let (retry_after, challenge, resource_metadata) = Default::default();
        Self { status, code, json_rpc, problem, retry_after, challenge, resource_metadata }
    }

    /// The same, worth another try after some seconds.
    pub(super) fn after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
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
        body.insert("error".to_owned(), title(self.code).into());
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

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
        let origin = Origin::of(request.extensions());
        Self { method: request.method().clone(), path: request.uri().path().to_owned(), id, origin }
    }

    /// Answers with a refusal, and counts it. What it was for is not looked at: a path that nobody serves is no
    /// endpoint.
    pub(super) fn refused(&self, refusal: &Refusal, telemetry: &Telemetry) -> Response {
        let record = telemetry.call(Endpoint::route("/{any}"), self.origin.clone());
        let response = self.in_words(refusal);
        let bytes = size_of(&response);
        record.refused(refusal.code, Refused { bytes: sent_bytes(&self.method, bytes), reason: None });
        response
    }

    fn in_words(&self, refusal: &Refusal) -> Response {
        let Self { path, id, .. } = self;
        let json = |body: Value| {
            let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (refusal.status, json, body.to_string()).into_response()
        };
        let mut response = if path == "/mcp" || path.starts_with("/mcp/") {
            json(refusal.json_rpc())
        } else if v1::is_contract(path) {
            v1::refused(refusal, id)
        } else {
            json(refusal.plain(id))
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = refusal.retry_after {
            headers.insert(header::RETRY_AFTER, wait.into());
        }
        if let Some(challenge) = &refusal.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
        }
        response
    }
}

/// Answers a request with a refusal, and counts it. What is still on its way is read, so that the connection can be used
/// again; where that is much, the answer says that it cannot.
pub(super) async fn refused(request: Request, refusal: &Refusal, telemetry: &Telemetry) -> Response {
    let asked = Asked::of(&request);
    let is_http_1 = request.version() < Version::HTTP_2;
    let rest = timeout(REST_WITHIN, read_to_end(request.into_body())).await;
    let mut response = asked.refused(refusal, telemetry);
    if is_http_1 && rest != Ok(true) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads what nobody wants and keeps none of it. Whether it came to its end.
async fn read_to_end(mut body: Body) -> bool {
    let mut length = 0;
    while length <= REST_MOST {
        match body.frame().await {
            None => return true,
            Some(Err(_broken)) => return false,
            Some(Ok(frame)) => length += frame.data_ref().map_or(0, Bytes::len),
        }
    }
    false
}

/// The rest of a request that nobody wants: so many bytes, and so long.
const REST_MOST: usize = 64 * 1024;
const REST_WITHIN: Duration = Duration::from_secs(2);

/// A code as people read it.
fn title(code: &str) -> String {
    let mut letters = code.chars().map(|letter| if letter == '_' { ' ' } else { letter });
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Bytes of a body that is whole.
pub(super) fn size_of(response: &Response) -> usize {
    response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default()
}

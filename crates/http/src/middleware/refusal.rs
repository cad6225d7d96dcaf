//! Refusals: why middleware refuses or aborts a request, and the response to it.
//!
//! A [`Refusal`] is a plain value. The router gives [`ErrorResponder`] the function that renders it in the format of the
//! API that the path belongs to.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use fetchwell_telemetry::{Endpoint, ErrorDetails, Origin, RequestId, Telemetry};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::body_size::{sent_bytes, size_of};
use crate::headers::accepts_html;

/// Reason why middleware refuses or aborts a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Error code, one of those that telemetry knows.
    pub(crate) code: &'static str,
    /// Code of the JSON-RPC error.
    pub(crate) json_rpc: i32,
    pub(crate) problem: String,
    /// Seconds to wait before a retry.
    pub(crate) retry_after: Option<u64>,
    /// Value of the `WWW-Authenticate` header.
    pub(crate) challenge: Option<HeaderValue>,
    /// URL of the protected resource metadata, from which a client learns how to get a token.
    pub(crate) resource_metadata: Option<String>,
}

/// Request data that an error response needs.
#[derive(Debug, Clone)]
pub(crate) struct ErrorContext {
    method: Method,
    path: String,
    id: RequestId,
    origin: Origin,
    accepts_html: bool,
}

/// Request data that the format of an error response depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusedRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) id: &'a RequestId,
    /// True for a browser that shows the response.
    pub(crate) accepts_html: bool,
}

/// Function that renders a refusal of a request in the format of the API that its path belongs to.
pub(crate) type RenderRefusal = fn(&Refusal, &RefusedRequest<'_>) -> Response;

/// Responds to refused requests in the format of their API, and records them.
#[derive(Debug, Clone)]
pub(crate) struct ErrorResponder {
    telemetry: Telemetry,
    render: RenderRefusal,
}

impl ErrorResponder {
    pub(crate) fn new(telemetry: Telemetry, render: RenderRefusal) -> Self {
        Self { telemetry, render }
    }
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, json_rpc: i32, problem: String) -> Self {
        Self { status, code, json_rpc, problem, retry_after: None, challenge: None, resource_metadata: None }
    }

    /// Sets the seconds after which a retry may succeed.
    pub(crate) fn after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

impl ErrorContext {
    pub(crate) fn new(request: &Request) -> Self {
        let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
        let origin = Origin::from_extensions(request.extensions());
        let accepts_html = accepts_html(request.headers());
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        Self { method, path, id, origin, accepts_html }
    }

    /// Builds the response and records it. It is recorded under a common endpoint name, because the path may be
    /// unknown.
    pub(crate) fn refused(&self, refusal: &Refusal, responder: &ErrorResponder) -> Response {
        let record = responder.telemetry.call(Endpoint::route("/{any}"), self.origin.clone());
        let response = self.response(refusal, responder.render);
        let bytes = size_of(&response);
        record.refused(refusal.code, ErrorDetails { bytes: sent_bytes(&self.method, bytes), reason: None });
        response
    }

    fn response(&self, refusal: &Refusal, render: RenderRefusal) -> Response {
        let request = RefusedRequest { path: &self.path, id: &self.id, accepts_html: self.accepts_html };
        let mut response = render(refusal, &request);
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

/// Refuses a request and records it. The rest of the request is read so that the connection can be reused; if that is
/// too much, the response closes the connection.
pub(crate) async fn refused(request: Request, refusal: &Refusal, responder: &ErrorResponder) -> Response {
    let context = ErrorContext::new(&request);
    let is_http_1 = request.version() < Version::HTTP_2;
    let rest = timeout(REST_TIMEOUT, read_to_end(request.into_body())).await;
    let mut response = context.refused(refusal, responder);
    if is_http_1 && rest != Ok(true) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads and drops a body. Returns true if its end was reached.
async fn read_to_end(mut body: Body) -> bool {
    let mut length = 0;
    while length <= MAX_REST_BYTES {
        match body.frame().await {
            None => return true,
            Some(Err(_broken)) => return false,
            Some(Ok(frame)) => length += frame.data_ref().map_or(0, Bytes::len),
        }
    }
    false
}

/// Maximum bytes of a refused request that are read, and the maximum time for it.
const MAX_REST_BYTES: usize = 64 * 1024;
const REST_TIMEOUT: Duration = Duration::from_secs(2);

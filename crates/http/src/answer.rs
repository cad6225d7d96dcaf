//! Answers to calls of the APIs and of pages: catches panics, limits the time, records the outcome and builds the response.
//!
//! An API implements [`ErrorResponse`] for its errors, and pages implement [`CallResult`]; the rest is the same for all.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use fetchwell_core::fit::{Shaping, Strategy, answer_tokens};
use fetchwell_telemetry::{Call, Endpoint, ErrorDetails, Origin, Telemetry};
use fetchwell_tools::Toolbox;
use futures_util::FutureExt;
use serde::Serialize;

use super::body_size::{sent_bytes, size_of};
use super::error::RequestError;

/// A response with a JSON body, and the shaping that produced it.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    /// Headers in addition to the content type.
    headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) shaping: Shaping,
}

impl Answer {
    /// Serializes a body that is not a list. Returns an internal error if it cannot be serialized.
    pub(crate) fn new(body: &impl Serialize) -> Result<Self, RequestError> {
        let body = serde_json::to_string(body).map_err(|_unwritable| RequestError::internal())?;
        Ok(Self::with_shaping(body, Shaping { items: 1, ..Shaping::default() }))
    }

    /// Creates an answer of JSON text. Its tokens are counted if the shaping has none.
    pub(crate) fn with_shaping(body: String, shaping: Shaping) -> Self {
        let tokens = Some(shaping.tokens.unwrap_or_else(|| answer_tokens(&body)));
        let shaping = Shaping { bytes: body.len(), tokens, ..shaping };
        Self { status: StatusCode::OK, headers: HeaderMap::new(), body, shaping }
    }

    /// Creates an answer without a body.
    pub(crate) fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, ..Self::with_shaping(String::new(), Shaping::default()) }
    }

    /// Sets the number of items.
    pub(crate) fn with_items(mut self, items: usize) -> Self {
        self.shaping.items = items;
        self
    }

    /// Sets the strategy that telemetry records.
    pub(crate) fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.shaping.strategy = strategy;
        self
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// Error of an API in its format.
pub(crate) trait ErrorResponse: From<RequestError> {
    /// Returns the code that telemetry records, and the reason that refines it.
    fn outcome(&self) -> (Cow<'_, str>, Option<&'static str>);

    /// Builds the response to the request with an id.
    fn response(&self, request_id: &str) -> Response;
}

/// Result of a call: what is recorded, and the response.
pub(crate) trait CallResult {
    /// Returns the result of a call that panicked.
    fn internal_error() -> Self;

    /// Records the call and builds its response.
    fn respond(self, call: Call, request: &Parts) -> Response;
}

impl<Error: ErrorResponse> CallResult for Result<Answer, Error> {
    fn internal_error() -> Self {
        Err(RequestError::internal().into())
    }

    fn respond(self, call: Call, request: &Parts) -> Response {
        match self {
            Ok(Answer { status, headers, body, shaping }) => {
                let bytes = sent_bytes(&request.method, shaping.bytes);
                call.answered(&Shaping { bytes, ..shaping });
                let mut response = json_response(status, body);
                response.headers_mut().extend(headers);
                response
            }
            Err(error) => {
                let response = error.response(call.request_id().as_str());
                let bytes = sent_bytes(&request.method, size_of(&response));
                let (code, reason) = error.outcome();
                call.refused(&code, ErrorDetails { bytes, reason });
                response
            }
        }
    }
}

/// Runs a call, records it under an endpoint, and returns the response. A panic becomes an internal error.
pub(crate) async fn answer_call<Done: CallResult>(
    telemetry: &Telemetry,
    endpoint: &str,
    request: &Parts,
    work: impl AsyncFnOnce(&mut Call) -> Done,
) -> Response {
    let origin = Origin::from_extensions(&request.extensions);
    let mut call = telemetry.call(Endpoint::route(endpoint), origin);
    let done = AssertUnwindSafe(work(&mut call)).catch_unwind().await;
    done.unwrap_or_else(|_panic| Done::internal_error()).respond(call, request)
}

/// Runs a part of a call. Returns `source_timeout` if it takes longer than a call may take.
pub(crate) async fn in_time<Done, Error: From<RequestError>>(
    toolbox: &Toolbox,
    work: impl Future<Output = Result<Done, Error>>,
) -> Result<Done, Error> {
    let deadline = toolbox.call_deadline();
    tokio::time::timeout(deadline, work).await.unwrap_or_else(|_late| {
        let problem = format!("no answer within {} seconds", deadline.as_secs());
        Err(RequestError::new(StatusCode::GATEWAY_TIMEOUT, "source_timeout", problem).into())
    })
}

/// Builds a response with a JSON body.
pub(crate) fn json_response(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

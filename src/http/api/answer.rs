//! Responses of `/api/v1`, with the data that is recorded about their size.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::{ApiError, title};
use crate::fit::{PageBudget, Shaping, answer_tokens, tokens_within};
use crate::http::error::RequestError;
use crate::http::headers::{ORIGINAL_TOKENS, RETURNED_TOKENS};
use crate::http::middleware::refusal::Refusal;
use crate::telemetry::RequestId;

/// Response body, with the shaping that produced it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) shaping: Shaping,
    /// Tokens without and with shaping, if the caller asked for a comparison.
    pub(super) compared: Option<(usize, usize)>,
}

impl Answer {
    /// Serializes a body of `items` items without any shaping.
    pub(super) fn new(body: &impl Serialize, items: usize) -> Result<Self, ApiError> {
        let body = serde_json::to_string(body).map_err(|_unwritable| RequestError::internal())?;
        Ok(Self::with_shaping(body, Shaping { items, ..Shaping::default() }))
    }

    /// Returns true if the body fits a budget.
    pub(super) fn is_within(&self, budget: PageBudget) -> bool {
        let body = String::from_utf8_lossy(&self.body);
        body.len() <= budget.bytes && tokens_within(&body, budget.tokens).is_ok()
    }

    pub(super) fn with_shaping(body: String, shaping: Shaping) -> Self {
        let tokens = shaping.tokens.unwrap_or_else(|| answer_tokens(&body));
        let shaping = Shaping { bytes: body.len(), tokens: Some(tokens), ..shaping };
        Self { body: body.into_bytes(), shaping, compared: None }
    }
}

/// Converts an answer to an HTTP response.
pub(super) fn response(answer: Answer) -> Response {
    let mut response = written(StatusCode::OK, answer.body);
    if let Some((original, returned)) = answer.compared {
        response.headers_mut().insert(ORIGINAL_TOKENS, HeaderValue::from(original));
        response.headers_mut().insert(RETURNED_TOKENS, HeaderValue::from(returned));
    }
    response
}

/// Builds the response to a request that fails.
pub(super) fn refusal(error: &ApiError, body: Vec<u8>) -> Response {
    let mut response = written(error.status(), body);
    error.add_headers(response.headers_mut());
    response
}

/// Builds the response to a request that middleware refused.
pub(in crate::http) fn refused(refusal: &Refusal, id: &RequestId) -> Response {
    let mut body = Map::new();
    body.insert("error".to_owned(), title(refusal.code).into());
    body.insert("detail".to_owned(), refusal.problem.as_str().into());
    body.insert("code".to_owned(), refusal.code.to_ascii_uppercase().into());
    body.insert("request_id".to_owned(), id.as_str().into());
    if let Some(url) = &refusal.resource_metadata {
        body.insert("resource_metadata".to_owned(), url.as_str().into());
    }
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (refusal.status, json, Value::from(body).to_string()).into_response()
}

fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    response
}

//! Responses of `/api/v1`: their size, and refusals of middleware.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fetchwell_telemetry::RequestId;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::error::title;
use crate::headers::{ORIGINAL_TOKENS, RETURNED_TOKENS};
use crate::middleware::refusal::Refusal;

/// Adds the tokens without and with shaping, if the caller asked for a comparison.
pub(super) fn with_comparison(answer: Answer, compared: Option<(usize, usize)>) -> Answer {
    let Some((original, returned)) = compared else { return answer };
    let answer = answer.with_header(ORIGINAL_TOKENS, HeaderValue::from(original));
    answer.with_header(RETURNED_TOKENS, HeaderValue::from(returned))
}

/// Builds the response to a request that middleware refused.
pub(crate) fn refused(refusal: &Refusal, id: &RequestId) -> Response {
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

//! A body with what is known of it.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use super::error::Failure;
use crate::fit::{PageBudget, Shaping, tokens_within};
use crate::http::v1::ApiError;

/// What an answer would take without any shaping.
pub(in crate::http) const ORIGINAL_TOKENS: HeaderName = HeaderName::from_static("x-context-original-tokens");
/// What it takes.
pub(in crate::http) const RETURNED_TOKENS: HeaderName = HeaderName::from_static("x-context-returned-tokens");

/// A body, and how it came to its size.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) shaping: Shaping,
    /// What it is without shaping and with, in tokens, for a caller who compares.
    pub(super) compared: Option<(usize, usize)>,
}

impl Answer {
    /// A body of some items that nothing had to be done to.
    pub(super) fn of(body: &impl Serialize, items: usize) -> Result<Self, Failure> {
        let body = serde_json::to_string(body).map_err(|_unwritable| ApiError::internal())?;
        Ok(Self::shaped(body, Shaping { items, ..Shaping::default() }))
    }

    /// Whether it is within a budget.
    pub(super) fn is_within(&self, budget: PageBudget) -> bool {
        let body = String::from_utf8_lossy(&self.body);
        body.len() <= budget.bytes && tokens_within(&body, budget.tokens).is_ok()
    }

    pub(super) fn shaped(body: String, shaping: Shaping) -> Self {
        let shaping = Shaping { bytes: body.len(), ..shaping };
        Self { body: body.into_bytes(), shaping, compared: None }
    }
}

/// An answer as it goes out.
pub(super) fn response(answer: Answer) -> Response {
    let mut response = written(StatusCode::OK, answer.body);
    if let Some((original, returned)) = answer.compared {
        response.headers_mut().insert(ORIGINAL_TOKENS, HeaderValue::from(original));
        response.headers_mut().insert(RETURNED_TOKENS, HeaderValue::from(returned));
    }
    response
}

pub(super) fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    response
}

//! Bodies of the error responses of the contract.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use fetchwell_core::fit::clip;
use fetchwell_state::cursor::CursorFault;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{PDPP_VERSION, VERSION};
use crate::answer::{ErrorResponse, json_response};
use crate::error::{OfferedConnection, RequestError};

/// Maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 1_000;

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(super) struct ErrorEnvelope {
    error: ErrorBody,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ErrorBody {
    /// Type that corresponds to the status.
    #[serde(rename = "type")]
    kind: ErrorType,
    /// Stable code, for programs.
    code: String,
    message: String,
    /// Hint with the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Parameter that the error is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    /// Connections to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    available_connections: Vec<OfferedConnection>,
    /// The parameter to add, with one of `available_connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = "connection_id"))]
    retry_with: Option<&'static str>,
    request_id: String,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
enum ErrorType {
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "permission_error")]
    Permission,
    #[serde(rename = "not_found_error")]
    NotFound,
    #[serde(rename = "gone_error")]
    Gone,
    #[serde(rename = "request_entity_too_large_error")]
    TooLarge,
    #[serde(rename = "rate_limit_error")]
    RateLimit,
    #[serde(rename = "api_error")]
    Api,
}

impl ErrorEnvelope {
    pub(super) fn new(error: &RequestError, request_id: &str) -> Self {
        let retry = !error.choices().is_empty() || error.code == "ambiguous_connection";
        Self {
            error: ErrorBody {
                kind: type_of(error.status),
                code: error.code.clone().into_owned(),
                message: clip(error.message(), MAX_MESSAGE_BYTES),
                hint: error.hint().map(str::to_owned),
                param: error.param().map(str::to_owned),
                available_connections: error.choices().to_vec(),
                retry_with: retry.then_some("connection_id"),
                request_id: request_id.to_owned(),
            },
        }
    }
}

impl ErrorResponse for RequestError {
    fn outcome(&self) -> (Cow<'_, str>, Option<&'static str>) {
        (Cow::Borrowed(&self.code), self.cursor_fault.map(CursorFault::reason))
    }

    fn response(&self, request_id: &str) -> Response {
        let body = serde_json::to_string(&ErrorEnvelope::new(self, request_id));
        error_response(self, body.unwrap_or_default())
    }
}

/// Builds the response of an error with this body.
pub(super) fn error_response(error: &RequestError, body: String) -> Response {
    let mut response = json_response(error.status, body);
    response.headers_mut().insert(PDPP_VERSION, HeaderValue::from_static(VERSION));
    error.add_headers(response.headers_mut());
    response
}

fn type_of(status: StatusCode) -> ErrorType {
    match status.as_u16() {
        400 => ErrorType::InvalidRequest,
        401 => ErrorType::Authentication,
        403 => ErrorType::Permission,
        404 => ErrorType::NotFound,
        410 => ErrorType::Gone,
        413 => ErrorType::TooLarge,
        429 => ErrorType::RateLimit,
        _ => ErrorType::Api,
    }
}

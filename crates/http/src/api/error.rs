//! Errors of `/api/v1`: `{"error", "detail", "code", "request_id"}`.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::Response;
use fetchwell_core::fit::{budget, clip};
use fetchwell_source::SourceError;
use fetchwell_state::cursor::CursorFault;
use fetchwell_tools::ToolError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{ErrorResponse, json_response};
use crate::error::{OfferedConnection, RequestError, title};

/// Maximum bytes of the message and of the hint, so that the body stays within its budget.
const MAX_MESSAGE_BYTES: usize = 700;
const MAX_HINT_BYTES: usize = 600;

/// Reason why a request fails.
#[derive(Debug)]
pub(super) struct ApiError {
    error: Box<RequestError>,
    /// Title of the error; `None` derives it from the code.
    title: Option<&'static str>,
}

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApiError")]
pub(super) struct ErrorBody {
    /// Title of the error, for people.
    error: String,
    /// Description of the problem and its remedy.
    detail: String,
    /// Stable code, for programs.
    code: String,
    request_id: String,
    /// Reason that refines the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Parameter that the error is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    /// Connections to choose from, as `connection_id`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    available_connections: Vec<OfferedConnection>,
}

impl ApiError {
    /// Sets a title that clients recognize.
    pub(super) fn with_title(self, title: &'static str) -> Self {
        Self { title: Some(title), ..self }
    }

    fn body(&self, id: &str) -> String {
        let error = &self.error;
        let mut body = ErrorBody {
            error: self.title.map_or_else(|| title(&error.code), str::to_owned),
            detail: match error.hint() {
                None => clip(error.message(), MAX_MESSAGE_BYTES),
                Some(hint) => {
                    let message = clip(error.message(), MAX_MESSAGE_BYTES);
                    format!("{}. {}", message.trim_end_matches('.'), clip(hint, MAX_HINT_BYTES))
                }
            },
            code: error.code.to_ascii_uppercase(),
            request_id: id.to_owned(),
            reason: error.cursor_fault.map(CursorFault::reason),
            param: error.param().map(str::to_owned),
            available_connections: error.choices().to_vec(),
        };
        loop {
            let json = serde_json::to_string(&body).unwrap_or_default();
            // Connections that do not fit are available from the schema.
            if json.len() < budget::ERROR || body.available_connections.pop().is_none() {
                return json;
            }
        }
    }
}

impl ErrorResponse for ApiError {
    fn outcome(&self) -> (Cow<'_, str>, Option<&'static str>) {
        self.error.outcome()
    }

    fn response(&self, request_id: &str) -> Response {
        let mut response = json_response(self.error.status, self.body(request_id));
        self.error.add_headers(response.headers_mut());
        response
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Self { error: Box::new(error), title: None }
    }
}

impl From<SourceError> for ApiError {
    fn from(error: SourceError) -> Self {
        RequestError::from(error).into()
    }
}

impl From<ToolError> for ApiError {
    fn from(error: ToolError) -> Self {
        let body = error.body();
        let invalid_cursor = |fault: CursorFault| {
            let problem = format!("Invalid cursor: {fault}. Re-query from the beginning, without `cursor`.");
            Self::from(RequestError::cursor(fault, problem))
        };
        match error {
            ToolError::Source { error, .. } => error.into(),
            ToolError::InvalidListCursor(fault)
            | ToolError::InvalidSearchCursor(fault)
            | ToolError::InvalidTextCursor(fault) => invalid_cursor(fault),
            ToolError::InvalidArgument { param, problem, .. } if param == "filter" => {
                RequestError::bad("invalid_filter", problem).about(&param).into()
            }
            ToolError::InvalidArgument { param, problem, .. } => {
                RequestError::bad("invalid_argument", problem).about(&param).into()
            }
            other => {
                let status = match other {
                    ToolError::InvalidHandle { .. } | ToolError::ConflictingConnection { .. } => {
                        StatusCode::BAD_REQUEST
                    }
                    ToolError::ResponseTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                    ToolError::StateUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
                    ToolError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                RequestError::new(status, body.code, body.message).hinting(&body.hint).into()
            }
        }
    }
}

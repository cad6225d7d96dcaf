//! Errors: `{"error", "detail", "code", "request_id"}`, with `errors` for an invalid request.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use fetchwell_core::fit::clip;
use fetchwell_source::SourceError;
use fetchwell_state::StateError;
use fetchwell_tools::documents::DocsError;
use serde::Serialize;

use super::route::ROUTES;
use crate::answer::{ErrorResponse, json_response};
use crate::error::{RequestError, title};

/// Maximum length of a detail in bytes of JSON.
const MAX_DETAIL_BYTES: usize = 700;

/// Maximum number of errors in one body.
const MAX_ERRORS: usize = 8;

/// Codes of an invalid query and of another invalid argument.
const INVALID_QUERY: &str = "INVALID_QUERY";
const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";

/// Reason why a request fails.
#[derive(Debug)]
pub(super) struct DocumentError {
    status: StatusCode,
    error: Box<str>,
    detail: Box<str>,
    code: Box<str>,
    errors: Box<[ValidationError]>,
    /// Method that the path takes, for an error about it.
    allowed: Option<&'static str>,
}

/// Part of a request that has its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The JSON body.
    Body,
    /// The query string.
    Query,
}

impl Place {
    /// Returns the first segment of the `loc` of an error.
    fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
        }
    }
}

/// An error of one parameter: the `ValidationError` of the contract.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ValidationError {
    loc: Vec<String>,
    msg: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[ValidationError]>::is_empty")]
    errors: &'a [ValidationError],
}

impl ValidationError {
    /// Creates the error of a parameter.
    pub(super) fn parameter(place: Place, name: &str, problem: &str, kind: &'static str) -> Self {
        Self { loc: vec![place.as_str().to_owned(), clip(name, 100)], msg: clip(problem, 200), kind }
    }

    /// Creates the error of a whole body.
    pub(super) fn body(problem: &str, kind: &'static str) -> Self {
        Self { loc: vec!["body".to_owned()], msg: problem.to_owned(), kind }
    }
}

impl DocumentError {
    /// Creates an error. Its title is its code in words.
    fn new(status: StatusCode, code: &str, detail: &str) -> Self {
        Self {
            status,
            error: title(&code.to_ascii_lowercase()).into(),
            detail: clip(detail, MAX_DETAIL_BYTES).into(),
            code: code.into(),
            errors: Box::default(),
            allowed: None,
        }
    }

    fn titled(self, title: &str) -> Self {
        Self { error: title.into(), ..self }
    }

    /// Creates an internal error.
    pub(super) fn internal() -> Self {
        RequestError::internal().into()
    }

    /// Creates the error of an invalid request.
    pub(super) fn validation(mut errors: Vec<ValidationError>) -> Self {
        errors.truncate(MAX_ERRORS);
        let of_query = errors.iter().find(|error| error.loc.last().is_some_and(|last| last == "query"));
        let (code, detail) = match (of_query, errors.first()) {
            (Some(error), _) if matches!(error.kind, "missing" | "string_too_short") => {
                (INVALID_QUERY, "Query cannot be empty".to_owned())
            }
            (Some(error), _) => (INVALID_QUERY, format!("query: {}", error.msg)),
            (None, Some(first)) => (INVALID_ARGUMENT, format!("{}: {}", first.loc.join("."), first.msg)),
            (None, None) => (INVALID_ARGUMENT, String::new()),
        };
        Self { errors: errors.into(), ..Self::new(StatusCode::BAD_REQUEST, code, &detail) }
    }

    /// Creates the error of a body that is not JSON.
    pub(super) fn invalid_json(error: &serde_json::Error) -> Self {
        let detail = format!("the body is not JSON (line {}, column {})", error.line(), error.column());
        let errors = Box::from([ValidationError::body("it is not JSON", "json_invalid")]);
        Self { errors, ..Self::new(StatusCode::BAD_REQUEST, INVALID_ARGUMENT, &detail) }
    }

    /// Creates the error of another content type than JSON.
    pub(super) fn content_type() -> Self {
        let detail = "send JSON with `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_ARGUMENT, detail).titled("Invalid content type")
    }

    /// Creates the error of a body that is too large.
    pub(super) fn too_large() -> Self {
        let detail = "the body is larger than 1 MiB";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID_ARGUMENT, detail).titled("Request too large")
    }

    /// Creates the error of a method that the path does not take.
    pub(super) fn method(allowed: &'static str) -> Self {
        let detail = format!("this path takes {allowed}");
        let base = Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", &detail);
        Self { allowed: Some(allowed), ..base }
    }

    /// Creates the error of a path that is no route.
    pub(super) fn unknown_path(path: &str) -> Self {
        let detail = format!("there is nothing at `{}`. The routes are {ROUTES}", clip(path, 200));
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", &detail)
    }

    /// Creates the error of a caller who is no administrator.
    pub(super) fn admin_only() -> Self {
        let detail = "this needs a token with `admin = true` in [auth]; ask the operator of the server";
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail)
    }

    /// Creates the error of a cursor that is not of the list.
    pub(super) fn cursor() -> Self {
        let detail = "the cursor is not one of this list; start again without it";
        Self::new(StatusCode::BAD_REQUEST, "INVALID_CURSOR", detail)
    }

    /// Creates the error of a query with an invalid vector.
    pub(super) fn embedding(problem: &str) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "EMBEDDING_ERROR", problem)
    }

    /// Creates the error of shared state that cannot be written while the cache is cleared.
    pub(super) fn not_cleared(error: &StateError) -> Self {
        let detail = format!(
            "the answers of this server are removed; the state that servers share is {}, so others may use theirs for up to an \
             hour. Try again",
            error.kind()
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "STATE_UNAVAILABLE", &detail)
    }

    /// Creates the error of a search that the history does not have.
    pub(super) fn search_not_found() -> Self {
        let detail = "there is no search of this id; it is in the header `Search-Id` of a response";
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", detail).titled("Search not found")
    }

    /// Creates the error of a deadline that passed.
    pub(super) fn timeout(deadline: Duration) -> Self {
        let detail = format!("no answer within {} ms", deadline.as_millis());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "SOURCE_TIMEOUT", &detail)
    }

    pub(super) fn body(&self, request_id: &str) -> String {
        let Self { error, detail, code, errors, .. } = self;
        serde_json::to_string(&ErrorBody { error, detail, code, request_id, errors }).unwrap_or_default()
    }
}

impl ErrorResponse for DocumentError {
    fn outcome(&self) -> (Cow<'_, str>, Option<&'static str>) {
        (self.code.to_ascii_lowercase().into(), None)
    }

    fn response(&self, request_id: &str) -> Response {
        let mut response = json_response(self.status, self.body(request_id));
        if let Some(allowed) = self.allowed {
            let allowed = if allowed == "GET" { "GET, HEAD" } else { allowed };
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

impl From<RequestError> for DocumentError {
    fn from(error: RequestError) -> Self {
        Self::new(error.status, &error.code.to_ascii_uppercase(), error.message()).titled(&title(&error.code))
    }
}

impl From<SourceError> for DocumentError {
    fn from(error: SourceError) -> Self {
        RequestError::from(error).into()
    }
}

impl From<DocsError> for DocumentError {
    fn from(error: DocsError) -> Self {
        let detail = error.to_string();
        let choices = error.choices().unwrap_or_default();
        match error {
            DocsError::AmbiguousProject { .. } => {
                let detail = format!("{detail}; {choices}");
                Self::new(StatusCode::BAD_REQUEST, INVALID_ARGUMENT, &detail).titled("Ambiguous project")
            }
            DocsError::ProjectNotFound { .. } => {
                let detail = format!("{}; {choices}", clip(&detail, MAX_DETAIL_BYTES / 2));
                Self::new(StatusCode::NOT_FOUND, "PROJECT_NOT_FOUND", &detail)
            }
            DocsError::DocumentNotFound { .. } => {
                Self::new(StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND", &detail)
            }
            DocsError::InvalidQuery(_) => Self::new(StatusCode::BAD_REQUEST, INVALID_QUERY, &detail),
            DocsError::Source(error) => error.into(),
        }
    }
}

//! Errors of requests for records: a status, a code, a message and its remedy.
//!
//! `/v1` and `/api/v1` share the value and its conversion from [`SourceError`]; each API has its own body for it.

use std::borrow::Cow;
use std::fmt::Display;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use fetchwell_core::fit::clip;
use fetchwell_core::handle::SourceName;
use fetchwell_source::{AMBIGUOUS_CONNECTION, ConnectionChoice, QueryFault, SourceError};
use fetchwell_state::cursor::CursorFault;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum length of a hint in bytes.
const MAX_HINT_BYTES: usize = 600;

/// Maximum number of fields that a hint names.
const MAX_NAMED_FIELDS: usize = 30;

/// `Retry-After` in seconds if large records of other calls use up the memory.
const BUSY_RETRY_AFTER: u64 = 2;

/// Reason why a request fails.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) status: StatusCode,
    pub(crate) code: Cow<'static, str>,
    message: String,
    hint: Option<Box<str>>,
    param: Option<Box<str>>,
    choices: Box<[OfferedConnection]>,
    /// Seconds to wait before a retry.
    pub(crate) retry_after: Option<u64>,
    /// Fault of the cursor, which telemetry counts.
    pub(crate) cursor_fault: Option<CursorFault>,
}

/// A connection that an error offers.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct OfferedConnection {
    pub(crate) connection_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connector_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<String>,
}

impl RequestError {
    pub(crate) fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: String) -> Self {
        let code = code.into();
        Self {
            status,
            code,
            message,
            hint: None,
            param: None,
            choices: Box::default(),
            retry_after: None,
            cursor_fault: None,
        }
    }

    /// Creates an error with status 400.
    pub(crate) fn bad(code: &'static str, message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Adds the headers that belong to the status.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }

    /// Creates an error for a request that violates the contract.
    pub(crate) fn request(message: String) -> Self {
        Self::bad("invalid_request", message)
    }

    /// Creates an error for an invalid or expired cursor.
    pub(crate) fn cursor(fault: CursorFault, message: String) -> Self {
        Self { cursor_fault: Some(fault), ..Self::bad("invalid_cursor", message).about("cursor") }
    }

    pub(crate) fn not_found(message: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn connection_not_found(asked: &str, problem: &dyn Display) -> Self {
        let message = format!("there is no connection `{}`: {problem}", clip(asked, 200));
        Self::new(StatusCode::NOT_FOUND, "connection_not_found", message).about("connection_id")
    }

    /// Creates an internal error.
    pub(crate) fn internal() -> Self {
        let message = "internal error; call again, or report it".to_owned();
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// Sets the parameter that the error is about.
    pub(crate) fn about(mut self, param: &str) -> Self {
        self.param = Some(clip(param, 200).into());
        self
    }

    /// Sets the hint; an empty text sets none.
    pub(crate) fn hinting(mut self, hint: &str) -> Self {
        self.hint = (!hint.is_empty()).then(|| clip(hint, MAX_HINT_BYTES).into());
        self
    }

    /// Sets the connections that the error offers as choices.
    pub(crate) fn offering(mut self, choices: Vec<OfferedConnection>) -> Self {
        self.choices = choices.into();
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    pub(crate) fn choices(&self) -> &[OfferedConnection] {
        &self.choices
    }
}

impl RequestError {
    /// Creates the error of a read that found no memory for large records.
    fn busy(message: String) -> Self {
        let hint = "Ask again in a moment, one request at a time, with a smaller `limit`.";
        let busy = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hinting(hint);
        Self { retry_after: Some(BUSY_RETRY_AFTER), ..busy }
    }
}

impl From<SourceError> for RequestError {
    fn from(error: SourceError) -> Self {
        let message = error.to_string();
        let as_is = |status, code| Self::new(status, code, message.clone());
        match error {
            SourceError::Refused(refusal) => {
                if let Some((fault, hint)) = refusal.correction() {
                    return query_error(fault, &refusal.message, &hint);
                }
                let refused = Self::new(upstream_status(refusal.status), refusal.code, refusal.message);
                let refused = Self {
                    param: refusal.param.map(Into::into),
                    hint: refusal.hint.map(Into::into),
                    ..refused
                };
                refused.offering(refusal.choices.iter().map(offered).collect())
            }
            SourceError::AmbiguousConnection { choices, .. } => {
                let message = format!("{message}. Retry with `connection_id`.");
                let ambiguous = Self::new(StatusCode::CONFLICT, "ambiguous_connection", message);
                ambiguous.offering(choices.iter().map(offered).collect())
            }
            SourceError::ConnectionNotFound { choices, .. } => {
                let unknown = as_is(StatusCode::NOT_FOUND, "connection_not_found").about("connection_id");
                unknown.offering(choices.iter().map(offered).collect())
            }
            SourceError::NotFound { .. } => as_is(StatusCode::NOT_FOUND, "not_found"),
            SourceError::UnknownField { known, .. } => {
                let known: Vec<&str> = known.iter().map(String::as_str).take(MAX_NAMED_FIELDS).collect();
                let unknown = as_is(StatusCode::BAD_REQUEST, "unknown_field").about("fields");
                if known.is_empty() {
                    return unknown;
                }
                unknown.hinting(&format!("Its fields are: {}.", known.join(", ")))
            }
            SourceError::InvalidQuery { fault, problem, hint } => query_error(fault, &problem, &hint),
            SourceError::InvalidCursor => Self::cursor(CursorFault::Changed, message.clone()),
            SourceError::Timeout { .. } => as_is(StatusCode::GATEWAY_TIMEOUT, "source_timeout"),
            SourceError::Unreachable { .. }
            | SourceError::StateUnavailable { .. }
            | SourceError::NoPermit
            | SourceError::Store(_) => as_is(StatusCode::SERVICE_UNAVAILABLE, "source_unavailable"),
            SourceError::Busy => Self::busy(message),
            SourceError::RateLimited { retry_after } => Self {
                retry_after: retry_after.map(|pause| pause.as_secs().max(1)),
                ..as_is(StatusCode::SERVICE_UNAVAILABLE, "source_rate_limited")
            },
            SourceError::CircuitOpen { pause } => Self {
                retry_after: Some(pause.as_secs().max(1)),
                ..as_is(StatusCode::SERVICE_UNAVAILABLE, "source_unavailable")
            },
            SourceError::AllFailed { failed, .. } => {
                let named: Vec<String> =
                    failed.iter().map(|failed| format!("{}: {}", failed.source, failed.code)).collect();
                let message = format!("{message} ({})", named.join(", "));
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "source_unavailable", message)
            }
            SourceError::AmbiguousSource { sources, choices, .. } => {
                in_several_sources(as_is(StatusCode::CONFLICT, AMBIGUOUS_CONNECTION), &sources, &choices)
            }
            SourceError::FromSource { source_name, error } => {
                let of = Self::from(*error);
                Self { message: format!("source `{source_name}`: {}", of.message), ..of }
            }
            SourceError::Protocol(_) => as_is(StatusCode::BAD_GATEWAY, "source_protocol"),
            SourceError::Reauthorize { remedy, .. } => {
                let message = format!("{message}; {remedy}");
                Self::new(StatusCode::BAD_GATEWAY, "reauthorize", message)
            }
        }
    }
}

/// Maps the status of a record server. A 401 concerns the credential of fetchwell and not that of the caller, who has
/// none for that server.
fn upstream_status(status: u16) -> StatusCode {
    match status {
        401 => StatusCode::FORBIDDEN,
        400..=499 => StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
        503 => StatusCode::SERVICE_UNAVAILABLE,
        504 => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

fn query_error(fault: QueryFault, problem: &str, hint: &str) -> RequestError {
    let status = match fault {
        QueryFault::UnknownStream | QueryFault::FieldNotFound | QueryFault::QueryNotFound => {
            StatusCode::NOT_FOUND
        }
        QueryFault::ExpiredCursor => StatusCode::GONE,
        QueryFault::FieldNotText => StatusCode::UNPROCESSABLE_ENTITY,
        QueryFault::UnknownField
        | QueryFault::InvalidFilter
        | QueryFault::InvalidSort
        | QueryFault::InvalidView
        | QueryFault::InvalidExpand
        | QueryFault::InvalidAggregate
        | QueryFault::MismatchedCursor
        | QueryFault::MalformedCursor
        | QueryFault::InvalidWindow
        | QueryFault::InvalidArgument
        | QueryFault::NotSupported => StatusCode::BAD_REQUEST,
    };
    let problem = if problem.is_empty() { "this source does not answer that" } else { problem };
    let error = RequestError::new(status, fault.code(), problem.to_owned()).hinting(hint);
    let of_cursor = |fault| RequestError::cursor(fault, problem.to_owned()).hinting(hint);
    match fault {
        QueryFault::InvalidFilter => error.about("filter"),
        QueryFault::InvalidSort => error.about("sort"),
        QueryFault::InvalidView => error.about("view"),
        QueryFault::InvalidExpand => error.about("expand"),
        QueryFault::MismatchedCursor => of_cursor(CursorFault::Mismatched),
        QueryFault::MalformedCursor => of_cursor(CursorFault::Malformed),
        QueryFault::ExpiredCursor => error.about("changes_since"),
        QueryFault::QueryNotFound => error.about("q"),
        QueryFault::FieldNotFound | QueryFault::FieldNotText => error.about("field"),
        QueryFault::UnknownStream
        | QueryFault::UnknownField
        | QueryFault::InvalidAggregate
        | QueryFault::InvalidWindow
        | QueryFault::InvalidArgument
        | QueryFault::NotSupported => error,
    }
}

/// Offers the connections as choices, or names the sources if there are none.
fn in_several_sources(
    error: RequestError,
    sources: &[SourceName],
    choices: &[ConnectionChoice],
) -> RequestError {
    if !choices.is_empty() {
        return error.offering(choices.iter().map(offered).collect());
    }
    let named: Vec<&str> = sources.iter().map(SourceName::as_str).collect();
    error.hinting(&format!("Both are served here: {}. Serve one of them.", named.join(", ")))
}

/// Returns a code as a title: `invalid_cursor` becomes `Invalid cursor`.
pub(crate) fn title(code: &str) -> String {
    let mut words = code.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn offered(choice: &ConnectionChoice) -> OfferedConnection {
    OfferedConnection {
        connection_id: choice.connection_id.to_string(),
        display_name: choice.display_name.clone(),
        ..OfferedConnection::default()
    }
}

//! Errors of a source.
//!
//! Each `SourceError` has a stable code (`SourceError::code`), after which its variants are named. Text of a
//! record server inside an error is shown and never interpreted.

use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, SourceName};
use fetchwell_core::record::{ConnectionSchema, Unavailable};

use crate::contract::{PostgresError, StoreError};

/// Reason why a source did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The record server returned an error of its own, which is passed through.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// A record address without a connection matches several connections.
    #[error("{what} is under more than one connection")]
    AmbiguousConnection {
        /// Description of the record.
        what: String,
        /// Connections that have it.
        choices: Vec<ConnectionChoice>,
    },
    /// The connection does not exist in this source.
    #[error("there is no connection `{asked}`")]
    ConnectionNotFound {
        /// Id of the connection in the call.
        asked: String,
        /// Connections that exist.
        choices: Vec<ConnectionChoice>,
    },
    /// The record or its stream does not exist.
    #[error("{what}")]
    NotFound {
        /// Sentence that says what was not found.
        what: String,
    },
    /// The stream does not have the requested field.
    #[error("stream `{stream}` has no field `{field}`")]
    UnknownField {
        /// Name of the stream.
        stream: String,
        /// Name of the field in the call.
        field: String,
        /// Fields that exist.
        known: Vec<String>,
    },
    /// The query is invalid.
    #[error("{problem}")]
    InvalidQuery {
        /// Kind of the fault.
        fault: QueryFault,
        /// Description of the fault, quoting the query.
        problem: String,
        /// Instruction for a valid query.
        hint: String,
    },
    /// The position of a search has expired.
    #[error("the search changed after this page was returned")]
    InvalidCursor,
    /// The source did not answer within its deadline.
    #[error("no answer within {} ms", .after.as_millis())]
    Timeout {
        /// Deadline that passed.
        after: Duration,
    },
    /// The server could not be reached, or reports that it is unavailable.
    #[error("{problem}")]
    Unreachable {
        /// Description of the failure, in our words.
        problem: String,
    },
    /// The state of this server that the source needs cannot be used. The source itself has not failed.
    #[error("{problem}")]
    StateUnavailable {
        /// Description of the failure for callers: without addresses and paths of this server.
        problem: String,
    },
    /// The server asks for a pause (rate limit).
    #[error("the server asks for a pause")]
    RateLimited {
        /// Length of the pause, if the server states it.
        retry_after: Option<Duration>,
    },
    /// The response violates the record-server protocol.
    #[error("{0}")]
    Protocol(ProtocolFault),
    /// The credential is missing, expired or rejected.
    #[error("{problem}")]
    Reauthorize {
        /// Description of the problem.
        problem: String,
        /// Action that fixes it: "run `pdpp connect URL`".
        remedy: String,
    },
    /// Several sources have the record or connection.
    #[error("{what} is in more than one source")]
    AmbiguousSource {
        /// Description of what the call asks for.
        what: String,
        /// Sources that have it.
        sources: Vec<SourceName>,
        /// Connection in each of these sources, qualified by the source.
        choices: Vec<ConnectionChoice>,
    },
    /// The circuit breaker of the source is open after repeated failures.
    #[error("it failed repeatedly; the next attempt is in {} s", .pause.as_secs().max(1))]
    CircuitOpen {
        /// Time until the next attempt.
        pause: Duration,
    },
    /// No concurrency permit became free in time.
    #[error("too many calls are waiting for it")]
    NoPermit,
    /// No memory for large records became free in time.
    #[error("other calls are working on long records, and no memory became free in time")]
    Busy,
    /// One of several sources failed, and the query was for that source only.
    #[error("{error}")]
    FromSource {
        /// Name of that source.
        source_name: SourceName,
        /// Error of that source.
        error: Box<Self>,
    },
    /// All of the sources that were queried failed.
    #[error("{what}")]
    AllFailed {
        /// Sentence that says what failed.
        what: String,
        /// Sources that failed, with their codes.
        failed: Vec<Unavailable>,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PostgresError> for SourceError {
    fn from(error: PostgresError) -> Self {
        Self::Store(error.into())
    }
}

impl SourceError {
    /// Returns the stable code of the error.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.code,
            Self::AmbiguousConnection { .. } | Self::AmbiguousSource { .. } => AMBIGUOUS_CONNECTION,
            Self::ConnectionNotFound { .. } => "connection_not_found",
            Self::NotFound { .. } => "not_found",
            Self::UnknownField { .. } => "unknown_field",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidQuery { fault, .. } => fault.code(),
            Self::Timeout { .. } => "source_timeout",
            Self::Unreachable { .. }
            | Self::StateUnavailable { .. }
            | Self::CircuitOpen { .. }
            | Self::NoPermit
            | Self::AllFailed { .. }
            | Self::Store(_) => "source_unavailable",
            Self::Busy => "busy",
            Self::RateLimited { .. } => "source_rate_limited",
            Self::Protocol(_) => "source_protocol",
            Self::Reauthorize { .. } => "reauthorize",
            Self::FromSource { error, .. } => error.code(),
        }
    }

    /// Returns the error without the name of the source that it is from.
    #[must_use]
    pub fn innermost(&self) -> &Self {
        match self {
            Self::FromSource { error, .. } => error.innermost(),
            other => other,
        }
    }

    /// Returns true if the source itself failed, so that the failure counts for its circuit breaker.
    #[must_use]
    pub fn is_source_failure(&self) -> bool {
        match self {
            Self::Timeout { .. }
            | Self::Unreachable { .. }
            | Self::Protocol(_)
            | Self::RateLimited { .. } => true,
            Self::Refused(refusal) => refusal.status >= 500,
            Self::Store(StoreError::Postgres(error)) => error.is_server_failure(),
            _ => false,
        }
    }

    /// Returns true if the same query may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status >= 500 || refusal.status == 429,
            Self::Timeout { .. }
            | Self::Unreachable { .. }
            | Self::Protocol(_)
            | Self::RateLimited { .. }
            | Self::StateUnavailable { .. }
            | Self::CircuitOpen { .. }
            | Self::NoPermit
            | Self::Busy
            | Self::AllFailed { .. }
            | Self::Reauthorize { .. }
            | Self::Store(_) => true,
            Self::FromSource { error, .. } => error.is_transient(),
            _ => false,
        }
    }

    /// Converts the error to the entry of a failed source beside the answers of others.
    #[must_use]
    pub fn unavailable(&self, source: SourceName) -> Unavailable {
        let hint = match self {
            Self::Reauthorize { remedy, .. } => Some(remedy.clone()),
            Self::RateLimited { retry_after: Some(pause) } | Self::CircuitOpen { pause } => {
                Some(format!("the next attempt is in {} s", pause.as_secs().max(1)))
            }
            _ => None,
        };
        Unavailable { source, code: self.code().to_owned(), hint }
    }
}

/// Error code of a query that matches several connections.
pub const AMBIGUOUS_CONNECTION: &str = "ambiguous_connection";

/// Kind of a fault in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryFault {
    /// The stream does not exist, at least not in that connection.
    UnknownStream,
    /// A field does not exist.
    UnknownField,
    /// The stream does not support the filter.
    InvalidFilter,
    /// The stream cannot be sorted by the field.
    InvalidSort,
    /// The stream does not declare the view.
    InvalidView,
    /// The stream does not declare the relation.
    InvalidExpand,
    /// The stream does not support the aggregate.
    InvalidAggregate,
    /// The cursor belongs to another query.
    MismatchedCursor,
    /// The cursor is malformed.
    MalformedCursor,
    /// The change token is of another store, or has expired.
    ExpiredCursor,
    /// The window is outside the field.
    InvalidWindow,
    /// The record has no such field.
    FieldNotFound,
    /// The field is not a string.
    FieldNotText,
    /// The field does not contain the text of the window.
    QueryNotFound,
    /// An argument that requires a single connection, stream or field was combined with several.
    InvalidArgument,
    /// The source does not support the operation.
    NotSupported,
}

impl QueryFault {
    /// Returns the stable code, which is that of the record-server contract where it defines one.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownStream => "stream_not_declared",
            Self::UnknownField => "unknown_field",
            Self::InvalidFilter => "invalid_filter",
            Self::InvalidSort => "invalid_sort",
            Self::InvalidExpand => "invalid_expand",
            Self::MismatchedCursor | Self::MalformedCursor => "invalid_cursor",
            Self::ExpiredCursor => "cursor_expired",
            Self::InvalidWindow => "invalid_window",
            Self::FieldNotFound => "field_not_found",
            Self::FieldNotText => "field_not_text",
            Self::QueryNotFound => "query_not_found",
            Self::InvalidView | Self::InvalidAggregate | Self::InvalidArgument => "invalid_argument",
            Self::NotSupported => "not_supported",
        }
    }
}

/// Error response of a record server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status of the response.
    pub status: u16,
    /// Error code of the server, such as `grant_stream_not_allowed`.
    pub code: String,
    /// Message of the server: untrusted text, to be shown only.
    pub message: String,
    /// Hint of the server: untrusted text, to be shown only.
    pub hint: Option<String>,
    /// Fault in the query, if the response says how to correct it. Its code then equals `code`.
    pub fault: Option<QueryFault>,
    /// Remedy in our own words.
    pub advice: Option<&'static str>,
    /// Parameter that the error is about.
    pub param: Option<String>,
    /// Connections that the server offers as choices.
    pub choices: Vec<ConnectionChoice>,
}

/// Codes for a connection or a stream that does not exist, or that the token may not read.
const PLACE_CODES: [&str; 5] = [
    "connection_not_found",
    "context.instance_mismatch",
    "context.stream_not_allowed",
    "grant_stream_not_allowed",
    "stream_not_declared",
];

impl Refusal {
    /// Returns true if the server refuses a connection or a stream, because it does not exist or the grant excludes
    /// it.
    pub fn is_about_a_place(&self) -> bool {
        PLACE_CODES.contains(&self.code.as_str())
    }

    /// Returns the fault of the query and how to correct it, if the response says so: our advice, or otherwise the
    /// server's hint.
    #[must_use]
    pub fn correction(&self) -> Option<(QueryFault, String)> {
        let advice = match (self.advice, &self.hint) {
            (Some(advice), _) => advice.to_owned(),
            (None, Some(hint)) => format!("The record server says: {hint}"),
            (None, None) => return None,
        };
        Some((self.fault?, advice))
    }
}

/// Connection that an error offers as a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionChoice {
    /// Id of the connection.
    pub connection_id: ConnectionId,
    /// Display name of the connection.
    pub display_name: Option<String>,
}

impl From<&ConnectionSchema> for ConnectionChoice {
    fn from(connection: &ConnectionSchema) -> Self {
        let ConnectionSchema { connection_id, display_name, .. } = connection;
        Self { connection_id: connection_id.clone(), display_name: display_name.clone() }
    }
}

/// Violation of the record-server protocol by a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFault {
    /// The content type is not JSON; proxies and login pages return HTML.
    #[error("the answer is {content_type}, not JSON (HTTP {status})")]
    NotJson {
        /// HTTP status of the response.
        status: u16,
        /// Media type without parameters.
        content_type: String,
    },
    /// The JSON is invalid or truncated.
    #[error("the answer is broken JSON: {problem}")]
    BrokenJson {
        /// Description of the syntax error, without text of the response.
        problem: String,
    },
    /// The JSON does not have the shape of the protocol.
    #[error("the answer has no {missing}")]
    WrongShape {
        /// Name of the missing part.
        missing: &'static str,
    },
    /// The body exceeds the size limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// Size limit in bytes.
        limit: usize,
    },
    /// A message of an MCP server is not of the protocol.
    #[error("{problem}")]
    InvalidMessage {
        /// Description of the problem, without text of the message.
        problem: String,
    },
    /// The tools of an MCP server, or the form of their answers, are not known.
    #[error("{problem}; {remedy}")]
    UnknownTools {
        /// Description of the problem.
        problem: String,
        /// Command that shows what to write.
        remedy: String,
        /// Setting to write, for the output of that command.
        setting: String,
    },
    /// Servers of fetchwell are sources of each other.
    #[error(
        "the call has passed {hops} servers of fetchwell, which name each other in a circle; remove one of the sources"
    )]
    Cycle {
        /// Number of servers that the call has passed.
        hops: u32,
    },
    /// The server redirects within its origin without an end.
    #[error("the server redirects again and again")]
    EndlessRedirect,
    /// The server redirects to another origin, to which the token must not be sent.
    #[error("the server redirects to {to}, and the credential stays with its own server")]
    ForeignRedirect {
        /// Origin of the redirect target.
        to: String,
    },
}

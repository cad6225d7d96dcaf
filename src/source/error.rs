//! What can go wrong in a source, in the words of the remedy.

use std::time::Duration;

use super::store::StoreError;
use crate::handle::{ConnectionId, SourceName};
use crate::record::{ConnectionSchema, Unavailable};

/// Why a source did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The record server answered with an error of its own; it passes through.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// A record without a connection fits several.
    #[error("{what} is under more than one connection")]
    ChooseConnection {
        /// The record, as it was asked for.
        what: String,
        /// The connections it fits.
        choices: Vec<ConnectionChoice>,
    },
    /// The connection does not exist here.
    #[error("there is no connection `{asked}`")]
    UseKnownConnection {
        /// The id that was asked for.
        asked: String,
        /// The connections there are.
        choices: Vec<ConnectionChoice>,
    },
    /// The record, or its stream, does not exist.
    #[error("{what}")]
    SearchAgain {
        /// What was not found, as a sentence.
        what: String,
    },
    /// A field was asked that the record's stream does not have.
    #[error("stream `{stream}` has no field `{field}`")]
    UseKnownField {
        /// The stream.
        stream: String,
        /// The field that was asked for.
        field: String,
        /// Fields there are.
        known: Vec<String>,
    },
    /// The question cannot be answered as it is put.
    #[error("{problem}")]
    CorrectQuery {
        /// What kind of fault it is.
        fault: QueryFault,
        /// What is wrong with it, quoting what was asked.
        problem: String,
        /// How to put it.
        hint: String,
    },
    /// The position of a search is no longer valid.
    #[error("the search changed since this page was given")]
    RestartSearch,
    /// No answer within the deadline.
    #[error("no answer within {} ms", .after.as_millis())]
    RetryAfterTimeout {
        /// The deadline that passed.
        after: Duration,
    },
    /// The server could not be reached, or says that it cannot serve.
    #[error("{problem}")]
    CheckServer {
        /// What happened, in our words.
        problem: String,
    },
    /// The server asks for a pause.
    #[error("the server asks for a pause")]
    Wait {
        /// For how long, when it says so.
        retry_after: Option<Duration>,
    },
    /// The server does not speak the record-server protocol.
    #[error("{0}")]
    FixServer(ProtocolFault),
    /// The credential is missing, expired or no longer accepted.
    #[error("{problem}")]
    Reauthorize {
        /// What is wrong with it.
        problem: String,
        /// What mends it, as something to do: "run `pdpp connect URL`".
        remedy: String,
    },
    /// A record, or a connection, that several sources have.
    #[error("{what} is in more than one source")]
    ChooseSource {
        /// What was asked for.
        what: String,
        /// The sources that have it.
        sources: Vec<SourceName>,
        /// Its connection in each of them, as it is told apart.
        choices: Vec<ConnectionChoice>,
    },
    /// The source failed again and again and is left alone for a while.
    #[error("it failed again and again, and is asked again in {} s", .pause.as_secs().max(1))]
    LeaveAlone {
        /// How long still.
        pause: Duration,
    },
    /// More questions wait for the source than it answers in time.
    #[error("more questions are waiting for it than it answers in time")]
    AskInTurn,
    /// The records are long, and other calls use the memory for long records.
    #[error("other calls are working on long records, and no memory became free in time")]
    Busy,
    /// One of several sources failed, and the question was for it alone.
    #[error("{error}")]
    Of {
        /// Which.
        source_name: SourceName,
        /// Why.
        error: Box<Self>,
    },
    /// Several sources were asked, and none of them answered.
    #[error("{what}")]
    NoneAnswered {
        /// What nobody answered.
        what: String,
        /// All of them.
        failed: Vec<Unavailable>,
    },
    /// The embedded store cannot be read.
    #[error(transparent)]
    MendStore(#[from] StoreError),
}

impl SourceError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.code,
            Self::ChooseConnection { .. } | Self::ChooseSource { .. } => AMBIGUOUS_CONNECTION,
            Self::UseKnownConnection { .. } => "connection_not_found",
            Self::SearchAgain { .. } => "not_found",
            Self::UseKnownField { .. } => "unknown_field",
            Self::RestartSearch => "invalid_cursor",
            Self::CorrectQuery { fault, .. } => fault.code(),
            Self::RetryAfterTimeout { .. } => "source_timeout",
            Self::CheckServer { .. }
            | Self::LeaveAlone { .. }
            | Self::AskInTurn
            | Self::NoneAnswered { .. }
            | Self::MendStore(_) => "source_unavailable",
            Self::Busy => "busy",
            Self::Wait { .. } => "source_rate_limited",
            Self::FixServer(_) => "source_protocol",
            Self::Reauthorize { .. } => "reauthorize",
            Self::Of { error, .. } => error.code(),
        }
    }

    /// Whether the source itself failed, so that asking again and again is of no use.
    #[must_use]
    pub fn is_of_the_source(&self) -> bool {
        match self {
            Self::RetryAfterTimeout { .. }
            | Self::CheckServer { .. }
            | Self::FixServer(_)
            | Self::Wait { .. } => true,
            Self::Refused(refusal) => refusal.status >= 500,
            _ => false,
        }
    }

    /// Whether the same question may be answered at another time.
    #[must_use]
    pub fn is_of_the_moment(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status >= 500 || refusal.status == 429,
            Self::RetryAfterTimeout { .. }
            | Self::CheckServer { .. }
            | Self::FixServer(_)
            | Self::Wait { .. }
            | Self::LeaveAlone { .. }
            | Self::AskInTurn
            | Self::Busy
            | Self::NoneAnswered { .. }
            | Self::Reauthorize { .. }
            | Self::MendStore(_) => true,
            Self::Of { error, .. } => error.is_of_the_moment(),
            _ => false,
        }
    }

    /// As it stands beside an answer that others gave.
    #[must_use]
    pub fn unavailable(&self, source: SourceName) -> Unavailable {
        let hint = match self {
            Self::Reauthorize { remedy, .. } => Some(remedy.clone()),
            Self::Wait { retry_after: Some(pause) } | Self::LeaveAlone { pause } => {
                Some(format!("asked again after {} s", pause.as_secs().max(1)))
            }
            _ => None,
        };
        Unavailable { source, code: self.code().to_owned(), hint }
    }
}

/// The code of a question that fits several connections.
pub const AMBIGUOUS_CONNECTION: &str = "ambiguous_connection";

/// What is wrong with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryFault {
    /// The stream does not exist, or not in that connection.
    UnknownStream,
    /// A field does not exist.
    UnknownField,
    /// A filter that the stream does not take.
    InvalidFilter,
    /// A field that the stream does not sort by.
    InvalidSort,
    /// A view that the stream does not have.
    InvalidView,
    /// A relation that the stream does not have.
    InvalidExpand,
    /// A figure that the stream does not give.
    InvalidAggregate,
    /// A position of another question.
    MismatchedCursor,
    /// A position that is none.
    MalformedCursor,
    /// A token for changes that is of another store, or too old.
    ExpiredCursor,
    /// A window that the field does not have.
    InvalidWindow,
    /// The record has no such field.
    FieldNotFound,
    /// The field is not text.
    FieldNotText,
    /// The text that was looked for is not in the field.
    QueryNotFound,
    /// Something that only goes with one connection, stream or argument was asked of several.
    InvalidArgument,
    /// The source does not do that at all.
    NotSupported,
}

impl QueryFault {
    /// The stable code, of the record-server contract where it has one.
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

/// A record server's own error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Its code, such as `grant_stream_not_allowed`.
    pub code: String,
    /// Its message: text of the server, to be shown and not followed.
    pub message: String,
    /// How to ask instead, in the server's words: text to be shown and not followed.
    pub hint: Option<String>,
    /// The mistake in the question, when the refusal says how to correct it. `code` is its code then.
    pub fault: Option<QueryFault>,
    /// The remedy, in our words.
    pub advice: Option<&'static str>,
    /// The parameter it is about.
    pub param: Option<String>,
    /// The connections it offers.
    pub choices: Vec<ConnectionChoice>,
}

/// Codes of a connection or a stream that the token may not read, or that is not there.
const PLACE_CODES: [&str; 5] = [
    "connection_not_found",
    "context.instance_mismatch",
    "context.stream_not_allowed",
    "grant_stream_not_allowed",
    "stream_not_declared",
];

impl Refusal {
    /// Returns whether the server refuses a connection or a stream: it is not there, or not for this grant.
    pub(crate) fn is_about_a_place(&self) -> bool {
        PLACE_CODES.contains(&self.code.as_str())
    }

    /// Returns how to correct the question, when the refusal says so: our advice, or else the server's words.
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

/// A connection that an error offers to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionChoice {
    /// Its id.
    pub connection_id: ConnectionId,
    /// Its label.
    pub display_name: Option<String>,
}

impl From<&ConnectionSchema> for ConnectionChoice {
    fn from(connection: &ConnectionSchema) -> Self {
        let ConnectionSchema { connection_id, display_name, .. } = connection;
        Self { connection_id: connection_id.clone(), display_name: display_name.clone() }
    }
}

/// How an answer fails to be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFault {
    /// The content type is not JSON; proxies and login pages answer HTML.
    #[error("the answer is {content_type}, not JSON (HTTP {status})")]
    NotJson {
        /// HTTP status.
        status: u16,
        /// The media type, without parameters.
        content_type: String,
    },
    /// The JSON is broken, or ends too early.
    #[error("the answer is broken JSON: {problem}")]
    BrokenJson {
        /// Where and how, without quoting the answer.
        problem: String,
    },
    /// The JSON has another shape than the protocol's.
    #[error("the answer has no {missing}")]
    WrongShape {
        /// What was looked for.
        missing: &'static str,
    },
    /// The body is larger than the limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The server redirects within its origin and never answers.
    #[error("the server redirects again and again")]
    EndlessRedirect,
    /// The server redirects to another origin, where the token must not go.
    #[error("the server redirects to {to}, and the credential stays with its own server")]
    ForeignRedirect {
        /// The origin it redirects to.
        to: String,
    },
}

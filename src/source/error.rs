//! What can go wrong in a source, in the words of the remedy.

use std::time::Duration;

use super::store::StoreError;
use crate::handle::ConnectionId;

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
        /// The command that mends it.
        command: String,
    },
    /// The embedded store cannot be read.
    #[error(transparent)]
    MendStore(#[from] StoreError),
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
    /// The parameter it is about.
    pub param: Option<String>,
    /// The connections it offers.
    pub choices: Vec<ConnectionChoice>,
}

/// A connection that an error offers to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionChoice {
    /// Its id.
    pub connection_id: ConnectionId,
    /// Its label.
    pub display_name: Option<String>,
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
    /// The server redirects to another origin, where the token must not go.
    #[error("the server redirects to {to}, and the credential stays with its own server")]
    ForeignRedirect {
        /// The origin it redirects to.
        to: String,
    },
}

//! Errors of a session as errors of a source.

use std::error::Error;
use std::time::Duration;

use fetchwell_callers::MAX_HOPS;
use fetchwell_core::fit::first_bytes;
use fetchwell_source::{ProtocolFault, Refusal, SourceError};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
};
use tokio::task::JoinError;

use crate::tools::{SEARCHES, ToolsFault, names};

/// Maximum size of an answer, in bytes. It is a limit of rmcp's.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Maximum length of a server's message in an error, in bytes.
const MAX_MESSAGE_BYTES: usize = 1_000;

/// Longest pause that a server can ask for.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Reason why a server cannot be used or did not answer a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It cannot be reached or started, or the connection broke.
    Unreachable(String),
    /// It does not accept the credential, or needs one.
    Unauthorized,
    /// The credential is missing or not valid, or the server does not accept it.
    Reauthorize {
        /// Description of the problem.
        problem: String,
        /// Instruction for the user.
        remedy: String,
    },
    /// The state of this program that the call needs cannot be used.
    StateUnavailable(String),
    /// It asks for a pause.
    RateLimited(Option<Duration>),
    /// It did not answer in time.
    Timeout(Duration),
    /// The answer is too large.
    TooLarge,
    /// The answer is not of the protocol.
    InvalidMessage(String),
    /// It reports an error of its own.
    Refused(String),
    /// The session ended. A new one can be opened.
    Closed,
    /// Its tools cannot be used.
    Tools(ToolsFault),
    /// The server denies a tool that it listed.
    UnknownTool(String),
    /// The call has passed too many servers of this kind.
    Cycle,
    /// A defect of this program stopped the read.
    Internal,
    /// Its search answers with text of an unknown form.
    TextOnly,
    /// The answer of its search has no list of results where it is expected.
    NoResults,
}

impl Problem {
    /// Returns the problem of a task that did not return: it panicked, or the program is ending.
    pub(crate) fn of_task(error: &JoinError) -> Self {
        if error.is_panic() { Self::Internal } else { Self::Closed }
    }

    /// Returns the problem of a session that could not be opened.
    pub(crate) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::Refused(truncated(&error.message)),
            ClientInitializeError::ConnectionClosed(_) => {
                Self::Unreachable("the server ended before it answered `initialize`".to_owned())
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::InvalidMessage(
                "the server speaks no revision of MCP that this program speaks".to_owned(),
            ),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_start(fallback),
            ClientInitializeError::TransportError { error, .. } => Self::of_chain(error),
            ClientInitializeError::Cancelled => Self::Closed,
            _ => Self::InvalidMessage("the answer to `initialize` is none".to_owned()),
        }
    }

    /// Returns the problem of a call.
    pub(crate) fn of_call(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused(truncated(&error.message)),
            ServiceError::TransportSend(error) => Self::of_chain(error),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Self::Closed,
            ServiceError::Timeout { timeout } => Self::Timeout(*timeout),
            _ => Self::InvalidMessage("the answer is not that of a tool".to_owned()),
        }
    }

    /// Finds the cause that says what to do. Messages of the chain have URLs and bodies, and are not used.
    fn of_chain(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<AuthRequiredError>() || error.is::<InsufficientScopeError>() {
                return Self::Unauthorized;
            }
            if let Some(status) = error.downcast_ref::<HttpStatusError>() {
                return Self::of_status(status);
            }
            if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
                && let Some(problem) = Self::of_transport(error)
            {
                return problem;
            }
            if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                return Self::of_request(error);
            }
            cause = error.source();
        }
        Self::Unreachable("the connection broke".to_owned())
    }

    fn of_status(error: &HttpStatusError) -> Self {
        match error.status {
            429 => Self::RateLimited(error.retry_after.as_deref().and_then(pause)),
            status => Self::Unreachable(format!("the server answers HTTP {status}")),
        }
    }

    fn of_transport(error: &StreamableHttpError<reqwest::Error>) -> Option<Self> {
        Some(match error {
            StreamableHttpError::HttpStatus(status) => Self::of_status(status),
            StreamableHttpError::ResponseBodyTooLarge { .. } => Self::TooLarge,
            StreamableHttpError::Sse(_) | StreamableHttpError::UnexpectedEndOfStream => {
                Self::Unreachable("the connection broke before the answer was complete".to_owned())
            }
            StreamableHttpError::UnexpectedContentType(_) => {
                Self::InvalidMessage("the answer is neither JSON nor a stream of events".to_owned())
            }
            StreamableHttpError::UnexpectedServerResponse(text) => {
                status_in(text).map_or_else(Self::not_of_the_protocol, Self::of_refusal)
            }
            StreamableHttpError::Deserialize(_) => Self::not_of_the_protocol(),
            StreamableHttpError::TransportChannelClosed
            | StreamableHttpError::SessionExpired
            | StreamableHttpError::SessionRecoveryTimeout
            | StreamableHttpError::ReinitializationFailed(_) => Self::Closed,
            StreamableHttpError::Client(error) => Self::of_request(error),
            _ => return None,
        })
    }

    fn not_of_the_protocol() -> Self {
        Self::InvalidMessage("the answer is broken JSON or not of the protocol".to_owned())
    }

    fn of_refusal(status: u16) -> Self {
        match status {
            401 | 403 => Self::Unauthorized,
            404 => Self::Unreachable("the server answers HTTP 404; check the path of the URL".to_owned()),
            status => Self::Unreachable(format!("the server answers HTTP {status}")),
        }
    }

    fn of_request(error: &reqwest::Error) -> Self {
        match error.status().map(|status| status.as_u16()) {
            Some(status) => Self::of_refusal(status),
            None if error.is_connect() => {
                let cause = fetchwell_outbound::innermost(error);
                let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
                Self::Unreachable(format!("the server cannot be reached{cause}"))
            }
            None => Self::Unreachable("the connection broke before the answer was complete".to_owned()),
        }
    }

    /// Converts the problem to an error of the source with this name, whose credential `unaccepted` describes.
    pub(crate) fn into_error(self, name: &str, unaccepted: impl FnOnce() -> SourceError) -> SourceError {
        match self {
            Self::Unreachable(problem) => SourceError::Unreachable { problem },
            Self::Closed => SourceError::Unreachable {
                problem: "the session ended before the answer was complete: the server closed it, or sent what is not of the protocol"
                    .to_owned(),
            },
            Self::Unauthorized => unaccepted(),
            Self::Reauthorize { problem, remedy } => SourceError::Reauthorize { problem, remedy },
            Self::StateUnavailable(problem) => SourceError::StateUnavailable { problem },
            Self::RateLimited(retry_after) => SourceError::RateLimited { retry_after },
            Self::Timeout(after) => SourceError::Timeout { after },
            Self::TooLarge => SourceError::Protocol(ProtocolFault::InvalidMessage {
                problem: format!("the answer is larger than {MAX_ANSWER_BYTES} bytes"),
            }),
            Self::InvalidMessage(problem) => SourceError::Protocol(ProtocolFault::InvalidMessage { problem }),
            Self::Refused(message) => refused(message),
            Self::Tools(fault) => unknown_tools(name, &fault.to_string(), setting_for(&fault)),
            Self::UnknownTool(tool) => {
                let tool = names(std::iter::once(tool.as_str()));
                let problem = format!("the server lists the tool {tool}, and says that it has none of this name");
                unknown_tools(name, &problem, NAME_ANOTHER.to_owned())
            }
            Self::Cycle => SourceError::Protocol(ProtocolFault::Cycle { hops: MAX_HOPS }),
            Self::Internal => SourceError::Unreachable {
                problem: "an internal error stopped the read; please report it".to_owned(),
            },
            Self::NoResults => unknown_tools(
                name,
                "the answer of the search has no list of results",
                "write where the list is into `search` of its [[source]] table, such as `results = \"/data/items\"`, or remove a wrong `results`"
                    .to_owned(),
            ),
            Self::TextOnly => unknown_tools(
                name,
                "the search of the server answers with text, and no form of its lines is configured",
                "write the form of a line into `search` of its [[source]] table, such as `line = \"- {title} ({id})\"`".to_owned(),
            ),
        }
    }
}

/// Setting to write when a tool cannot be called.
const NAME_ANOTHER: &str = "name another one as `tool` in its [[source]] table";

fn unknown_tools(name: &str, problem: &str, setting: String) -> SourceError {
    let remedy =
        format!("run `fetchwell source inspect {name}`, which proposes what to write into the configuration");
    SourceError::Protocol(ProtocolFault::UnknownTools { problem: problem.to_owned(), remedy, setting })
}

/// Returns what to write into the configuration for tools that cannot be used.
fn setting_for(fault: &ToolsFault) -> String {
    match fault {
        ToolsFault::NoTools => "a source needs a tool that searches and one that fetches".to_owned(),
        ToolsFault::Unrecognized { purpose, .. } => {
            let key = if *purpose == SEARCHES { "search" } else { "fetch" };
            format!("if one of them does, name it in its [[source]] table: `{key} = {{ tool = \"NAME\" }}`")
        }
        ToolsFault::Missing { .. } | ToolsFault::Destructive { .. } => NAME_ANOTHER.to_owned(),
        ToolsFault::Undeclared { table, key: "arguments", .. } => {
            format!("remove it from `arguments` of `{table}` in its [[source]] table")
        }
        ToolsFault::Undeclared { table, key, .. } => {
            format!(
                "write the name of one of these as `{key}` into `{table}` of its [[source]] table, or remove `{key}`"
            )
        }
        ToolsFault::Argument { what: "id", .. } => {
            "write it into `fetch` of its [[source]] table: `id = \"NAME\"`".to_owned()
        }
        ToolsFault::Argument { .. } => {
            "write it into `search` of its [[source]] table: `query = \"NAME\"`".to_owned()
        }
    }
}

/// Returns the error that a tool reports, in the server's words.
pub(crate) fn refused(message: String) -> SourceError {
    SourceError::Refused(Box::new(Refusal {
        // The call was understood and refused; the server itself works.
        status: 422,
        code: "tool_error".to_owned(),
        message,
        hint: None,
        fault: None,
        advice: None,
        param: None,
        choices: Vec::new(),
    }))
}

/// Returns a message of a server, truncated to its maximum length.
pub(crate) fn truncated(message: &str) -> String {
    first_bytes(message.trim(), MAX_MESSAGE_BYTES).to_owned()
}

/// Returns true if the words of a server say that it has no tool of this name. Those of a record that does not exist differ in
/// their beginning, such as `Error executing tool fetch: not found`.
pub(crate) fn is_unknown_tool(words: &str, tool: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['"', '\'', '`', ':'], "");
    let words = plain(first_bytes(words.trim_start(), MAX_MESSAGE_BYTES));
    // The official SDK for TypeScript puts the code of the protocol before its words.
    let words = match words.strip_prefix("mcp error -").and_then(|rest| rest.split_once(' ')) {
        Some((_code, words)) => words,
        None => &words,
    };
    let starts = ["unknown tool", "tool not found", "no such tool", "no tool named"].map(str::to_owned);
    let tool = plain(tool);
    let named = ["not found", "does not exist", "is unknown"].map(|end| format!("tool {tool} {end}"));
    starts.iter().chain(&named).any(|start| words.starts_with(start.as_str()))
}

fn pause(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_PAUSE))
}

/// Returns the status in the text with which rmcp reports an answer of another status: `HTTP 401 Unauthorized: BODY`.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_told_from_a_missing_record() {
        for (words, expect) in [
            ("Unknown tool: fetch", true),
            ("Unknown tool: 'fetch'", true),
            ("tool not found", true),
            ("MCP error -32602: Tool fetch not found", true),
            ("Tool \"fetch\" does not exist", true),
            ("Tool other not found", false),
            ("Error executing tool fetch: not found", false),
            ("Document not found", false),
            ("The tool shed does not exist", false),
            ("", false),
        ] {
            assert_eq!(is_unknown_tool(words, "fetch"), expect, "{words}");
        }
    }

    #[test]
    fn the_status_of_an_answer_is_read_from_its_text() {
        assert_eq!(status_in("HTTP 401 Unauthorized: {}"), Some(401));
        assert_eq!(status_in("HTTP 404 Not Found: "), Some(404));
        assert_eq!(status_in("could not parse"), None);
    }
}

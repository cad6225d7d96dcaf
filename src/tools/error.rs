//! Every error a model can get, and how it is written.
//!
//! Each variant is named by what helps. Each has a stable code, a message that quotes what was wrong and a
//! hint that names the next call, so that the text alone is enough: many clients show nothing else.

use serde::Serialize;

use super::arguments::quote;
use crate::cursor::CursorFault;
use crate::fit::{budget, clip};
use crate::handle::{ConnectionId, InvalidHandle, SourceName};
use crate::source::{ConnectionChoice, SourceError};

/// Connections shown in an error; the rest are counted.
const CHOICES_SHOWN: usize = 8;

/// The longest label of a connection in an error, in bytes.
const LABEL: usize = 80;

/// Why a tool did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The id is not a handle.
    #[error("`{}` is not a handle: {refused}", quote(input))]
    CopyHandle {
        /// What was sent.
        input: String,
        /// What is wrong with it.
        refused: InvalidHandle,
    },
    /// An argument is missing, unknown, or of the wrong kind.
    #[error("argument `{}` of `{tool}`: {problem}", quote(param))]
    CorrectArgument {
        /// The tool.
        tool: &'static str,
        /// The argument.
        param: String,
        /// What is wrong with it.
        problem: String,
        /// What to send instead.
        hint: String,
    },
    /// The connection argument and the one inside the handle differ.
    #[error("`connection_id` is `{argument}` and the handle names `{embedded}`")]
    DropConnectionArgument {
        /// The argument.
        argument: ConnectionId,
        /// The connection of the handle.
        embedded: ConnectionId,
    },
    /// The cursor is not good, or no longer.
    #[error("the cursor is not valid: {0}")]
    SearchFromStart(CursorFault),
    /// The answer cannot be made small enough.
    #[error("the answer would take {bytes} bytes and the budget is {budget}")]
    AskForLess {
        /// What it would take.
        bytes: usize,
        /// What it may take.
        budget: usize,
        /// How to ask for less.
        hint: String,
    },
    /// A part of a document that it does not have.
    #[error("the record has {parts} parts, numbered from 0")]
    AskForExistingPart {
        /// How many it has.
        parts: u32,
        /// The handle of the last.
        last: String,
    },
    /// The source could not answer.
    #[error("source `{source_name}`: {error}")]
    Source {
        /// Its name.
        source_name: SourceName,
        /// Why.
        error: SourceError,
    },
    /// The whole call took too long.
    #[error("no answer within {seconds} seconds")]
    CallAgain {
        /// The deadline.
        seconds: u64,
    },
    /// Something is wrong with fetchwell itself.
    #[error("fetchwell failed: {problem}")]
    Report {
        /// What happened.
        problem: String,
    },
}

impl ToolError {
    pub(super) fn correct_argument(tool: &'static str, param: &str, problem: String) -> Self {
        let hint = match tool {
            "search" => "Call search with {\"query\": \"words to find\"}.",
            _ => "Call fetch with {\"id\": \"an id of a search result\"}.",
        };
        Self::CorrectArgument { tool, param: param.to_owned(), problem, hint: hint.to_owned() }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::CopyHandle { .. } | Self::AskForExistingPart { .. } => "invalid_handle",
            Self::CorrectArgument { .. } => "invalid_argument",
            Self::DropConnectionArgument { .. } => "conflicting_connection_id",
            Self::SearchFromStart(_) => "invalid_cursor",
            Self::AskForLess { .. } => "response_too_large",
            Self::CallAgain { .. } => "source_timeout",
            Self::Report { .. } => "internal_error",
            Self::Source { error, .. } => source_code(error),
        }
    }

    /// The next call.
    fn hint(&self) -> String {
        match self {
            Self::CopyHandle { refused: InvalidHandle { canonical: Some(handle), .. }, .. } => {
                format!("If you mean that record, its id is `{}`.", clip(handle, 600))
            }
            Self::CopyHandle { input, .. } if input.starts_with("http://") || input.starts_with("https://") => {
                "That is a link and not an id of a record here; open it elsewhere, or search for the record.".to_owned()
            }
            Self::CopyHandle { .. } => {
                "Copy the `id` of a search result exactly, e.g. `cin_4f2a/orders:o1`; search again if you have none."
                    .to_owned()
            }
            Self::CorrectArgument { hint, .. } | Self::AskForLess { hint, .. } => hint.clone(),
            Self::DropConnectionArgument { .. } => {
                "Leave out `connection_id`: the id already says which connection it is of.".to_owned()
            }
            Self::SearchFromStart(_) => "Search again without `cursor`.".to_owned(),
            Self::AskForExistingPart { last, .. } => format!("The last part is `{last}`."),
            Self::CallAgain { .. } => "Call again, or ask for less at once.".to_owned(),
            Self::Report { .. } => {
                "Call again; if it stays, report it with the server's log of this call.".to_owned()
            }
            Self::Source { error, .. } => source_hint(error),
        }
    }

    /// The error as it goes out, within its budget.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().to_owned(),
            message: clip(&self.to_string(), 700),
            hint: self.hint(),
            ..ErrorBody::default()
        };
        match self {
            Self::CorrectArgument { param, .. } => body.param = Some(quote(param)),
            Self::SearchFromStart(fault) => body.reason = Some(fault.reason()),
            Self::CopyHandle { refused, .. } => body.reason = Some(refused.fault.reason()),
            Self::Source { source_name, error } => {
                body.source = Some(clip(source_name.as_str(), LABEL));
                body.add_source_facts(error);
            }
            _ => {}
        }
        body.fit();
        body
    }
}

fn source_code(error: &SourceError) -> &str {
    match error {
        SourceError::Refused(refusal) => &refusal.code,
        SourceError::ChooseConnection { .. } => "ambiguous_connection",
        SourceError::UseKnownConnection { .. } => "connection_not_found",
        SourceError::SearchAgain { .. } => "not_found",
        SourceError::UseKnownField { .. } => "unknown_field",
        SourceError::RestartSearch => "invalid_cursor",
        SourceError::CorrectQuery { fault, .. } => fault.code(),
        SourceError::RetryAfterTimeout { .. } => "source_timeout",
        SourceError::CheckServer { .. } | SourceError::MendStore(_) => "source_unavailable",
        SourceError::Wait { .. } => "source_rate_limited",
        SourceError::FixServer(_) => "source_protocol",
        SourceError::Reauthorize { .. } => "reauthorize",
    }
}

fn source_hint(error: &SourceError) -> String {
    match error {
        SourceError::Refused(refusal) => match (refusal.code.as_str(), refusal.choices.is_empty()) {
            ("ambiguous_connection", _) | (_, false) => CHOOSE.to_owned(),
            ("not_found" | "stream_not_declared", _) => "Search for the record and fetch the id of the result.".to_owned(),
            ("connection_not_found" | "context.instance_mismatch", _) => {
                "Use a connection id of a search result; `fetchwell connections` lists all there are.".to_owned()
            }
            ("grant_stream_not_allowed" | "context.stream_not_allowed" | "field_not_granted", _) => {
                "The grant does not cover that; use streams and fields of search results, or connect with a wider grant."
                    .to_owned()
            }
            _ => match &refusal.param {
                Some(param) => format!("The server refused `{param}`; leave it out or correct it."),
                None => "Correct the call as the message says, or search again.".to_owned(),
            },
        },
        SourceError::ChooseConnection { .. } => CHOOSE.to_owned(),
        SourceError::UseKnownConnection { .. } => "Use one of available_connections, or leave it out.".to_owned(),
        SourceError::SearchAgain { .. } => "Search for the record and fetch the id of the result.".to_owned(),
        SourceError::UseKnownField { known, .. } => {
            let known: Vec<&str> = known.iter().map(String::as_str).take(20).collect();
            format!("Its fields are: {}.", clip(&known.join(", "), 500))
        }
        SourceError::CorrectQuery { hint, .. } => clip(hint, 600),
        SourceError::RestartSearch => "Search again without `cursor`.".to_owned(),
        SourceError::RetryAfterTimeout { .. } => "Call again; if it stays, run `fetchwell doctor`.".to_owned(),
        SourceError::CheckServer { .. } => {
            "Call again in a moment; if it stays, `fetchwell doctor` tells what is wrong.".to_owned()
        }
        SourceError::MendStore(_) => "Do what the message says, then call again.".to_owned(),
        SourceError::Wait { retry_after: Some(pause) } => format!("Call again after {} seconds.", pause.as_secs().max(1)),
        SourceError::Wait { retry_after: None } => "Call again in a minute.".to_owned(),
        SourceError::FixServer(_) => {
            "The configured URL may not be a record server; `fetchwell doctor` checks it.".to_owned()
        }
        SourceError::Reauthorize { command, .. } => format!("Ask the user to run `{}`, then call again.", clip(command, 300)),
    }
}

const CHOOSE: &str = "Fetch again with the same id and `connection_id` set to one of available_connections.";

/// An error as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorBody {
    /// Stable code.
    pub code: String,
    /// What went wrong, quoting what was sent.
    pub message: String,
    /// The next call.
    pub hint: String,
    /// The argument it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// A finer word than the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The source that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Seconds to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Connections to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available_connections: Vec<ShownConnection>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_connections: Option<usize>,
}

/// A connection to choose, in an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownConnection {
    connection_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
}

impl ErrorBody {
    /// Compact JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn add_source_facts(&mut self, error: &SourceError) {
        match error {
            SourceError::Refused(refusal) => {
                self.param.clone_from(&refusal.param);
                self.choose_from(&refusal.choices);
            }
            SourceError::ChooseConnection { choices, .. }
            | SourceError::UseKnownConnection { choices, .. } => {
                self.choose_from(choices);
            }
            SourceError::RestartSearch => self.reason = Some(CursorFault::Changed.reason()),
            SourceError::Wait { retry_after: Some(pause) } => self.retry_after = Some(pause.as_secs().max(1)),
            _ => {}
        }
    }

    fn choose_from(&mut self, choices: &[ConnectionChoice]) {
        let shown = choices.iter().take(CHOICES_SHOWN).map(|choice| ShownConnection {
            connection_id: choice.connection_id.to_string(),
            display_name: choice.display_name.as_ref().map(|label| clip(label, LABEL)),
        });
        self.available_connections = shown.collect();
        self.more_connections =
            Some(choices.len() - self.available_connections.len()).filter(|more| *more > 0);
    }

    /// Connections go one by one, then the message is shortened: an id that is cut is of no use.
    fn fit(&mut self) {
        while self.json().len() > budget::ERROR && self.available_connections.pop().is_some() {
            self.more_connections = Some(self.more_connections.unwrap_or(0) + 1);
        }
        let excess = self.json().len().saturating_sub(budget::ERROR);
        if excess > 0 {
            let keep = crate::fit::json_len(&self.message).saturating_sub(excess);
            self.message = clip(&self.message, keep);
        }
    }
}

//! Every error a model can get, and how it is written.
//!
//! Each variant is named by what helps. Each has a stable code, a message that quotes what was wrong and a
//! hint that names the next call, so that the text alone is enough: many clients show nothing else.

use super::error_body::{ErrorBody, MAX_LABEL_BYTES};
use super::source_hints::{ErrorContext, SourceHints};
use crate::cursor::CursorFault;
use crate::fit::clip;
use crate::handle::{ConnectionId, InvalidHandle, RecordAddress, SourceName, StreamName};
use crate::source::{ConnectionChoice, Source, SourceError};
use crate::state::StateError;

/// Maximum length, in bytes of JSON, of text that was sent and is quoted.
const MAX_QUOTE_BYTES: usize = 200;

/// Hint for an invalid `source`. No example shows this argument, because most calls do better without it.
pub(super) const UNKNOWN_SOURCE_HINT: &str =
    "Leave out `source`: it is only for an error that names sources to choose from.";

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
    /// The cursor of a list is not good, or no longer.
    #[error("the cursor is not valid: {0}")]
    ListFromStart(CursorFault),
    /// A cursor of a text cannot be used.
    #[error("the cursor cannot be used: {0}")]
    ReadFromStart(CursorFault),
    /// Positions of cursors cannot be read.
    #[error("{0}")]
    MendState(StateError),
    /// A stream's declaration is of one account, and several have it.
    #[error("stream `{stream}` is under more than one connection, and `full` is about one")]
    ChooseForDetail {
        /// The stream.
        stream: StreamName,
        /// The connections that have it.
        choices: Vec<ConnectionChoice>,
    },
    /// The answer cannot be made small enough.
    #[error("the answer would take {overrun}")]
    AskForLess {
        /// Which budget it is over, and by how much.
        overrun: Overrun,
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
    /// A part of a document with a number that no part of it can have.
    #[error("the record has no part of that number")]
    AskForFirstPart {
        /// The handle of the whole, which gives the first part.
        first: String,
    },
    /// The source could not answer.
    #[error("{}{error}", prefix(source_name.as_ref()))]
    Source {
        /// Its name; none when it is about several.
        source_name: Option<SourceName>,
        /// Why.
        error: SourceError,
        /// Hints of the tool, and the record that the call names.
        context: Box<ErrorContext>,
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

/// What an answer is over. Its budget is in bytes and in tokens, and whoever asks for less has to know which was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overrun {
    /// Its bytes.
    #[error("{takes} bytes and the budget is {most} bytes")]
    Bytes {
        /// What it would take.
        takes: usize,
        /// What it may take.
        most: usize,
    },
    /// Its tokens, which are counted only up to the budget.
    #[error("about {about} tokens and the budget is {most} tokens")]
    Tokens {
        /// What it would take.
        about: usize,
        /// What it may take.
        most: usize,
    },
    /// It was not made, because not even its least fits.
    #[error("more than its budget of {most} tokens")]
    Unmade {
        /// What it may take.
        most: usize,
    },
}

impl ToolError {
    /// The error of a source, or of the one behind it that failed.
    #[must_use]
    pub fn of_source(source: &dyn Source, error: SourceError) -> Self {
        let mut source_name = (!source.is_several()).then(|| source.name().clone());
        let mut error = error;
        while let SourceError::FromSource { source_name: name, error: inner } = error {
            (source_name, error) = (Some(name), *inner);
        }
        Self::Source { source_name, error, context: Box::default() }
    }

    /// Creates the error for a `source` that does not exist.
    pub(super) fn unknown_source(tool: &'static str, name: &SourceName) -> Self {
        let problem = format!("there is no source `{name}`");
        Self::CorrectArgument {
            tool,
            param: "source".to_owned(),
            problem,
            hint: UNKNOWN_SOURCE_HINT.to_owned(),
        }
    }

    /// Sets the hints for an error of the source.
    pub(super) fn with_hints(mut self, hints: SourceHints) -> Self {
        if let Self::Source { context, .. } = &mut self {
            context.hints = hints;
        }
        self
    }

    /// Sets the record that the call names.
    pub(super) fn with_record(mut self, record: &RecordAddress) -> Self {
        if let Self::Source { context, .. } = &mut self {
            context.record = Some(record.clone());
        }
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::CopyHandle { .. } | Self::AskForExistingPart { .. } | Self::AskForFirstPart { .. } => {
                "invalid_handle"
            }
            Self::CorrectArgument { .. } => "invalid_argument",
            Self::DropConnectionArgument { .. } => "conflicting_connection_id",
            Self::SearchFromStart(_) | Self::ListFromStart(_) | Self::ReadFromStart(_) => "invalid_cursor",
            Self::MendState(_) => "state_unavailable",
            Self::ChooseForDetail { .. } => "ambiguous_schema_detail",
            Self::AskForLess { .. } => "response_too_large",
            Self::CallAgain { .. } => "source_timeout",
            Self::Report { .. } => "internal_error",
            Self::Source { error, .. } => error.code(),
        }
    }

    /// The next call.
    fn hint(&self) -> String {
        match self {
            Self::CopyHandle { refused: InvalidHandle { canonical: Some(handle), .. }, .. } => {
                format!("If you mean that record, its id is `{handle}`.")
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
            Self::MendState(_) => {
                "Do what the message says, then call again; or ask again without `cursor`.".to_owned()
            }
            Self::ListFromStart(CursorFault::Mismatched) => {
                "Send the cursor with the arguments of the page it came from, or list again without it.".to_owned()
            }
            Self::ListFromStart(_) => "List again without `cursor`.".to_owned(),
            Self::ReadFromStart(_) => "Read the text from its start, without `cursor`.".to_owned(),
            Self::ChooseForDetail { .. } => {
                "Call again with `connection_id` set to one of available_connections.".to_owned()
            }
            Self::AskForExistingPart { last, .. } => format!("The last part is `{last}`."),
            Self::AskForFirstPart { first } => format!("Fetch `{first}`, and go on with each `metadata.next`."),
            Self::CallAgain { .. } => "Call again, or ask for less at once.".to_owned(),
            Self::Report { .. } => {
                "Call again; if it stays, report it with the server's log of this call.".to_owned()
            }
            Self::Source { error, context, .. } => context.hint(error),
        }
    }

    /// The next call without the handle that would be in it, for one that is too long for an error. A handle
    /// is never shortened: a piece of one is of no use.
    fn hint_without_handle(&self) -> Option<&'static str> {
        match self {
            Self::CopyHandle { .. } => {
                Some("Copy the `id` of a search result exactly; search again if you have none.")
            }
            Self::AskForExistingPart { .. } | Self::AskForFirstPart { .. } => {
                Some("Fetch the id without its part, and go on with each `metadata.next`.")
            }
            Self::AskForLess { .. } => Some("Ask for less: fewer fields, or a smaller limit."),
            _ => None,
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
            Self::SearchFromStart(fault) | Self::ListFromStart(fault) | Self::ReadFromStart(fault) => {
                body.reason = Some(fault.reason());
            }
            Self::ChooseForDetail { choices, .. } => body.choose_from(choices, None),
            Self::CopyHandle { refused, .. } => body.reason = Some(refused.fault.reason()),
            Self::Source { source_name, error, context } => {
                body.source = source_name.as_ref().map(|name| clip(name.as_str(), MAX_LABEL_BYTES));
                body.add_source_facts(error, context.record.as_ref());
            }
            _ => {}
        }
        body.fit(self.hint_without_handle());
        body
    }
}

fn prefix(source: Option<&SourceName>) -> String {
    source.map_or_else(String::new, |source| format!("source `{source}`: "))
}

fn quote(text: &str) -> String {
    clip(text, MAX_QUOTE_BYTES)
}

//! Every error a model can get, and how it is written.
//!
//! Each variant is named by what helps. Each has a stable code, a message that quotes what was wrong and a
//! hint that names the next call, so that the text alone is enough: many clients show nothing else.

use super::Profile;
use super::arguments::quote;
use super::error_body::ErrorBody;
use super::example;
use crate::cursor::CursorFault;
use crate::fit::clip;
use crate::handle::{ConnectionId, InvalidHandle, RecordAddress, SourceName, StreamName};
use crate::source::store::StoreError;
use crate::source::{AMBIGUOUS_CONNECTION, ConnectionChoice, Refusal, Source, SourceError};
use crate::state::StateError;

/// Connections shown in an error; the rest are counted.
pub(super) const CHOICES_SHOWN: usize = 8;

/// The longest label of a connection in an error, in bytes.
pub(super) const LABEL: usize = 80;

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
        /// What was asked.
        asked: Box<Asked>,
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

/// What was asked of a source, as far as the next call depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The tool.
    pub tool: Option<&'static str>,
    /// Which arguments the client can send.
    pub profile: Profile,
    /// The record that an id named, as the id itself says.
    pub record: Option<RecordAddress>,
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
        Self::Source { source_name, error, asked: Box::default() }
    }

    /// An argument that is wrong, with an example that has it.
    pub(super) fn correct_argument(tool: &'static str, param: &str, problem: String) -> Self {
        let hint = example::hint(tool, param.split(['[', '.']).next().unwrap_or_default());
        Self::CorrectArgument { tool, param: param.to_owned(), problem, hint }
    }

    /// An argument without which there is no call.
    pub(super) fn missing_argument(tool: &'static str, param: &str) -> Self {
        Self::correct_argument(tool, param, "it is missing".to_owned())
    }

    /// An argument that the tool, or the profile, does not have.
    pub(super) fn unknown_argument(tool: &'static str, param: &str, known: &[&str]) -> Self {
        let problem = format!("there is no such argument; it takes {}", known.join(", "));
        Self::CorrectArgument { tool, param: param.to_owned(), problem, hint: example::hint(tool, "") }
    }

    /// Says which tool the source was asked for, of which profile.
    pub(super) fn asked_of(mut self, tool: Option<&'static str>, profile: Profile) -> Self {
        if let Self::Source { asked, .. } = &mut self {
            asked.tool = tool;
            asked.profile = profile;
        }
        self
    }

    /// Says which record the source was asked for.
    pub(super) fn about(mut self, record: &RecordAddress) -> Self {
        if let Self::Source { asked, .. } = &mut self {
            asked.record = Some(record.clone());
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
            Self::Source { error, asked, .. } => source_hint(error, asked),
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
            Self::Source { source_name, error, asked } => {
                body.source = source_name.as_ref().map(|name| clip(name.as_str(), LABEL));
                body.add_source_facts(error, asked);
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

fn source_hint(error: &SourceError, asked: &Asked) -> String {
    match error {
        SourceError::Refused(refusal) => match refusal.correction() {
            Some((_, hint)) => clip(&hint, 600),
            None => refusal_hint(refusal, asked),
        },
        SourceError::AmbiguousConnection { .. } => choose_hint(asked).to_owned(),
        SourceError::ConnectionNotFound { .. } => connection_hint(asked).to_owned(),
        SourceError::NotFound { .. } => search_hint(asked).to_owned(),
        SourceError::UnknownField { known, .. } => {
            let known: Vec<&str> = known.iter().map(String::as_str).take(20).collect();
            format!("Its fields are: {}.", clip(&known.join(", "), 500))
        }
        SourceError::InvalidQuery { hint, .. } => clip(hint, 600),
        SourceError::InvalidCursor => "Search again without `cursor`.".to_owned(),
        SourceError::AmbiguousSource { choices, .. } if !choices.is_empty() => choose_hint(asked).to_owned(),
        SourceError::AmbiguousSource { sources, .. } => source_choice(sources, asked),
        SourceError::CircuitOpen { pause } => {
            format!(
                "Call again after {} seconds; `fetchwell doctor` tells what is wrong.",
                pause.as_secs().max(1)
            )
        }
        SourceError::FromSource { error, .. } => source_hint(error, asked),
        SourceError::NoPermit | SourceError::AllFailed { .. } => AGAIN.to_owned(),
        SourceError::Busy => {
            "Call again in a moment, one call at a time, for one `connection_id`, and for fewer records or fields."
                .to_owned()
        }
        SourceError::Timeout { .. } => {
            "Call again; if it stays, run `fetchwell doctor`.".to_owned()
        }
        SourceError::Unreachable { .. } => AGAIN.to_owned(),
        SourceError::Store(StoreError::Building(_)) => "Call again in a moment.".to_owned(),
        SourceError::Store(StoreError::IndexMissing { .. } | StoreError::IndexDamaged { .. }) => {
            "Wait for that process to end, then call again.".to_owned()
        }
        SourceError::Store(_) => "Do what the message says, then call again.".to_owned(),
        SourceError::RateLimited { retry_after: Some(pause) } => {
            format!("Call again after {} seconds.", pause.as_secs().max(1))
        }
        SourceError::RateLimited { retry_after: None } => "Call again in a minute.".to_owned(),
        SourceError::Protocol(_) => {
            "The configured URL may not be a record server; `fetchwell doctor` checks it.".to_owned()
        }
        SourceError::Reauthorize { remedy, .. } => {
            format!("Ask the user to {}, then call again.", clip(remedy, 300))
        }
    }
}

/// What helps against a record server's own error.
fn refusal_hint(refusal: &Refusal, asked: &Asked) -> String {
    let hint = match (refusal.code.as_str(), &refusal.param) {
        (AMBIGUOUS_CONNECTION, _) => choose_hint(asked),
        _ if !refusal.choices.is_empty() => connection_hint(asked),
        _ if refusal.status >= 500 => AGAIN,
        ("not_found" | "stream_not_declared", _) => search_hint(asked),
        ("connection_not_found" | "context.instance_mismatch", _) => {
            return format!("{} `fetchwell connections` lists all there are.", connection_hint(asked));
        }
        ("grant_stream_not_allowed" | "context.stream_not_allowed" | "field_not_granted", _) => {
            "The grant does not cover that; use streams and fields of search results, or connect with a wider grant."
        }
        (_, Some(param)) => return format!("The server refused `{param}`; leave it out or correct it."),
        (_, None) => "Correct the call as the message says, or search again.",
    };
    hint.to_owned()
}

const AGAIN: &str = "Call again in a moment; if it stays, `fetchwell doctor` tells what is wrong.";

/// One of several sources has to be named, and not every client can.
fn source_choice(sources: &[SourceName], asked: &Asked) -> String {
    if asked.profile == Profile::OpenAi {
        return "Two sources are configured that have the same connection; tell the user to remove one of them.".to_owned();
    }
    let names: Vec<&str> = sources.iter().map(SourceName::as_str).take(CHOICES_SHOWN).collect();
    clip(&format!("Call again with `source` set to one of: {}.", names.join(", ")), 600)
}

/// One of several connections has to be named, and not every client can.
fn choose_hint(asked: &Asked) -> &'static str {
    match (asked.record.is_some(), asked.profile, asked.tool) {
        (true, _, Some("fetch") | None) => "Fetch the `id` of one of available_connections.",
        (true, ..) => "Call again with the `id` of one of available_connections.",
        (false, Profile::Standard, Some("search")) => {
            "Search again with `connection_id` set to one of available_connections."
        }
        (false, Profile::Standard, _) => {
            "Call again with `connection_id` set to one of available_connections."
        }
        (false, Profile::OpenAi, _) => {
            "The source wants one connection to be named, which this client cannot do; tell the user."
        }
    }
}

/// A connection does not exist, or not for this client.
fn connection_hint(asked: &Asked) -> &'static str {
    match &asked.record {
        Some(RecordAddress { connection: Some(_), .. }) => {
            "The id names its connection before the first `/`; search for the record and fetch the id of the result."
        }
        _ => "Set `connection_id` to one that is there, or leave it out.",
    }
}

/// A record or a stream does not exist.
fn search_hint(asked: &Asked) -> &'static str {
    match asked.tool {
        Some("search") => "Search again without `streams`, or with streams that are there.",
        _ => "Search for the record and fetch the id of the result.",
    }
}

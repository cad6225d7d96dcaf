//! Errors of tools.
//!
//! Each [`ToolError`] has a stable code, a message that quotes what was wrong, and a hint with the next call. The text
//! alone has to be enough, because many clients show nothing else.
//!
//! * `body`: an error as JSON within its budget.
//! * `source_hints`: hints for errors of a source.
//! * `unavailable`: unavailable sources in answers and errors.

mod body;
mod source_hints;
mod unavailable;

pub use body::ErrorBody;
pub use source_hints::{ErrorContext, SourceHints};
pub use unavailable::ShownUnavailable;
pub(crate) use unavailable::list_unavailable;

use crate::documents::DocsError;
use body::MAX_LABEL_BYTES;
use fetchwell_core::fit::clip;
use fetchwell_core::handle::{ConnectionId, InvalidHandle, RecordAddress, SourceName, StreamName};
use fetchwell_source::{BoundSource, ConnectionChoice, SourceError};
use fetchwell_state::StateError;
use fetchwell_state::cursor::CursorFault;

/// Maximum length, in bytes of JSON, of text that was sent and is quoted.
pub(crate) const MAX_QUOTE_BYTES: usize = 200;

/// Maximum length, in bytes of JSON, of a word or a value that is quoted beside others.
pub(crate) const MAX_WORD_BYTES: usize = 60;

/// Hint for an invalid `source`. No example shows this argument, because most calls do better without it.
pub(crate) const UNKNOWN_SOURCE_HINT: &str =
    "Leave out `source`: it is only for an error that names sources to choose from.";

/// An error of a tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The id is not a handle.
    #[error("`{}` is not a handle: {refused}", quote(input))]
    InvalidHandle {
        /// Id as it was sent.
        input: String,
        /// Reason for the refusal.
        refused: InvalidHandle,
    },
    /// An argument is missing, unknown or invalid.
    #[error("argument `{}` of `{tool}`: {problem}", quote(param))]
    InvalidArgument {
        /// Name of the tool.
        tool: &'static str,
        /// Name of the argument.
        param: String,
        /// Description of the problem.
        problem: String,
        /// The corrected call.
        hint: String,
    },
    /// The `connection_id` argument and the connection of the handle differ.
    #[error("`connection_id` is `{argument}` and the handle names `{embedded}`")]
    ConflictingConnection {
        /// Connection of the argument.
        argument: ConnectionId,
        /// Connection of the handle.
        embedded: ConnectionId,
    },
    /// Two connections are named by operators of the query, or one by an operator and another by `connection_id`.
    #[error("the search names connection `{one}` and connection `{other}`")]
    ConflictingQuery {
        /// Connection that is named first.
        one: ConnectionId,
        /// Connection that differs from it.
        other: ConnectionId,
    },
    /// The cursor of a search is invalid or expired.
    #[error("the cursor is not valid: {0}")]
    InvalidSearchCursor(CursorFault),
    /// The cursor of a list is invalid or expired.
    #[error("the cursor is not valid: {0}")]
    InvalidListCursor(CursorFault),
    /// The cursor of a text is invalid or expired.
    #[error("the cursor cannot be used: {0}")]
    InvalidTextCursor(CursorFault),
    /// The state file with the positions of cursors cannot be used.
    #[error("{0}")]
    StateUnavailable(StateError),
    /// Several connections have the stream, and a full declaration is that of one.
    #[error("stream `{stream}` is under more than one connection, and `full` is about one")]
    AmbiguousSchemaDetail {
        /// Name of the stream.
        stream: StreamName,
        /// Connections that have the stream.
        choices: Vec<ConnectionChoice>,
    },
    /// The answer exceeds its budget, however it is shortened.
    #[error("the answer would take {overrun}")]
    ResponseTooLarge {
        /// Exceeded budget, and by how much.
        overrun: Overrun,
        /// A call with a smaller answer.
        hint: String,
    },
    /// The document has fewer parts.
    #[error("the record has {parts} parts, numbered from 0")]
    PartNotFound {
        /// Number of its parts.
        parts: u32,
        /// Handle of the last part.
        last: String,
    },
    /// No document of this length has so many parts.
    #[error("the record has no part of that number")]
    PartOutOfRange {
        /// Handle of the first part.
        first: String,
    },
    /// The document is another one than that of the part before.
    #[error("the document has changed since its first part was read")]
    DocumentChanged {
        /// Handle of the first part.
        first: String,
    },
    /// There is no such project, or the caller may not read it.
    #[error("there is no project `{}`", quote(named))]
    ProjectNotFound {
        /// Project as the call names it.
        named: String,
        /// The projects that there are.
        choices: String,
    },
    /// The project has no such document.
    #[error("project `{project}` has no document `{}`", quote(named))]
    DocumentNotFound {
        /// Slug of the project.
        project: String,
        /// Document as the call names it.
        named: String,
    },
    /// The source failed.
    #[error("{}{error}", prefix(source_name.as_ref()))]
    Source {
        /// Name of the source; `None` if the error is about several.
        source_name: Option<SourceName>,
        /// Error of the source.
        error: SourceError,
        /// Hints of the tool, and the record that the call names.
        context: Box<ErrorContext>,
    },
    /// The call exceeded its deadline.
    #[error("no answer within {seconds} seconds")]
    Timeout {
        /// Deadline in seconds.
        seconds: u64,
    },
    /// A bug in fetchwell.
    #[error("fetchwell failed: {problem}")]
    Internal {
        /// Description for a report.
        problem: String,
    },
}

/// The budget that an answer exceeds: bytes or tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overrun {
    /// Too many bytes.
    #[error("{bytes} bytes and the budget is {budget} bytes")]
    Bytes {
        /// Bytes of the answer.
        bytes: usize,
        /// Budget of the answer.
        budget: usize,
    },
    /// Too many tokens.
    #[error("about {tokens} tokens and the budget is {budget} tokens")]
    Tokens {
        /// Tokens of the answer, estimated beyond the budget.
        tokens: usize,
        /// Budget of the answer.
        budget: usize,
    },
    /// Not even the smallest answer fits. It was not measured.
    #[error("more than its budget of {budget} tokens")]
    Unmeasured {
        /// Budget of the answer.
        budget: usize,
    },
}

impl ToolError {
    /// Creates the error of a source. For a federation, it names the member that failed.
    #[must_use]
    pub fn from_source(source: &BoundSource, error: SourceError) -> Self {
        let mut source_name = (!source.is_federation()).then(|| source.name().clone());
        let mut error = error;
        while let SourceError::FromSource { source_name: name, error: inner } = error {
            (source_name, error) = (Some(name), *inner);
        }
        Self::Source { source_name, error, context: Box::default() }
    }

    /// Creates the error of a request for documents.
    pub(crate) fn from_docs(source: &BoundSource, error: DocsError) -> Self {
        let choices = error.choices().unwrap_or_default();
        match error {
            DocsError::ProjectNotFound { named, .. } => Self::ProjectNotFound { named, choices },
            DocsError::AmbiguousProject { named, choices } => {
                let what = format!("`{}`", quote(&named));
                // The tools take no `source`.
                let error = SourceError::AmbiguousSource { what, sources: Vec::new(), choices };
                Self::Source { source_name: None, error, context: Box::default() }
            }
            DocsError::DocumentNotFound { project, named } => Self::DocumentNotFound { project, named },
            DocsError::InvalidQuery(problem) => Self::InvalidArgument {
                tool: "search_docs",
                param: "query".to_owned(),
                problem: problem.to_owned(),
                hint: "Call search_docs with a few words.".to_owned(),
            },
            DocsError::Source(error) => Self::from_source(source, error),
        }
    }

    /// Creates the error for a `source` that does not exist.
    pub(crate) fn unknown_source(tool: &'static str, name: &SourceName) -> Self {
        let problem = format!("there is no source `{name}`");
        Self::InvalidArgument {
            tool,
            param: "source".to_owned(),
            problem,
            hint: UNKNOWN_SOURCE_HINT.to_owned(),
        }
    }

    /// Sets the hints for an error of the source.
    pub(crate) fn with_hints(mut self, hints: SourceHints) -> Self {
        if let Self::Source { context, .. } = &mut self {
            context.hints = hints;
        }
        self
    }

    /// Sets the record that the call names.
    pub(crate) fn with_record(mut self, record: &RecordAddress) -> Self {
        if let Self::Source { context, .. } = &mut self {
            context.record = Some(record.clone());
        }
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::InvalidHandle { .. }
            | Self::PartNotFound { .. }
            | Self::PartOutOfRange { .. }
            | Self::DocumentChanged { .. } => "invalid_handle",
            Self::InvalidArgument { .. } => "invalid_argument",
            Self::ConflictingConnection { .. } | Self::ConflictingQuery { .. } => "conflicting_connection_id",
            Self::InvalidSearchCursor(_) | Self::InvalidListCursor(_) | Self::InvalidTextCursor(_) => {
                "invalid_cursor"
            }
            Self::StateUnavailable(_) => "state_unavailable",
            Self::AmbiguousSchemaDetail { .. } => "ambiguous_schema_detail",
            Self::ResponseTooLarge { .. } => "response_too_large",
            Self::ProjectNotFound { .. } => "project_not_found",
            Self::DocumentNotFound { .. } => "document_not_found",
            Self::Timeout { .. } => "source_timeout",
            Self::Internal { .. } => "internal_error",
            Self::Source { error, .. } => error.code(),
        }
    }

    /// Returns the next call.
    fn hint(&self) -> String {
        match self {
            Self::InvalidHandle { refused: InvalidHandle { canonical: Some(handle), .. }, .. } => {
                format!("If you mean that record, its id is `{handle}`.")
            }
            Self::InvalidHandle { input, .. } if input.starts_with("http://") || input.starts_with("https://") => {
                "That is a link and not an id of a record here; open it elsewhere, or search for the record.".to_owned()
            }
            Self::InvalidHandle { .. } => {
                "Copy the `id` of a search result exactly, e.g. `cin_4f2a/orders:o1`; search again if you have none."
                    .to_owned()
            }
            Self::InvalidArgument { hint, .. } | Self::ResponseTooLarge { hint, .. } => hint.clone(),
            Self::ConflictingConnection { .. } => {
                "Leave out `connection_id`: the id already says which connection it is of.".to_owned()
            }
            Self::ConflictingQuery { .. } => {
                "Keep one of them: `connection_id`, or `connection:` in the query.".to_owned()
            }
            Self::InvalidSearchCursor(_) => "Search again without `cursor`.".to_owned(),
            Self::StateUnavailable(_) => {
                "Do what the message says, then call again; or ask again without `cursor`.".to_owned()
            }
            Self::InvalidListCursor(CursorFault::Mismatched) => {
                "Send the cursor with the arguments of the page it came from, or list again without it.".to_owned()
            }
            Self::InvalidListCursor(_) => "List again without `cursor`.".to_owned(),
            Self::InvalidTextCursor(_) => "Read the text from its start, without `cursor`.".to_owned(),
            Self::AmbiguousSchemaDetail { .. } => {
                "Call again with `connection_id` set to one of available_connections.".to_owned()
            }
            Self::PartNotFound { last, .. } => format!("The last part is `{last}`."),
            Self::PartOutOfRange { first } => format!("Fetch `{first}`, then each `metadata.next`."),
            Self::DocumentChanged { first } => {
                format!("Start again from the first part: call get_document with the path `{first}`.")
            }
            Self::ProjectNotFound { choices, .. } => {
                format!("Set `project_id` to the slug of a project; {choices}.")
            }
            Self::DocumentNotFound { .. } => {
                "Copy `path` or `id` from a result of search_docs.".to_owned()
            }
            Self::Timeout { .. } => "Call again, or ask for less at once.".to_owned(),
            Self::Internal { .. } => {
                "Call again; if it stays, report it with the server's log of this call.".to_owned()
            }
            Self::Source { error, context, .. } => context.hint(error),
        }
    }

    /// Returns the next call without a handle, which may be too long for an error. A handle is never shortened, because a
    /// piece of one is of no use.
    fn hint_without_handle(&self) -> Option<&'static str> {
        match self {
            Self::InvalidHandle { .. } => {
                Some("Copy the `id` of a search result exactly; search again if you have none.")
            }
            Self::DocumentChanged { .. } => Some("Call get_document without the part, then each `next`."),
            Self::PartNotFound { .. } | Self::PartOutOfRange { .. } => {
                Some("Fetch the id without its part, then each `metadata.next`.")
            }
            Self::ResponseTooLarge { .. } => Some("Ask for less: fewer fields, or a smaller limit."),
            Self::ProjectNotFound { .. } => Some("Set `project_id` to the slug of a project."),
            _ => None,
        }
    }

    /// Returns the error as JSON within its budget.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().to_owned(),
            message: clip(&self.to_string(), 700),
            hint: self.hint(),
            ..ErrorBody::default()
        };
        match self {
            Self::InvalidArgument { param, .. } => body.param = Some(quote(param)),
            Self::InvalidSearchCursor(fault)
            | Self::InvalidListCursor(fault)
            | Self::InvalidTextCursor(fault) => {
                body.reason = Some(fault.reason());
            }
            Self::AmbiguousSchemaDetail { choices, .. } => body.set_choices(choices, None),
            Self::InvalidHandle { refused, .. } => body.reason = Some(refused.fault.reason()),
            Self::Source { source_name, error, context } => {
                body.source = source_name.as_ref().map(|name| clip(name.as_str(), MAX_LABEL_BYTES));
                body.add_source_fields(error, context.record.as_ref());
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

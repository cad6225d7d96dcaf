//! Failure of a command: the message and the exit code.

use std::fmt;

use fetchwell_connectors::ImportError;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::Unavailable;
use fetchwell_core::terminal::escape_line;
use fetchwell_embedding::{EmbeddingError, InstallError};
use fetchwell_http::{ListenError, TlsError};
use fetchwell_pdpp::{CredentialError, InvalidProviderUrl};
use fetchwell_source::contract::{RemovalError, ScopeError, StoreError, VectorError};
use fetchwell_source::{CopyError, SourceError};
use fetchwell_sqlite::BackupError;
use fetchwell_state::StateError;
use fetchwell_state::cursor::CursorFault;
use fetchwell_tools::ToolError;

use super::stop::StopSignal;
use crate::config::ConfigError;

/// Message with the remedy, the exit code, and the sources that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) exit_code: u8,
    /// Sources because of which the command failed, for `--json`.
    pub(crate) unavailable: Vec<Unavailable>,
}

/// Exit code of failures without a specific one.
const GENERAL: u8 = 1;

/// Exit code of an import that could not read a part: everything else is imported.
const PARTIAL: u8 = 3;

/// Exit code of an invalid command line.
const USAGE: u8 = 2;

/// Exit code of a missing or invalid provider URL, as in the `pdpp` tools.
const PROVIDER_URL: u8 = 64;

/// Exit code if an owner credential is present, as in the `pdpp` tools.
pub(crate) const OWNER: u8 = 77;

/// Exit code if no credential works, as in the `pdpp` tools.
const NO_CREDENTIAL: u8 = 78;

/// Exit code of a command stopped by the user, as in shells.
const STOPPED: u8 = 130;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_code(&message.into(), GENERAL)
    }

    /// Converts an error of a tool, with its hint.
    pub(crate) fn from_tool(error: &ToolError) -> Self {
        let exit_code = if error.code() == "reauthorize" { NO_CREDENTIAL } else { GENERAL };
        let body = error.body();
        let choices = body.available_connections.iter().map(|choice| format!("  {choice}"));
        let unavailable = match error {
            ToolError::Source { source_name, error, .. } => failed_sources(source_name.as_ref(), error),
            _ => Vec::new(),
        };
        // The message names a single source.
        let is_of_several = body.source.is_none();
        let failed = unavailable.iter().filter(|_| is_of_several).map(indented_failure);
        let lines = [error.to_string()].into_iter().chain(failed).chain([body.hint]).chain(choices);
        let lines: Vec<String> = lines.map(|line| escape_line(&with_option_names(&line)).into()).collect();
        Self { message: lines.join("\n"), exit_code, unavailable }
    }

    /// Creates the failure of a command that has said all there is to say.
    pub(crate) fn without_message() -> Self {
        Self { message: String::new(), exit_code: GENERAL, unavailable: Vec::new() }
    }

    /// Creates the failure of an import that could not read a part. The message is empty if all was said.
    pub(crate) fn partial(message: &str) -> Self {
        Self::with_code(message, PARTIAL)
    }

    /// Returns true if everything that could be read is imported.
    pub(crate) fn is_partial(&self) -> bool {
        self.exit_code == PARTIAL
    }

    /// Creates the failure of a command that the user stopped.
    pub(crate) fn stopped(message: &str) -> Self {
        Self::with_code(message, STOPPED)
    }

    /// Sets the exit code of a command that a signal stopped. Other failures keep theirs.
    pub(crate) fn ended_by(self, signal: StopSignal) -> Self {
        if self.exit_code == STOPPED { Self { exit_code: signal.exit_code(), ..self } } else { self }
    }

    /// Returns true if the user or a signal stopped the command.
    pub(crate) fn is_stop(&self) -> bool {
        [StopSignal::Interrupt, StopSignal::Terminate]
            .iter()
            .any(|signal| signal.exit_code() == self.exit_code)
    }

    /// Creates a failure with a message of one line. Line ends in quoted names are escaped.
    pub(crate) fn with_code(message: &str, exit_code: u8) -> Self {
        Self { message: escape_line(message).into(), exit_code, unavailable: Vec::new() }
    }

    pub(crate) fn usage(error: &impl fmt::Display) -> Self {
        Self::with_code(&error.to_string(), USAGE)
    }
}

/// Returns the sources that failed, if the call failed because of them and not because of its arguments.
fn failed_sources(source_name: Option<&SourceName>, error: &SourceError) -> Vec<Unavailable> {
    match (error, source_name) {
        (SourceError::AllFailed { failed, .. }, _) => failed.clone(),
        (error, Some(name)) if error.is_transient() => vec![error.unavailable(name.clone())],
        _ => Vec::new(),
    }
}

/// Describes a source that failed, with its error code and its remedy.
pub(crate) fn describe_failure(source: &str, code: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("the source `{source}` did not answer ({code}){hint}")
}

/// Describes a source that failed, below the message of the command.
fn indented_failure(failed: &Unavailable) -> String {
    format!("  {}", describe_failure(failed.source.as_str(), &failed.code, failed.hint.as_deref()))
}

/// Replaces the names of tool arguments in a text by those of command-line options.
pub(crate) fn with_option_names(text: &str) -> String {
    text.replace("`connection_id`", "`--connection-id`")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let exit_code = if matches!(error, BackupError::Stopped) { STOPPED } else { GENERAL };
        Self::with_code(&error.to_string(), exit_code)
    }
}

impl From<VectorError> for Failure {
    fn from(error: VectorError) -> Self {
        let exit_code = if matches!(error, VectorError::Stopped) { STOPPED } else { GENERAL };
        Self::with_code(&error.to_string(), exit_code)
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let exit_code = if matches!(error, CopyError::Stopped) { STOPPED } else { GENERAL };
        Self::with_code(&error.to_string(), exit_code)
    }
}

impl From<ScopeError> for Failure {
    fn from(error: ScopeError) -> Self {
        Self::with_code(&error.to_string(), GENERAL)
    }
}

impl From<RemovalError> for Failure {
    fn from(error: RemovalError) -> Self {
        Self::with_code(&error.to_string(), GENERAL)
    }
}

impl From<EmbeddingError> for Failure {
    fn from(error: EmbeddingError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        use InstallError::{InvalidEndpoint, InvalidName, InvalidPage, InvalidRevision, NoName};
        match error {
            InvalidName(_) | InvalidRevision(_) | InvalidPage(_) | InvalidEndpoint(_) | NoName { .. } => {
                Self::usage(&error)
            }
            error => Self::new(error.to_string()),
        }
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<CursorFault> for Failure {
    fn from(fault: CursorFault) -> Self {
        Self::new(format!("the cursor is {}: {fault}", fault.reason()))
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let exit_code = if matches!(error, ImportError::Stopped) { STOPPED } else { GENERAL };
        Self::with_code(&error.to_string(), exit_code)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<InvalidProviderUrl> for Failure {
    fn from(error: InvalidProviderUrl) -> Self {
        Self::with_code(&error.to_string(), PROVIDER_URL)
    }
}

impl From<CredentialError> for Failure {
    fn from(error: CredentialError) -> Self {
        let message = format!("{error}; {}", error.remedy());
        Self::with_code(&message, error.exit_code())
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Reauthorize { problem, remedy } => {
                Self::with_code(&format!("{problem}; {remedy}"), NO_CREDENTIAL)
            }
            SourceError::AllFailed { what, failed } => {
                let lines = [what].into_iter().chain(failed.iter().map(indented_failure));
                let lines: Vec<String> = lines.map(|line| escape_line(&line).into()).collect();
                Self { message: lines.join("\n"), exit_code: GENERAL, unavailable: failed }
            }
            other => Self::new(other.to_string()),
        }
    }
}

//! Faults of a credential, and the remedy for each place that a credential comes from.

use std::fmt;
use std::path::PathBuf;

use fetchwell_source::SourceError;
use jiff::Timestamp;

/// Reason why there is no usable credential. Never contains a credential or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialError {
    /// The provider that the credential is for.
    pub provider: String,
    /// The place that was searched.
    pub place: CredentialPlace,
    /// Kind of the fault.
    pub fault: CredentialFault,
}

/// Place of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialPlace {
    /// A file that `pdpp connect` writes.
    PdppCache(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A file of the user's own.
    File(PathBuf),
    /// The output of a command. The command itself is never printed, since it may contain a secret.
    Command,
    /// The request of the caller.
    Caller,
}

/// Fault of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialFault {
    /// There is no credential.
    Missing,
    /// The file or the command cannot be used.
    Failed {
        /// Description of the problem, without what was read or printed.
        problem: String,
    },
    /// The token has expired.
    Expired {
        /// Time of expiry.
        at: Timestamp,
    },
    /// The content is not a credential.
    Malformed {
        /// Description of the problem, without the content.
        problem: String,
    },
    /// The credential was issued for another scheme, host or port.
    OtherOrigin {
        /// Origin that the credential was issued for.
        origin: String,
    },
    /// The credential is an owner's.
    Owner,
}

impl CredentialFault {
    pub(super) fn malformed(problem: impl Into<String>) -> Self {
        Self::Malformed { problem: problem.into() }
    }

    pub(super) fn failed(problem: impl Into<String>) -> Self {
        Self::Failed { problem: problem.into() }
    }
}

impl CredentialPlace {
    /// Returns the remedy as an instruction, such as "run `pdpp connect URL`".
    pub(super) fn remedy(&self, provider: &str) -> String {
        match self {
            Self::PdppCache(_) => format!("run `pdpp connect {provider}`"),
            Self::Variable(name) => {
                // A command reads it once, and so does a server.
                format!(
                    "set the environment variable `{name}` to a client token, and run the command again or restart the server"
                )
            }
            Self::File(path) => format!("put a client token into {}", path.display()),
            Self::Command => {
                format!("run the credential command for {provider} by hand and mend what it says")
            }
            Self::Caller => {
                "sign in again, so that the client sends a new token to `fetchwell serve`".to_owned()
            }
        }
    }
}

impl CredentialError {
    /// Returns the remedy as an instruction, such as "run `pdpp connect URL`".
    #[must_use]
    pub fn remedy(&self) -> String {
        self.place.remedy(&self.provider)
    }

    /// Returns the exit code that `pdpp` tools use: 77 for an owner credential, 78 if there is no usable one.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.fault == CredentialFault::Owner { 77 } else { 78 }
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use CredentialPlace::{Caller, Command, File, PdppCache, Variable};
        let Self { provider, place, fault } = self;
        match (fault, place) {
            (CredentialFault::Missing, PdppCache(path)) => {
                write!(f, "not connected to {provider}: there is no {}", path.display())
            }
            (CredentialFault::Missing, File(path)) => {
                write!(f, "there is no credential for {provider}: there is no {}", path.display())
            }
            (CredentialFault::Missing, Variable(name)) => {
                write!(f, "the environment variable `{name}`, for the credential of {provider}, is not set")
            }
            (CredentialFault::Missing, Command | Caller) => {
                write!(f, "there is no credential for {provider}")
            }
            (CredentialFault::Failed { problem }, PdppCache(path) | File(path)) => {
                write!(f, "the credential file {} cannot be used: {problem}", path.display())
            }
            (CredentialFault::Failed { problem } | CredentialFault::Malformed { problem }, Caller) => {
                write!(f, "the caller's token cannot be sent to {provider}: {problem}")
            }
            (CredentialFault::Failed { problem }, Variable(_) | Command) => {
                write!(f, "the credential command for {provider} failed: {problem}")
            }
            (CredentialFault::Expired { at }, _) => {
                write!(f, "the credential for {provider} expired at {at}")
            }
            (CredentialFault::Malformed { problem }, PdppCache(path) | File(path)) => {
                write!(f, "the credential file {} is malformed: {problem}", path.display())
            }
            (CredentialFault::Malformed { problem }, Variable(name)) => {
                write!(f, "the environment variable `{name}` is malformed: {problem}")
            }
            (CredentialFault::Malformed { problem }, Command) => {
                write!(f, "what the credential command for {provider} prints is malformed: {problem}")
            }
            (CredentialFault::OtherOrigin { origin }, PdppCache(path) | File(path)) => {
                write!(
                    f,
                    "the credential file {} is for {origin} and is not sent to {provider}",
                    path.display()
                )
            }
            (CredentialFault::OtherOrigin { origin }, Variable(_) | Command | Caller) => {
                write!(f, "the credential is for {origin} and is not sent to {provider}")
            }
            (CredentialFault::Owner, _) => {
                write!(
                    f,
                    "the credential for {provider} is an owner credential; fetchwell takes client credentials only"
                )
            }
        }
    }
}

impl std::error::Error for CredentialError {}

impl From<CredentialError> for SourceError {
    fn from(error: CredentialError) -> Self {
        Self::Reauthorize { problem: error.to_string(), remedy: error.remedy() }
    }
}

//! Why there is no usable credential, and what to do about it where it comes from.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::source::SourceError;

/// Why there is no usable credential. It never holds one, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialError {
    /// The provider it is for.
    pub provider: String,
    /// Where it was looked for.
    pub place: CredentialPlace,
    /// What is wrong.
    pub fault: CredentialFault,
}

/// Where a credential is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialPlace {
    /// In a file that `pdpp connect` writes.
    PdppCache(PathBuf),
    /// In an environment variable.
    Variable(String),
    /// In a file of the user's own.
    File(PathBuf),
    /// In what a command prints. The command itself is never shown: it may have a secret in it.
    Command,
    /// In the request of whoever asks.
    Caller,
}

/// What is wrong with a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialFault {
    /// There is none.
    Missing,
    /// Its file, or its command, cannot be used.
    Failed {
        /// What happened, without what was read or printed.
        problem: String,
    },
    /// The token's time is over.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// What is there is no credential.
    Malformed {
        /// What is wrong with it, without its content.
        problem: String,
    },
    /// It was given for another scheme, host or port.
    OtherOrigin {
        /// The origin that it was given for.
        origin: String,
    },
    /// It is an owner's.
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
    /// What mends it, as something to do: "run `pdpp connect URL`".
    pub(super) fn remedy(&self, provider: &str) -> String {
        match self {
            Self::PdppCache(_) => format!("run `pdpp connect {provider}`"),
            Self::Variable(name) => {
                format!("set the environment variable `{name}` to a client token and start fetchwell again")
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
    /// What mends it, as something to do: "run `pdpp connect URL`".
    #[must_use]
    pub fn remedy(&self) -> String {
        self.place.remedy(&self.provider)
    }

    /// The exit code that `pdpp` tools agreed on: 77 for an owner credential, 78 for none that works.
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

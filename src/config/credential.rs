//! Locations of the credential of a record server.

use std::path::PathBuf;

use fetchwell_pdpp::CommandLine;

/// The location of a record server's credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSettings {
    /// Cached by `pdpp connect` below this folder.
    PdppCache(PathBuf),
    /// Stored in the environment variable of this name.
    Variable(String),
    /// Stored in this file.
    File(PathBuf),
    /// Printed by a command.
    Command(CommandLine),
    /// Taken from the caller, as its own token.
    Caller,
}

/// Default folder for the credentials of `pdpp connect`.
pub const DEFAULT_CACHE_ROOT: &str = ".pdpp";

//! Errors of the configuration, with their remedy.

use std::path::PathBuf;

use super::tree::Mistake;
use super::trust::{RestrictedKey, TrustError};

/// The reason to reject a configuration file. The message contains the file, and the line and key if known.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read ({problem}); check the path", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The content is not valid.
    #[error("{}:{mistake}", .path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Problem, with its line and key if known.
        mistake: Mistake,
    },
    /// An environment variable that overrides the file is not valid.
    #[error("the environment variable {name} is not valid: {problem}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Problem, with the valid values.
        problem: String,
    },
    /// The file has no source to serve, and there is no default store.
    #[error(
        "the configuration {} has no [[source]], and there is no default store; add a source with `fetchwell source \
         add`, name one beside the file with --store DB or --provider-url URL, or fill the default store with \
         `fetchwell import`", .0.display()
    )]
    Empty(PathBuf),
    /// The file was found, not named, and has keys that require trust.
    #[error(
        "{}:{}: {} needs trust, which a file that was only found does not have{}; look at the file, then run \
         `fetchwell config trust {}`, or name it: --config {}",
        .path.display(), .first.line, .first.key, other_keys(.others), .path.display(), .path.display()
    )]
    Untrusted {
        /// Path of the file.
        path: PathBuf,
        /// First key that requires trust.
        first: RestrictedKey,
        /// Other keys that require trust.
        others: Vec<RestrictedKey>,
    },
    /// The file was found, not named, and the record of trusted files is unusable.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The file cannot be written.
    #[error("the configuration {} cannot be written ({problem}); nothing was changed", .path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
}

/// Maximum number of keys that a message names. The rest are counted.
const MAX_NAMED_KEYS: usize = 5;

fn other_keys(keys: &[RestrictedKey]) -> String {
    let named: Vec<&str> = keys.iter().take(MAX_NAMED_KEYS).map(|key| key.key.as_str()).collect();
    match keys.len().saturating_sub(named.len()) {
        _ if named.is_empty() => String::new(),
        0 => format!(" (as do {})", named.join(", ")),
        more => format!(" (as do {} and {more} more)", named.join(", ")),
    }
}

impl ConfigError {
    /// Creates the error for a file that cannot be edited or parsed, without line and key.
    #[must_use]
    pub fn invalid(path: PathBuf, problem: String) -> Self {
        Self::Invalid { path, mistake: Mistake { line: None, key: None, problem } }
    }
}

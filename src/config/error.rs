//! Why a configuration is refused, with what to do.

use std::path::PathBuf;

use super::tree::Mistake;
use super::trust::{RestrictedKey, TrustError};

/// Why a configuration file is refused. The message names the file, and line and key where it can.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("the configuration {} cannot be read ({problem}); check the path", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// It is not valid.
    #[error("{}:{mistake}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line and key where they are known.
        mistake: Mistake,
    },
    /// A variable of the environment, which goes before the file, is not valid.
    #[error("the environment variable {name} is not valid: {problem}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong, with what it takes.
        problem: String,
    },
    /// It names nothing to serve.
    #[error(
        "the configuration {} has no [[source]]; add one with `fetchwell source add`, or name one beside it with \
         --store DB or --provider-url URL", .0.display()
    )]
    Empty(PathBuf),
    /// It was only found, and has keys that such a file may not have.
    #[error(
        "{}:{}: {} needs trust, which a file that was only found does not have{}; look at the file, then run \
         `fetchwell config trust {}`, or name it: --config {}",
        .path.display(), .first.line, .first.key, other_keys(.others), .path.display(), .path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The first such key.
        first: RestrictedKey,
        /// The others.
        others: Vec<RestrictedKey>,
    },
    /// It was only found, and trust in it cannot be looked up.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// It cannot be written.
    #[error("the configuration {} cannot be written ({problem}); nothing was changed", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

/// Keys that are named in a message; the rest are counted.
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
    /// A file that cannot be edited, or not read as what it is.
    #[must_use]
    pub fn invalid(path: PathBuf, problem: String) -> Self {
        Self::Invalid { path, mistake: Mistake { line: None, key: None, problem } }
    }
}

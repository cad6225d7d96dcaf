//! Configuration: the sources to serve and their settings, from flags, the environment, and a TOML or YAML file.
//!
//! Relative paths in a file are relative to the file, so that it works in whatever folder a client starts the
//! program. Unknown keys are rejected with their line.
//!
//! * `keys`: the table of all keys, with the rules of each
//! * `settings`, `sources`, `auth`, `http`, `context_protection`, `embedding`, `rerank`, `imports`: the settings of a
//!   file, by table
//! * `file`: reading a file, and the checks of its keys against each other
//! * `tree`, `text`, `values`: parsing with line numbers, reading with bounds, typed values
//! * `env`: environment variables
//! * `found`, `trust`: the default file, and the keys that it may have without being trusted
//! * `edit`: adding and removing sources, atomic writes
//! * `watch`: detection of changes
//! * `error`: `ConfigError`

mod auth;
mod context_protection;
mod edit;
mod embedding;
mod env;
mod error;
mod file;
mod found;
mod http;
mod imports;
mod keys;
mod rerank;
mod settings;
mod sources;
mod text;
mod tree;
mod trust;
mod values;
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use auth::{
    AuthSettings, IntrospectionPlace, IssuerPlace, PagesPlace, SecretPlace, SubjectGrant, TokenGrant,
};
pub use edit::{NewSource, delete, save, with_source, without_source};
pub use embedding::ConfiguredEmbedding;
pub use env::{Environment, LOG_FORMAT_VARIABLE, OTLP_ENDPOINT_VARIABLE, environment};
pub use error::ConfigError;
pub use file::{check_text, is_blank, read_file, refuse_blank, settings_of};
pub use found::{FoundFile, default_file, file_to_edit};
pub use http::HttpSettings;
pub use imports::ImportSettings;
pub use keys::{configuration_view, keys_that_need_a_restart, reopens_sources};
pub use rerank::ConfiguredRerank;
pub use settings::{AuditSettings, FileSettings, TelemetrySettings, insecure_spans};
pub use text::read_text;
pub use tree::{Mistake, is_yaml};
pub use trust::{RestrictedKey, TrustError, TrustedFile, TrustedFiles, restricted_keys};
pub use values::{DurationText, Label, SourceTitle, without_user_info};
pub use watch::{FileChange, WatchError, WatchHandle, watch};

use crate::handle::{SourceName, StreamName};
use crate::source::contract::PostgresError;
use crate::source::pdpp::{CommandLine, DEFAULT_DEADLINE, ProviderUrl};
use crate::source::postgres::{DEFAULT_MAX_LAG, PostgresUrl};

/// The settings of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// Name of the source, as in errors.
    pub name: SourceName,
    /// Label for people.
    pub label: Option<String>,
    /// Location of the source.
    pub place: SourcePlace,
    /// Timeout of a request to the source.
    pub deadline: Duration,
    /// Allow-list of streams, or `None` to show all.
    pub streams: Option<Vec<StreamName>>,
}

impl SourceSettings {
    /// Creates settings with defaults.
    #[must_use]
    pub fn new(name: SourceName, place: SourcePlace) -> Self {
        Self { name, label: None, place, deadline: DEFAULT_DEADLINE, streams: None }
    }

    /// Returns true if requests to the source use the caller's own token.
    #[must_use]
    pub fn takes_callers_token(&self) -> bool {
        self.place.credential() == Some(&CredentialSettings::Caller)
    }

    /// Returns the maximum time in which a search of a store can wait for the vector of its query. The rest of the deadline
    /// is for the search itself: a second, or half of a short deadline.
    #[must_use]
    pub fn max_query_timeout(&self) -> Duration {
        self.deadline.saturating_sub(SEARCH_RESERVE.min(self.deadline / 2))
    }
}

/// Time of a deadline that is left for the search after the vector of its query.
const SEARCH_RESERVE: Duration = Duration::from_secs(1);

/// The location of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// An embedded store.
    Store {
        /// Path of the store's file.
        path: PathBuf,
    },
    /// A store in PostgreSQL.
    Postgres {
        /// Address of the database.
        url: PostgresUrl,
        /// Read replicas of it.
        replicas: ReplicaSettings,
    },
    /// A remote record server.
    Provider {
        /// URL of the server.
        url: ProviderUrl,
        /// Location of the credential.
        credential: CredentialSettings,
    },
}

/// Error of replicas of a place that is no database.
const NO_DATABASE: &str = "read_urls and max_lag need the store of a database";

/// Read replicas of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSettings {
    /// Addresses of the replicas.
    pub urls: Vec<PostgresUrl>,
    /// Maximum lag of a replica that is read from.
    pub max_lag: Duration,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        Self { urls: Vec::new(), max_lag: DEFAULT_MAX_LAG }
    }
}

impl SourcePlace {
    /// Returns the place of a store as [`Self::from_store`] does, with read replicas, which only a database has.
    fn with_replicas(
        path: &Path,
        urls: Option<Vec<PathBuf>>,
        max_lag: Option<Duration>,
        folder: &Path,
    ) -> Result<Self, String> {
        let place = Self::from_store(path, folder).map_err(|problem| problem.to_string())?;
        let Self::Postgres { url, mut replicas } = place else {
            return match (urls, max_lag) {
                (None, None) => Ok(place),
                _ => Err(NO_DATABASE.to_owned()),
            };
        };
        for place in urls.unwrap_or_default() {
            let url = PostgresUrl::in_place_of(&place).ok_or("read_urls are not postgres://...")?;
            replicas.urls.push(url.map_err(|problem| problem.to_string())?.below(folder));
        }
        match max_lag {
            Some(_) if replicas.urls.is_empty() => return Err("max_lag needs read_urls".to_owned()),
            Some(max_lag) => replicas.max_lag = max_lag,
            None => {}
        }
        Ok(Self::Postgres { url, replicas })
    }

    /// Returns the path of a store in a file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        if let Self::Store { path } = self { Some(path) } else { None }
    }

    /// Returns the address of a store in a database.
    #[must_use]
    pub fn database(&self) -> Option<&PostgresUrl> {
        if let Self::Postgres { url, .. } = self { Some(url) } else { None }
    }

    /// Returns true for a store, which commands can read and write as a whole.
    #[must_use]
    pub fn is_store(&self) -> bool {
        self.credential().is_none()
    }

    /// Returns the location of the credential of a record server.
    #[must_use]
    pub fn credential(&self) -> Option<&CredentialSettings> {
        if let Self::Provider { credential, .. } = self { Some(credential) } else { None }
    }

    /// Returns the place of a store: a path below `folder`, or the URL of a database.
    ///
    /// # Errors
    ///
    /// The URL is not valid.
    pub fn from_store(place: &Path, folder: &Path) -> Result<Self, PostgresError> {
        Ok(match PostgresUrl::in_place_of(place) {
            None => Self::Store { path: folder.join(place) },
            Some(url) => Self::Postgres { url: url?.below(folder), replicas: ReplicaSettings::default() },
        })
    }
}

impl fmt::Display for SourcePlace {
    /// Writes the path or the URL, without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { path } => path.display().fmt(f),
            Self::Postgres { url, .. } => url.fmt(f),
            Self::Provider { url, .. } => url.fmt(f),
        }
    }
}

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

#[cfg(test)]
mod tests;

//! Configuration: which sources to serve and how, from flags, the environment, and a TOML or YAML file.
//!
//! Relative paths in a file are relative to the file, so that it works wherever a client starts the
//! program. Unknown keys are refused with their line.

mod auth;
mod context_protection;
mod edit;
mod env;
mod error;
mod file;
mod found;
mod http;
mod save;
mod telemetry;
mod text;
mod tree;
mod trust;
mod values;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

pub use auth::{
    AuthSettings, IntrospectionPlace, IssuerPlace, PagesPlace, SecretPlace, SubjectGrant, TokenGrant,
};
pub use edit::{NewSource, with_source, without_source};
pub use env::{Environment, LOG_FORMAT_VARIABLE, OTLP_ENDPOINT_VARIABLE, environment};
pub use error::ConfigError;
pub use file::{FileSettings, check_text, read_file, refuse_blank, settings_of};
pub use found::{FoundFile, default_file, file_to_edit};
pub use http::HttpSettings;
pub use save::save;
pub use telemetry::insecure_spans;
pub use text::read_text;
pub use tree::{Mistake, is_yaml};
pub use trust::{RestrictedKey, TrustError, TrustedFile, TrustedFiles, restricted_keys};
pub use values::{DurationText, Label, SourceTitle, without_user_info};
pub use watch::{Noticed, WatchError, Watching, watch};

use crate::handle::{SourceName, StreamName};
use crate::source::pdpp::{CommandLine, DEFAULT_DEADLINE, ProviderUrl};

/// One source, as it was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// How errors name it.
    pub name: SourceName,
    /// What people call it.
    pub label: Option<String>,
    /// Where it is.
    pub place: SourcePlace,
    /// How long a question to it may take.
    pub deadline: Duration,
    /// The only streams of it that are shown; all of them when `None`.
    pub streams: Option<Vec<StreamName>>,
}

impl SourceSettings {
    /// A source without anything special.
    #[must_use]
    pub fn new(name: SourceName, place: SourcePlace) -> Self {
        Self { name, label: None, place, deadline: DEFAULT_DEADLINE, streams: None }
    }
}

impl SourceSettings {
    /// Whether it is asked with the token of whoever asks.
    #[must_use]
    pub fn takes_callers_token(&self) -> bool {
        matches!(&self.place, SourcePlace::Provider { credential: CredentialSettings::Caller, .. })
    }
}

/// Where a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// An embedded store.
    Store {
        /// Its file.
        path: PathBuf,
    },
    /// A remote record server.
    Provider {
        /// Its URL.
        url: ProviderUrl,
        /// Where its credential comes from.
        credential: CredentialSettings,
    },
}

/// Where the credential of a record server comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSettings {
    /// `pdpp connect` left it below this folder.
    PdppCache(PathBuf),
    /// It is in an environment variable of this name.
    Variable(String),
    /// It is in this file.
    File(PathBuf),
    /// A command prints it.
    Command(CommandLine),
    /// It is the token of whoever asks.
    Caller,
}

/// Where `pdpp connect` keeps credentials when nothing else is said.
pub const DEFAULT_CACHE_ROOT: &str = ".pdpp";

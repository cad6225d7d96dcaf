//! Configuration: the sources to serve and their settings, from flags, the environment, and a TOML or YAML file.
//!
//! Relative paths in a file are relative to the file, so that it works in whatever folder a client starts the
//! program. Unknown keys are rejected with their line.
//!
//! * `keys`: the table of all keys, with the rules of each
//! * `settings`, `sources`, `credential`, `auth`, `http`, `context_protection`, `embedding`, `rerank`, `imports`: the settings of a
//!   file, by table
//! * `file`: reading a file, and the checks of its keys against each other
//! * `tree`, `text`, `values`: parsing with line numbers, reading with bounds, typed values
//! * `env`, `hub`: environment variables, and those of model hubs
//! * `found`, `trust`: the default file, and the keys that it may have without being trusted
//! * `edit`: adding and removing sources, atomic writes
//! * `watch`: detection of changes
//! * `error`: `ConfigError`

mod auth;
mod context_protection;
mod credential;
mod edit;
mod embedding;
mod env;
mod error;
mod file;
mod found;
mod http;
mod hub;
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

pub use auth::{AuthSettings, IntrospectionPlace, IssuerPlace, PagesPlace, SubjectGrant, TokenGrant};
pub use credential::{CredentialSettings, DEFAULT_CACHE_ROOT};
pub use edit::{EditedFile, NewSource, delete, save, with_local_model, with_source, without_source};
pub use embedding::ConfiguredEmbedding;
pub use env::{Environment, LOG_FORMAT_VARIABLE, OTLP_ENDPOINT_VARIABLE, environment, users_state_dir};
pub use error::ConfigError;
pub use file::{check_text, is_blank, read_file, refuse_blank, settings_of};
pub use found::{FoundFile, default_file, file_to_edit, users_file};
pub use http::HttpSettings;
pub use hub::hub_settings;
pub use imports::ImportSettings;
pub use keys::{configuration_view, keys_that_need_a_restart, reopens_sources};
pub use rerank::ConfiguredRerank;
pub use settings::{AuditSettings, FileSettings, TelemetrySettings, insecure_spans};
pub use sources::{
    McpEndpoint, McpSource, OAuthClient, ReplicaSettings, SourcePlace, SourceSettings, ValuePlace,
    is_protocol_header,
};
pub use text::read_text;
pub use tree::{Mistake, is_yaml};
pub use trust::{RestrictedKey, TrustError, TrustedFile, TrustedFiles, restricted_keys};
pub use values::{DurationText, Label, SecretPlace, SourceTitle, is_variable, without_user_info};
pub use watch::{FileChange, WatchError, WatchHandle, watch};

#[cfg(test)]
mod tests;

//! Environment variables. No other module reads one, except those of model hubs (`hub`).

use std::ffi::OsString;
use std::path::PathBuf;

use directories::{BaseDirs, ProjectDirs};
use secrecy::SecretString;

/// Variables that contain credentials of an owner.
pub(super) const OWNER_VARIABLES: [&str; 2] = ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"];

/// Variables that override `[context_protection]` of the file, with the key that each overrides.
pub(super) const PROTECTION_VARIABLES: [(&str, &str); 6] = [
    ("MCP_OUTPUT_TOKEN_THRESHOLD", "output_token_threshold"),
    ("MCP_HARD_OUTPUT_TOKEN_CAP", "hard_output_token_cap"),
    ("MCP_DEFAULT_PAGE_SIZE", "default_page_size"),
    ("MCP_MAX_PAGE_SIZE", "max_page_size"),
    ("MCP_FEATURE_PAGINATION", "enable_pagination"),
    ("MCP_FEATURE_SUMMARY_PREVIEW", "enable_summarization"),
];

/// Variable with the format of log lines: `text` or `json`.
pub const LOG_FORMAT_VARIABLE: &str = "FETCHWELL_LOG_FORMAT";

/// Variable with the path of the default store.
const STORE_VARIABLE: &str = "FETCHWELL_STORE";

/// Standard OpenTelemetry variable with the URL of the collector. The exporter itself reads
/// `OTEL_EXPORTER_OTLP_HEADERS`, for collectors that require a key.
pub const OTLP_ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The values of environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Value of `RUST_LOG`: the log filter if `--log` is not given.
    pub log: Option<String>,
    /// Value of `FETCHWELL_LOG_FORMAT`: the log format if `--log-format` is not given.
    pub log_format: Option<String>,
    /// Value of `FETCHWELL_STORE`: the store that is used if no source is named.
    pub store: Option<PathBuf>,
    /// Value of `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector of spans, which overrides `otlp_endpoint` of the file.
    pub otlp_endpoint: Option<String>,
    /// Name of an owner credential that is set (`PDPP_OWNER_TOKEN` or `PDPP_OWNER_SESSION_COOKIE`). If one is, no
    /// remote source is served: a model must only read what a client was granted. The value is not read.
    pub owner_credential: Option<&'static str>,
    /// The user's state directory, in which sign-ins at MCP servers are kept.
    pub state_dir: Option<PathBuf>,
    /// Names and values of set variables such as `MCP_OUTPUT_TOKEN_THRESHOLD`.
    pub protection: Vec<(&'static str, String)>,
}

/// Reads the environment of this process.
#[must_use]
pub fn environment() -> Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let is_set = |name: &&'static str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let log = std::env::var("RUST_LOG").ok();
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let said = |name: &'static str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let store = std::env::var_os(STORE_VARIABLE);
    let protection = PROTECTION_VARIABLES.into_iter().filter_map(|(name, _)| Some((name, said(name)?)));
    Environment {
        protection: protection.filter(|(_, value)| !value.is_empty()).collect(),
        log_format: said(LOG_FORMAT_VARIABLE).filter(|format| !format.is_empty()),
        otlp_endpoint: said(OTLP_ENDPOINT_VARIABLE).filter(|endpoint| !endpoint.is_empty()),
        log: log.filter(|filter| !filter.is_empty()),
        state_dir: users_state_dir(),
        store: store.filter(|path| !path.is_empty()).map(PathBuf::from),
        owner_credential: OWNER_VARIABLES.into_iter().find(is_set),
    }
}

/// Returns the user's state directory, which may not exist, or `None` if the system names none.
#[must_use]
pub fn users_state_dir() -> Option<PathBuf> {
    let dirs = ProjectDirs::from("", "", "fetchwell")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
}

/// Variables that a program which is started as an MCP server inherits: without them most do not start.
const INHERITED_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"];

impl Environment {
    /// Returns the environment of a configuration, which may name another state directory.
    #[must_use]
    pub fn with_state_dir(&self, configured: Option<&PathBuf>) -> Self {
        let state_dir = configured.cloned().or_else(|| self.state_dir.clone());
        Self { state_dir, ..self.clone() }
    }

    /// Returns the variables that a started program inherits, with their values.
    #[must_use]
    pub fn inherited(&self) -> Vec<(String, OsString)> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let value = |name: &'static str| std::env::var_os(name).map(|value| (name.to_owned(), value));
        INHERITED_VARIABLES.into_iter().filter_map(value).collect()
    }

    /// Returns the credential in a variable that the configuration names, as a secret. A value that is not UTF-8 is
    /// no valid token and is rejected later.
    #[must_use]
    pub fn credential(&self, variable: &str) -> Option<SecretString> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let value = std::env::var_os(variable)?;
        Some(SecretString::from(value.to_string_lossy().into_owned()))
    }

    /// Returns the password file of PostgreSQL clients: the one that `PGPASSFILE` names, or `~/.pgpass`.
    #[must_use]
    pub fn postgres_password_file(&self) -> Option<PathBuf> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let named = std::env::var_os("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(BaseDirs::new()?.home_dir().join(".pgpass")))
    }
}

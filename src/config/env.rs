//! Every environment variable the program reads.

use secrecy::SecretString;

/// Variables that hold credentials of an owner.
pub(super) const OWNER_VARIABLES: [&str; 2] = ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"];

/// Variables that go before `[context_protection]` of the file, with the keys they stand for.
pub(super) const PROTECTION_VARIABLES: [(&str, &str); 6] = [
    ("MCP_OUTPUT_TOKEN_THRESHOLD", "output_token_threshold"),
    ("MCP_HARD_OUTPUT_TOKEN_CAP", "hard_output_token_cap"),
    ("MCP_DEFAULT_PAGE_SIZE", "default_page_size"),
    ("MCP_MAX_PAGE_SIZE", "max_page_size"),
    ("MCP_FEATURE_PAGINATION", "enable_pagination"),
    ("MCP_FEATURE_SUMMARY_PREVIEW", "enable_summarization"),
];

/// How log lines are written: `text` or `json`.
pub const LOG_FORMAT_VARIABLE: &str = "FETCHWELL_LOG_FORMAT";

/// Where spans go, as every program with OpenTelemetry reads it. Its exporter reads `OTEL_EXPORTER_OTLP_HEADERS` itself,
/// for collectors that want a key.
pub const OTLP_ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// `RUST_LOG`: the log filter, when `--log` is not given.
    pub log: Option<String>,
    /// `FETCHWELL_LOG_FORMAT`: how log lines are written, when `--log-format` is not given.
    pub log_format: Option<String>,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: where spans of calls go, before `otlp_endpoint` of the file.
    pub otlp_endpoint: Option<String>,
    /// The name of an owner credential that is set (`PDPP_OWNER_TOKEN` or `PDPP_OWNER_SESSION_COOKIE`).
    /// With one of these in reach nothing remote is served: what a model reads must be what a client was
    /// granted. The value is not read.
    pub owner_credential: Option<&'static str>,
    /// Variables such as `MCP_OUTPUT_TOKEN_THRESHOLD` that are set, by their names, with what they say.
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
    let protection = PROTECTION_VARIABLES.into_iter().filter_map(|(name, _)| Some((name, said(name)?)));
    Environment {
        protection: protection.filter(|(_, value)| !value.is_empty()).collect(),
        log_format: said(LOG_FORMAT_VARIABLE).filter(|format| !format.is_empty()),
        otlp_endpoint: said(OTLP_ENDPOINT_VARIABLE).filter(|endpoint| !endpoint.is_empty()),
        log: log.filter(|filter| !filter.is_empty()),
        owner_credential: OWNER_VARIABLES.into_iter().find(is_set),
    }
}

impl Environment {
    /// The credential in a variable that the configuration names. It is kept as a secret from here on; what is
    /// not text is no token either, and is refused as one later.
    #[must_use]
    pub fn credential(&self, variable: &str) -> Option<SecretString> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let value = std::env::var_os(variable)?;
        Some(SecretString::from(value.to_string_lossy().into_owned()))
    }
}

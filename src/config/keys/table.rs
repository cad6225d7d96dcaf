//! The table of keys. A key has one entry here and a field for its value.
//!
//! A key without an entry is refused in a file that was found, and is hidden from operators. A renamed key keeps its
//! former name in `aliases`: `Key { aliases: &["old"], ..key("table.new", ...) }`.

use std::path::Path;
use std::sync::LazyLock;

use fetchwell_http::{DEFAULT_MAX_CONNECTIONS, DEFAULT_WRITE_TIMEOUT};
use fetchwell_pdpp::DEFAULT_DEADLINE;
use fetchwell_state::cursor::VALID_FOR;
use fetchwell_telemetry::RECORDS_IN_MEMORY;
use fetchwell_tools::DEFAULT_CALL_DEADLINE;

use super::key::FoundFileRule::{Any, HttpsUrl, LocalPath, PdppCache, Trust, TrustTo};
use super::key::Reload::{Applied, ByTable, Reopens, Restart};
use super::key::Visibility::{Hidden, Origin, Redis, SecretPlace, Store, Whole};
use super::key::{Key, key, table};
use crate::config::auth::AuthSettings;
use crate::config::settings::FileSettings;
use crate::config::tree::Kind::{self, DefaultTable, Duration, Flag, Integer, Table, Text};
use crate::config::tree::{Mistake, Node, Schema};

/// Compares a field of two settings.
macro_rules! differ {
    ($($field:ident).+) => { |before, after| before.$($field).+ != after.$($field).+ };
}

const TOKENS: Kind = Integer { max: 1_000_000, unit: "tokens", default: None };
const RECORDS: Kind = Integer { max: 200, unit: "records", default: None };
const DIMENSIONS: Kind = Integer { max: 8_192, unit: "dimensions", default: None };

/// Returns the type of a number up to a million.
const fn up_to_a_million(unit: &'static str, default: Option<usize>) -> Kind {
    Integer { max: 1_000_000, unit, default }
}

const PORT: Kind = Integer { max: 65_535, unit: "", default: None };

const OFF: Kind = Flag(Some(false));

const fn seconds(seconds: u64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds)
}

/// All keys. Warnings about keys that need a restart have this order; keys of one warning are adjacent.
#[rustfmt::skip] // A row is a line.
pub(crate) const KEYS: &[Key] = &[
    key("listen", Text, TrustTo("listens at this address"), Whole, Restart("listen", differ!(listen))),
    key("ops_listen", Text, TrustTo("serves /health and /metrics at this address without a token"), Whole, Restart("ops_listen", differ!(ops_listen))),
    key("state_dir", Text, TrustTo("writes files there"), Whole, Restart("state_dir", differ!(state_dir))),
    key("state", Text, TrustTo("sends encrypted state of calls there, and the secret that the URL names"), Redis, Restart("state", differ!(state))),
    key("cursor_ttl", Duration(Some(VALID_FOR)), Any, Whole, Restart("cursor_ttl", differ!(cursor_ttl))),
    key("call_deadline", Duration(Some(DEFAULT_CALL_DEADLINE)), Any, Whole, Reopens(differ!(call_deadline))),
    key("search_history", Flag(Some(true)), Any, Whole, Reopens(differ!(search_history))),
    table("source", Table, Reopens(differ!(sources))),
    key("source[].name", Text, Any, Whole, ByTable),
    key("source[].label", Text, Any, Whole, ByTable),
    key("source[].store", Text, LocalPath("opens a file of another machine, or a database with the secrets that its URL names"), Store, ByTable),
    key("source[].read_urls[]", Text, Trust, Store, ByTable),
    key("source[].max_lag", Duration(None), Trust, Whole, ByTable),
    key("source[].url", Text, HttpsUrl("sends queries and a credential there"), Origin, ByTable),
    key("source[].credential", Text, PdppCache, SecretPlace, ByTable),
    key("source[].cache_root", Text, TrustTo("sends a credential of this folder to the source's url"), Whole, ByTable),
    key("source[].allow_insecure", Flag(None), TrustTo("sends the credential and the queries unencrypted"), Whole, ByTable),
    key("source[].mcp", Text, TrustTo("sends queries to this server, and shows models what it answers"), Origin, ByTable),
    key("source[].command[]", Text, TrustTo("runs this command"), Hidden, ByTable),
    table("source[].env", Table, Reopens(differ!(sources))),
    key("source[].env.*", Text, Trust, Hidden, ByTable),
    table("source[].headers", Table, Reopens(differ!(sources))),
    key("source[].headers.*", Text, Trust, Hidden, ByTable),
    key("source[].client_name", Text, Trust, Whole, ByTable),
    key("source[].preset", Text, Trust, Whole, ByTable),
    table("source[].oauth", Table, Reopens(differ!(sources))),
    key("source[].oauth.client_id", Text, Trust, Whole, ByTable),
    key("source[].oauth.client_secret", Text, TrustTo("sends this secret to the authorization server of the source"), SecretPlace, ByTable),
    key("source[].oauth.client_metadata_url", Text, Trust, Origin, ByTable),
    key("source[].oauth.scopes[]", Text, Trust, Whole, ByTable),
    key("source[].oauth.redirect_port", PORT, Trust, Whole, ByTable),
    table("source[].search", Table, Reopens(differ!(sources))),
    key("source[].search.tool", Text, TrustTo("calls this tool of an MCP server"), Whole, ByTable),
    key("source[].search.query", Text, Trust, Whole, ByTable),
    key("source[].search.limit", Text, Trust, Whole, ByTable),
    key("source[].search.cursor", Text, Trust, Whole, ByTable),
    key("source[].search.page", Text, Trust, Whole, ByTable),
    key("source[].search.next", Text, Trust, Whole, ByTable),
    key("source[].search.results", Text, Trust, Whole, ByTable),
    key("source[].search.id", Text, Trust, Whole, ByTable),
    key("source[].search.title", Text, Trust, Whole, ByTable),
    key("source[].search.text", Text, Trust, Whole, ByTable),
    key("source[].search.url", Text, Trust, Whole, ByTable),
    key("source[].search.date", Text, Trust, Whole, ByTable),
    key("source[].search.line", Text, Trust, Whole, ByTable),
    table("source[].search.arguments", Table, Reopens(differ!(sources))),
    key("source[].search.arguments.*", Text, Trust, Whole, ByTable),
    table("source[].fetch", Table, Reopens(differ!(sources))),
    key("source[].fetch.tool", Text, TrustTo("calls this tool of an MCP server"), Whole, ByTable),
    key("source[].fetch.id", Text, Trust, Whole, ByTable),
    key("source[].fetch.title", Text, Trust, Whole, ByTable),
    key("source[].fetch.text", Text, Trust, Whole, ByTable),
    key("source[].fetch.url", Text, Trust, Whole, ByTable),
    key("source[].fetch.date", Text, Trust, Whole, ByTable),
    table("source[].fetch.arguments", Table, Reopens(differ!(sources))),
    key("source[].fetch.arguments.*", Text, Trust, Whole, ByTable),
    key("source[].deadline", Duration(Some(DEFAULT_DEADLINE)), Any, Whole, ByTable),
    key("source[].streams[]", Text, Any, Whole, ByTable),
    // Absent limits are those of `fit::Limits`.
    table("context_protection", DefaultTable, Applied),
    key("context_protection.output_token_threshold", TOKENS, Any, Whole, Applied),
    key("context_protection.hard_output_token_cap", TOKENS, Any, Whole, Applied),
    key("context_protection.default_page_size", RECORDS, Any, Whole, Applied),
    key("context_protection.max_page_size", RECORDS, Any, Whole, Applied),
    key("context_protection.enable_summarization", Flag(None), Any, Whole, Applied),
    key("context_protection.enable_pagination", Flag(None), Any, Whole, Applied),
    key("context_protection.estimator", Text, Any, Whole, Applied),
    table("context_protection.endpoints", Table, Applied),
    table("context_protection.endpoints.*", Table, Applied),
    key("context_protection.endpoints.*.page_size", RECORDS, Any, Whole, Applied),
    key("context_protection.endpoints.*.threshold", TOKENS, Any, Whole, Applied),
    key("context_protection.endpoints.*.hard_cap", TOKENS, Any, Whole, Applied),
    key("context_protection.endpoints.*.summarization_enabled", Flag(None), Any, Whole, Applied),
    key("context_protection.endpoints.*.pagination_enabled", Flag(None), Any, Whole, Applied),
    key("context_protection.endpoints.*.exempt", Flag(None), Any, Whole, Applied),
    table("rate_limit", Table, Applied),
    key("rate_limit.requests", up_to_a_million("requests", None), Any, Whole, Applied),
    key("rate_limit.per", Duration(None), Any, Whole, Applied),
    table("telemetry", DefaultTable, Applied),
    key("telemetry.ring", up_to_a_million("calls", Some(RECORDS_IN_MEMORY)), Any, Whole, Restart("telemetry.ring", differ!(telemetry.ring))),
    key("telemetry.otlp_endpoint", Text, TrustTo("sends a span of every call there"), Origin, Restart("telemetry.otlp_endpoint", differ!(telemetry.otlp_endpoint))),
    key("telemetry.allow_insecure", OFF, TrustTo("sends spans unencrypted"), Whole, Applied),
    table("audit", Table, Restart("audit", differ!(audit))),
    key("audit.path", Text, TrustTo("writes which records are read there"), Whole, ByTable),
    table("embedding", Table, Reopens(differ!(embedding))),
    key("embedding.provider", Text, Trust, Whole, ByTable),
    key("embedding.url", Text, TrustTo("sends the text of records and queries there"), Origin, ByTable),
    key("embedding.model", Text, Trust, Whole, ByTable),
    key("embedding.api_key", Text, TrustTo("sends this secret to the url of [embedding]"), SecretPlace, ByTable),
    key("embedding.dimensions", DIMENSIONS, Trust, Whole, ByTable),
    key("embedding.path", Text, TrustTo("reads a model from this folder"), Whole, ByTable),
    key("embedding.pad_to", DIMENSIONS, Trust, Whole, ByTable),
    key("embedding.vector_memory", up_to_a_million("MiB", Some(256)), Trust, Whole, ByTable),
    key("embedding.background", Flag(None), TrustTo("decides whether records are embedded without a command"), Whole, ByTable),
    key("embedding.query_timeout", Duration(Some(seconds(3))), Trust, Whole, ByTable),
    key("embedding.allow_insecure", OFF, TrustTo("sends the text of records and queries unencrypted"), Whole, ByTable),
    table("rerank", Table, Reopens(differ!(rerank))),
    key("rerank.provider", Text, Trust, Whole, ByTable),
    key("rerank.url", Text, TrustTo("sends queries and passages of records there"), Origin, ByTable),
    key("rerank.model", Text, Trust, Whole, ByTable),
    key("rerank.api_key", Text, TrustTo("sends this secret to the url of [rerank]"), SecretPlace, ByTable),
    key("rerank.path", Text, TrustTo("reads a model from this folder"), Whole, ByTable),
    key("rerank.timeout", Duration(Some(seconds(2))), Trust, Whole, ByTable),
    key("rerank.allow_insecure", OFF, TrustTo("sends queries and passages of records unencrypted"), Whole, ByTable),
    table("import", Table, Applied),
    key("import[].path", Text, TrustTo("imports this file or folder into a store"), Whole, Applied),
    key("import[].kind", Text, Trust, Whole, Applied),
    key("import[].connection", Text, Trust, Whole, Applied),
    key("import[].name", Text, Trust, Whole, Applied),
    key("import[].source", Text, Trust, Whole, Applied),
    key("import[].every", Text, Trust, Whole, Applied),
    key("import[].watch", OFF, Trust, Whole, Applied),
    key("import[].stream", Text, Trust, Whole, Applied),
    key("import[].key[]", Text, Trust, Whole, Applied),
    key("import[].title", Text, Trust, Whole, Applied),
    key("import[].time", Text, Trust, Whole, Applied),
    key("import[].url", Text, Trust, Whole, Applied),
    key("import[].ocr", OFF, Trust, Whole, Applied),
    key("import[].ocr_languages[]", Text, Trust, Whole, Applied),
    table("auth", Table, Restart("auth", |before, after| before.auth.is_none() && after.auth.is_some())),
    key("auth.issuer", Text, Trust, Origin, Applied),
    key("auth.jwks_url", Text, Trust, Origin, Applied),
    key("auth.algorithms[]", Text, Trust, Whole, Applied),
    key("auth.audience[]", Text, Trust, Whole, Applied),
    key("auth.scopes[]", Text, Trust, Whole, Applied),
    table("auth.introspection", Table, Applied),
    key("auth.introspection.url", Text, Trust, Origin, Applied),
    key("auth.introspection.client_id", Text, Trust, Whole, Applied),
    key("auth.introspection.client_secret", Text, Trust, SecretPlace, Applied),
    table("auth.pages", Table, Applied),
    key("auth.pages.client_id", Text, Trust, Whole, Applied),
    key("auth.pages.client_secret", Text, Trust, SecretPlace, Applied),
    key("auth.pages.scopes[]", Text, Trust, Whole, Applied),
    table("auth.token", Table, Reopens(grants_differ)),
    key("auth.token[].name", Text, Trust, Whole, ByTable),
    key("auth.token[].sha256", Text, Trust, Hidden, Applied),
    key("auth.token[].sources[]", Text, Trust, Whole, ByTable),
    key("auth.token[].metrics", OFF, Trust, Whole, Applied),
    key("auth.token[].admin", OFF, Trust, Whole, Applied),
    table("auth.subject", Table, Reopens(grants_differ)),
    key("auth.subject[].subject", Text, Trust, Whole, ByTable),
    key("auth.subject[].sources[]", Text, Trust, Whole, ByTable),
    key("public_url", Text, TrustTo("accepts requests under this name"), Origin, Restart("public_url", differ!(public_url))),
    table("tls", Table, Restart("tls", differ!(tls))),
    key("tls.certificate", Text, TrustTo("reads this file"), Whole, ByTable),
    key("tls.key", Text, TrustTo("reads this file"), Whole, ByTable),
    table("http", DefaultTable, Applied),
    key("http.max_connections", up_to_a_million("connections", Some(DEFAULT_MAX_CONNECTIONS as usize)), Any, Whole, Restart("http", differ!(http.max_connections))),
    key("http.max_connections_per_address", up_to_a_million("connections", None), Any, Whole, Restart("http", per_address_differs)),
    key("http.write_timeout", Duration(Some(DEFAULT_WRITE_TIMEOUT)), Any, Whole, Restart("http", differ!(http.write_timeout))),
    key("http.calls_per_caller", Integer { max: 10_000, unit: "calls", default: Some(16) }, Any, Whole, Applied),
    key("http.trusted_proxies[]", Text, Trust, Whole, Restart("http", differ!(http.trusted_proxies))),
    key("http.allow_unauthenticated_proxy", OFF, TrustTo("lets everyone who reaches a trusted proxy read every record"), Whole, Restart("http", differ!(http.allow_unauthenticated_proxy))),
    key("http.allowed_hosts[]", Text, Trust, Whole, Restart("http", differ!(http.allowed_hosts))),
    key("http.allowed_origins[]", Text, Trust, Whole, Restart("http", differ!(http.allowed_origins))),
];

/// Types and former names of the keys.
pub(crate) static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema::new(KEYS.iter().map(|key| (key.name, key.kind, key.aliases))));

/// Parses a text as the configuration file at `path`. Former names of keys are replaced by the present ones, each with
/// a warning.
pub(crate) fn parse(text: &str, path: &Path) -> Result<(Node, Vec<String>), Mistake> {
    let mut tree = Node::parse(text, path)?;
    let warnings = tree.rename_keys(&SCHEMA);
    Ok((tree, warnings))
}

/// Returns the changed keys and tables that a running server does not apply.
#[must_use]
pub fn keys_that_need_a_restart(before: &FileSettings, after: &FileSettings) -> Vec<&'static str> {
    let changed = KEYS.iter().filter_map(|key| match key.reload {
        Restart(name, differ) if differ(before, after) => Some(name),
        Applied | ByTable | Reopens(_) | Restart(..) => None,
    });
    let mut names: Vec<&str> = changed.collect();
    names.dedup();
    names
}

/// Returns true if a server has to open its sources again.
#[must_use]
pub fn reopens_sources(before: &FileSettings, after: &FileSettings) -> bool {
    KEYS.iter().any(|key| matches!(key.reload, Reopens(differ) if differ(before, after)))
}

fn per_address_differs(before: &FileSettings, after: &FileSettings) -> bool {
    before.http.connections_per_address() != after.http.connections_per_address()
}

fn grants_differ(before: &FileSettings, after: &FileSettings) -> bool {
    before.auth.as_ref().map(AuthSettings::grants) != after.auth.as_ref().map(AuthSettings::grants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_follow_their_table_have_one_with_an_effect() {
        for key in KEYS.iter().filter(|key| matches!(key.reload, ByTable)) {
            let (table, _) = key.name.rsplit_once('.').unwrap();
            let table = KEYS.iter().find(|key| key.name == table.trim_end_matches("[]")).unwrap();
            assert!(matches!(table.reload, Reopens(_) | Restart(..)), "{}", key.name);
        }
    }
}

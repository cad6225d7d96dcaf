//! The keys that a configuration file may have although it was found, not named.
//!
//! A folder can come from anywhere, and clients start programs in it. So a file found there may set names, paths of
//! stores, limits, and record servers that are requested over `https` with the credential of `pdpp connect`. The
//! check uses the tree of the file, not the settings: a key that is added to the settings is restricted until it is
//! listed here.

use std::path::Path;

use crate::config::tree::{Leaf, Mistake, Node};
use crate::source::is_database_url;
use crate::source::pdpp::ProviderUrl;

/// The values of a key that a found file may have.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// All valid values.
    Any,
    /// A URL of a server that is requested over `https`.
    HttpsUrl,
    /// The credential of `pdpp connect`.
    PdppCache,
    /// A path on this machine.
    LocalPath,
}

/// The keys that a found file may have, with their values.
const ALLOWED: [(&str, Values); 30] = [
    ("call_deadline", Values::Any),
    ("cursor_ttl", Values::Any),
    ("context_protection.output_token_threshold", Values::Any),
    ("context_protection.hard_output_token_cap", Values::Any),
    ("context_protection.default_page_size", Values::Any),
    ("context_protection.max_page_size", Values::Any),
    ("context_protection.enable_summarization", Values::Any),
    ("context_protection.enable_pagination", Values::Any),
    ("context_protection.estimator", Values::Any),
    ("context_protection.endpoints.*.threshold", Values::Any),
    ("context_protection.endpoints.*.hard_cap", Values::Any),
    ("context_protection.endpoints.*.page_size", Values::Any),
    ("context_protection.endpoints.*.summarization_enabled", Values::Any),
    ("context_protection.endpoints.*.pagination_enabled", Values::Any),
    ("context_protection.endpoints.*.exempt", Values::Any),
    ("http.max_connections", Values::Any),
    ("http.max_connections_per_address", Values::Any),
    ("http.write_timeout", Values::Any),
    ("http.calls_per_caller", Values::Any),
    ("rate_limit.requests", Values::Any),
    ("rate_limit.per", Values::Any),
    ("search_history", Values::Any),
    ("telemetry.ring", Values::Any),
    ("source[].name", Values::Any),
    ("source[].label", Values::Any),
    ("source[].store", Values::LocalPath),
    ("source[].url", Values::HttpsUrl),
    ("source[].credential", Values::PdppCache),
    ("source[].deadline", Values::Any),
    ("source[].streams[]", Values::Any),
];

/// A key that a file may have only if it is named or trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestrictedKey {
    /// Line of the key, from 1.
    pub line: usize,
    /// Full key, such as `source[0].credential`.
    pub key: String,
    /// Value of the key, escaped for a terminal.
    pub value: String,
    /// Action that the key causes, if its name does not say it.
    pub effect: Option<&'static str>,
}

/// Returns the keys in a file's text that require trust, in the order of the file.
///
/// # Errors
///
/// The text cannot be parsed.
pub fn restricted_keys(text: &str, path: &Path) -> Result<Vec<RestrictedKey>, Mistake> {
    let tree = Node::parse(text, path)?;
    let restricted = tree.leaves().into_iter().filter(|leaf| !is_allowed(leaf));
    Ok(restricted
        .map(|leaf| RestrictedKey {
            line: leaf.line,
            key: leaf.key(),
            effect: effect(&leaf),
            value: leaf.shown,
        })
        .collect())
}

fn is_allowed(leaf: &Leaf) -> bool {
    ALLOWED.iter().any(|(pattern, values)| leaf.fits(pattern) && values.include(leaf))
}

impl Values {
    fn include(self, leaf: &Leaf) -> bool {
        let Some(text) = leaf.text.as_deref() else { return matches!(self, Self::Any) };
        match self {
            Self::Any => true,
            Self::HttpsUrl => text.parse().is_ok_and(|url: ProviderUrl| url.is_https()),
            Self::PdppCache => text == "pdpp-cache",
            // Windows connects and signs in to the machine that a path with two slashes names.
            Self::LocalPath => {
                let slashes = text.trim_start().chars().take_while(|c| matches!(c, '/' | '\\')).count();
                slashes < 2 && !is_database_url(text.trim_start())
            }
        }
    }
}

/// Describes the action that a restricted key causes.
fn effect(leaf: &Leaf) -> Option<&'static str> {
    let text = leaf.text.as_deref().unwrap_or_default();
    if leaf.fits("source[].credential") {
        return Some(match text.split_once(':') {
            Some(("command", _)) => "runs this command and sends what it prints to the source's url",
            Some(("env", _)) => "sends this environment variable to the source's url",
            Some(("file", _)) => "sends this file to the source's url",
            _ => "sends the tokens of callers to the source's url",
        });
    }
    let effects = [
        ("source[].url", "sends queries and a credential there"),
        ("source[].allow_insecure", "sends the credential and the queries unencrypted"),
        ("source[].cache_root", "sends a credential of this folder to the source's url"),
        (
            "source[].store",
            "opens a file of another machine, or a database with the secrets that its URL names",
        ),
        ("telemetry.otlp_endpoint", "sends a span of every call there"),
        ("telemetry.allow_insecure", "sends spans unencrypted"),
        ("audit.path", "writes which records are read there"),
        ("embedding.url", "sends the text of records and queries there"),
        ("embedding.allow_insecure", "sends the text of records and queries unencrypted"),
        ("embedding.api_key", "sends this secret to the url of [embedding]"),
        ("embedding.background", "decides whether records are embedded without a command"),
        ("rerank.url", "sends queries and passages of records there"),
        ("rerank.allow_insecure", "sends queries and passages of records unencrypted"),
        ("rerank.api_key", "sends this secret to the url of [rerank]"),
        ("rerank.path", "reads a model from this folder"),
        ("embedding.path", "reads a model from this folder"),
        ("import[].path", "imports this file or folder into a store"),
        ("state_dir", "writes files there"),
        ("state", "sends encrypted state of calls there, and the secret that the URL names"),
        ("listen", "listens at this address"),
        ("ops_listen", "serves /health and /metrics at this address without a token"),
        ("http.allow_unauthenticated_proxy", "lets everyone who reaches a trusted proxy read every record"),
        ("public_url", "accepts requests under this name"),
        ("tls.certificate", "reads this file"),
        ("tls.key", "reads this file"),
    ];
    effects.into_iter().find_map(|(pattern, effect)| leaf.fits(pattern).then_some(effect))
}

//! The settings of a configuration file.
//!
//! Keys are read into the fields of the same name; those of `[tls]` and `[rate_limit]` are in `http`. Tables that refer to other tables, files or variables are read
//! first and resolved later, each into the field below it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fetchwell_core::fit::Protection;
use fetchwell_http::{PublicUrl, RateLimit, TlsSettings};
use fetchwell_state::redis::RedisUrl;
use fetchwell_telemetry::OtlpEndpoint;
use serde::Deserialize;

use super::SourceSettings;
use super::auth::{AuthSettings, AuthTable};
use super::context_protection::ProtectionTable;
use super::embedding::{ConfiguredEmbedding, EmbeddingTable};
use super::http::HttpSettings;
use super::imports::{ImportSettings, ImportTable};
use super::rerank::{ConfiguredRerank, RerankTable};
use super::sources::SourceTable;
use super::tree::{Mistake, Node};
use super::values::parsed;

/// The settings of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSettings {
    /// Address of the HTTP server.
    pub listen: Option<SocketAddr>,
    /// Separate address for `/health` and `/metrics`, which requires no token.
    pub ops_listen: Option<SocketAddr>,
    /// URL at which clients reach the server.
    #[serde(default, deserialize_with = "parsed")]
    pub public_url: Option<PublicUrl>,
    /// Folder for state that outlives the process, such as the positions of cursors.
    pub state_dir: Option<PathBuf>,
    /// Redis with the short-lived state that several servers share, or `None` if each has its own.
    #[serde(default, deserialize_with = "parsed")]
    pub state: Option<RedisUrl>,
    /// Lifetime of a cursor.
    pub cursor_ttl: Duration,
    /// Timeout of a whole call.
    pub call_deadline: Duration,
    #[serde(default)]
    pub(super) source: Vec<SourceTable>,
    /// Sources to serve.
    #[serde(skip)]
    pub sources: Vec<SourceSettings>,
    pub(super) context_protection: ProtectionTable,
    /// Limits of responses.
    #[serde(skip)]
    pub protection: Protection,
    /// Rate limit of a client over HTTP, or `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// Recorded calls and spans.
    pub telemetry: TelemetrySettings,
    /// Audit log, or `None` for none.
    pub audit: Option<AuditSettings>,
    /// Settings of the HTTP server.
    pub http: HttpSettings,
    /// Certificate and key, if the server uses TLS.
    pub tls: Option<TlsSettings>,
    #[serde(rename = "auth")]
    pub(super) auth_table: Option<AuthTable>,
    /// Authentication over HTTP, or `None` if none is required.
    #[serde(skip)]
    pub auth: Option<AuthSettings>,
    #[serde(rename = "embedding")]
    pub(super) embedding_table: Option<EmbeddingTable>,
    /// Embedding model for search by meaning, or `None` for none.
    #[serde(skip)]
    pub embedding: Option<ConfiguredEmbedding>,
    #[serde(rename = "rerank")]
    pub(super) rerank_table: Option<RerankTable>,
    /// Model that reorders the first hits of a search, or `None` for none.
    #[serde(skip)]
    pub rerank: Option<ConfiguredRerank>,
    #[serde(default)]
    pub(super) import: Vec<ImportTable>,
    /// Files and folders that a server keeps current.
    #[serde(skip)]
    pub imports: Vec<ImportSettings>,
    /// False if a server remembers no searches of documents.
    pub search_history: bool,
    /// Warnings about keys with former names.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// The `[telemetry]` table: the calls in memory and the collector of spans.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Number of calls with records in memory.
    pub ring: usize,
    /// Collector of spans, or `None` to export none.
    #[serde(default, deserialize_with = "parsed")]
    pub otlp_endpoint: Option<OtlpEndpoint>,
    /// True if spans may be sent over plain http to another machine.
    pub allow_insecure: bool,
}

/// The `[audit]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// File to which a line is appended for each record that a call reads.
    pub path: PathBuf,
}

impl TelemetrySettings {
    /// Rejects an unencrypted connection to another machine, unless the file allows it.
    pub(super) fn check(&self, tree: &Node) -> Result<(), Mistake> {
        match self.otlp_endpoint.as_ref().filter(|_| !self.allow_insecure) {
            Some(endpoint) if !endpoint.is_confidential() => {
                Err(tree.mistake(&["telemetry", "otlp_endpoint"], insecure_spans(endpoint)))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error for an unencrypted collector URL, with its remedy.
#[must_use]
pub fn insecure_spans(endpoint: &OtlpEndpoint) -> String {
    format!(
        "over `{endpoint}` spans and the headers of the exporter are sent unencrypted; use https, or set allow_insecure = true \
         in [telemetry] of a configuration file that is named with --config"
    )
}

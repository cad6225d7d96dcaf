//! The tables `[telemetry]` and `[audit]`. They set the calls in memory, the collector of spans, and the log of reads.

use std::path::PathBuf;

use serde::Deserialize;

use super::tree::{Mistake, Node};
use super::values::{Calls, Count, parsed};
use crate::telemetry::OtlpEndpoint;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TelemetryTable {
    pub(super) ring: Option<Count<Calls>>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) otlp_endpoint: Option<OtlpEndpoint>,
    #[serde(default)]
    pub(super) allow_insecure: bool,
}

/// The `[audit]` table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditTable {
    /// File to which a line is appended for each record that a call reads.
    pub(super) path: PathBuf,
}

impl TelemetryTable {
    /// Rejects an unencrypted connection to another machine, unless the file allows it.
    pub(super) fn check(&self, tree: &Node) -> Result<(), Mistake> {
        match self.otlp_endpoint.as_ref().filter(|_| !self.allow_insecure) {
            Some(endpoint) if !endpoint.is_confidential() => {
                Err(tree.mistake("telemetry", "otlp_endpoint", insecure_spans(endpoint)))
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

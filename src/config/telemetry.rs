//! The `[telemetry]` table: the number of calls in memory and the collector of spans.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::tree::{Mistake, Node, key_of};
use super::values::{Calls, Count};
use crate::telemetry::OtlpEndpoint;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TelemetryTable {
    pub(super) ring: Option<Count<Calls>>,
    #[serde(default, deserialize_with = "otlp_endpoint")]
    pub(super) otlp_endpoint: Option<OtlpEndpoint>,
    #[serde(default)]
    pub(super) allow_insecure: bool,
}

impl TelemetryTable {
    /// Rejects an unencrypted connection to another machine, unless the file allows it.
    pub(super) fn check(&self, tree: &Node) -> Result<(), Mistake> {
        let path = ["telemetry", "otlp_endpoint"];
        match self.otlp_endpoint.as_ref().filter(|_| !self.allow_insecure) {
            Some(endpoint) if !endpoint.is_confidential() => Err(Mistake {
                line: tree.line_of(&path),
                key: Some(key_of(&path)),
                problem: insecure_spans(endpoint),
            }),
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

fn otlp_endpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OtlpEndpoint>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

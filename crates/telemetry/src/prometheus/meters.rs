//! The metrics of a process for Prometheus. They start at zero with the process, as Prometheus expects.
//!
//! A label value is a fixed string of this program or the template of a path, so the number of values is bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use super::exposition::{Exposition, Type};
use super::histogram::Histogram;
use crate::record::estimate_tokens;
use crate::{Endpoint, Outcome, TelemetryRecord};

/// Bucket bounds in bytes. The budget of a document is 48,000.
const BYTES: &[f64] =
    &[256.0, 512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0, 16_384.0, 32_768.0, 65_536.0, 262_144.0, 1_048_576.0];

/// Bucket bounds in tokens. Responses are summarised above 4,000 and have at most 12,000.
const TOKENS: &[f64] = &[50.0, 100.0, 250.0, 500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0, 12_000.0, 50_000.0];

/// Bucket bounds in seconds.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0];

/// Bucket bounds in seconds, for encoding a cursor, which takes microseconds.
const ENCODE_SECONDS: &[f64] = &[1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2];

/// The metrics of this process.
#[derive(Debug)]
pub(crate) struct Meters {
    requests: BTreeMap<(Endpoint, Outcome), u64>,
    durations: BTreeMap<Endpoint, Histogram>,
    bytes: Histogram,
    tokens: Histogram,
    oversized: u64,
    invalid_cursors: BTreeMap<&'static str, u64>,
    /// For responses with counted tokens: the sum of the differences between estimate and count, and the sum of the
    /// counts.
    estimates_off: u64,
    tokens_counted: u64,
    cursor_encode_seconds: Histogram,
    reload_seconds: Histogram,
    reloads_refused: u64,
    reloads: u64,
}

/// Values that are computed elsewhere.
#[derive(Debug)]
pub(crate) struct Gauges {
    pub(crate) pagination_adoption: f64,
    pub(crate) summarization_adoption: f64,
    pub(crate) chunking_adoption: f64,
    pub(crate) uptime_seconds: u64,
    pub(crate) dropped: u64,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            durations: BTreeMap::new(),
            bytes: Histogram::new(BYTES),
            tokens: Histogram::new(TOKENS),
            oversized: 0,
            invalid_cursors: BTreeMap::new(),
            estimates_off: 0,
            tokens_counted: 0,
            cursor_encode_seconds: Histogram::new(ENCODE_SECONDS),
            reload_seconds: Histogram::new(SECONDS),
            reloads_refused: 0,
            reloads: 0,
        }
    }
}

impl Meters {
    /// Counts a call, with the specific reason of an invalid cursor.
    pub(crate) fn count(&mut self, record: &TelemetryRecord, reason: Option<&'static str>) {
        *self.requests.entry((record.endpoint.clone(), record.outcome)).or_default() += 1;
        let durations =
            self.durations.entry(record.endpoint.clone()).or_insert_with(|| Histogram::new(SECONDS));
        durations.observe(Duration::from_micros(record.latency_us).as_secs_f64());
        if record.outcome != Outcome::CANCELLED {
            self.bytes.observe(record.response_bytes as f64);
            self.tokens.observe(record.estimated_tokens as f64);
        }
        self.oversized += u64::from(record.oversized);
        if record.outcome == Outcome::INVALID_CURSOR {
            *self.invalid_cursors.entry(reason.unwrap_or("unknown")).or_default() += 1;
        }
        if let Some(counted) = record.optimization.final_tokens {
            self.estimates_off += estimate_tokens(record.response_bytes).abs_diff(counted);
            self.tokens_counted += counted;
        }
    }

    pub(crate) fn cursor_encoded(&mut self, took: Duration) {
        self.cursor_encode_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn reloaded(&mut self, took: Duration) {
        self.reloads += 1;
        self.reload_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn reload_refused(&mut self) {
        self.reloads_refused += 1;
    }

    /// Returns all metrics in Prometheus' text format.
    pub(crate) fn exposition(&self, gauges: &Gauges) -> String {
        let mut text = Exposition::default();
        self.calls(&mut text);
        self.shares(&mut text, gauges);
        self.program(&mut text, gauges);
        text.into_text()
    }

    fn calls(&self, text: &mut Exposition) {
        let name = "fetchwell_requests_total";
        text.metric(
            name,
            Type::Counter,
            "Calls of tools, of /v1, /api/v1 and /openapi.json, by how they ended.",
        );
        for ((endpoint, outcome), count) in &self.requests {
            let labels = [("endpoint", endpoint.as_str()), ("outcome", outcome.as_str())];
            text.sample(name, &labels, count);
        }
        let name = "fetchwell_request_duration_seconds";
        text.metric(name, Type::Histogram, "How long calls took.");
        for (endpoint, durations) in &self.durations {
            durations.expose(text, name, &[("endpoint", endpoint.as_str())]);
        }
        let name = "fetchwell_response_bytes";
        text.metric(name, Type::Histogram, "Bytes of bodies and payloads.");
        self.bytes.expose(text, name, &[]);
        let name = "fetchwell_response_tokens";
        text.metric(name, Type::Histogram, "Tokens of bodies and payloads, counted or estimated.");
        self.tokens.expose(text, name, &[]);
        let name = "fetchwell_oversized_events_total";
        let help = "Answers that were over their threshold before they were shaped.";
        text.single(name, Type::Counter, help, self.oversized);
        let name = "fetchwell_invalid_cursors_total";
        text.metric(name, Type::Counter, "Calls refused for their cursor.");
        for (reason, count) in &self.invalid_cursors {
            text.sample(name, &[("reason", reason)], count);
        }
        let name = "fetchwell_cursor_encode_seconds";
        text.metric(name, Type::Histogram, "How long it took to sign and write a cursor.");
        self.cursor_encode_seconds.expose(text, name, &[]);
    }

    fn shares(&self, text: &mut Exposition, gauges: &Gauges) {
        let mut share = |what: &str, help: &str, value: f64| {
            text.single(&format!("fetchwell_{what}"), Type::Gauge, help, value);
        };
        share(
            "pagination_adoption",
            "The share of lists that were given in pages.",
            gauges.pagination_adoption,
        );
        share(
            "summarization_adoption",
            "The share of calls that gave previews in place of texts.",
            gauges.summarization_adoption,
        );
        share(
            "chunking_adoption",
            "The share of calls that gave a piece of a text.",
            gauges.chunking_adoption,
        );
        let off = match self.tokens_counted {
            0 => f64::NAN,
            counted => self.estimates_off as f64 / counted as f64,
        };
        let help = "By how much estimates of tokens are off, where they were counted too.";
        share("estimation_error_ratio", help, off);
    }

    fn program(&self, text: &mut Exposition, gauges: &Gauges) {
        let name = "fetchwell_telemetry_dropped_total";
        let help = "Calls without a record, because it was lost; they are counted all the same.";
        text.single(name, Type::Counter, help, gauges.dropped);
        let name = "fetchwell_config_reload_seconds";
        text.metric(name, Type::Histogram, "How long a change of the configuration took to be used.");
        self.reload_seconds.expose(text, name, &[]);
        let name = "fetchwell_config_reloads_total";
        text.metric(name, Type::Counter, "Changes of the configuration.");
        text.sample(name, &[("outcome", "applied")], self.reloads);
        text.sample(name, &[("outcome", "refused")], self.reloads_refused);
        let name = "fetchwell_uptime_seconds";
        text.single(name, Type::Gauge, "Seconds since the process started.", gauges.uptime_seconds);
        let name = "fetchwell_build_info";
        text.metric(name, Type::Gauge, "The version.");
        text.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

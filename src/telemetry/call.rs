//! One call, from its start to its end.

use std::fmt;
use std::time::Instant;

use jiff::Timestamp;
use tracing::field::display;

use super::record::{Optimization, TelemetryRecord, estimate_tokens, whole};
use super::{Origin, Outcome, RequestId, Telemetry, TraceParent};
use crate::access::GrantId;
use crate::fit::Shaping;

/// What is called: a tool, or a route. Never what a client wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(String);

impl Endpoint {
    /// A tool of ours; one that there is not is `unknown`.
    #[must_use]
    pub fn tool(name: &str) -> Self {
        Self(format!("tool:{name}"))
    }

    /// The template of a path, such as `/v1/streams/{stream}`.
    #[must_use]
    pub fn route(template: &str) -> Self {
        Self(template.to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of an error that went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refused {
    /// Bytes of its body.
    pub bytes: usize,
    /// A finer word than its code.
    pub reason: Option<&'static str>,
}

/// One call, to be recorded when it ends. One that is dropped was cancelled.
#[derive(Debug)]
pub struct Call {
    telemetry: Telemetry,
    endpoint: Endpoint,
    request_id: RequestId,
    caller: Option<GrantId>,
    parent: Option<TraceParent>,
    started: Instant,
    is_over: bool,
}

impl Call {
    pub(super) fn start(telemetry: Telemetry, endpoint: Endpoint, origin: Origin) -> Self {
        let Origin { request_id, caller, parent } = origin;
        let request_id = request_id.unwrap_or_else(RequestId::fresh);
        Self { telemetry, endpoint, request_id, caller, parent, started: Instant::now(), is_over: false }
    }

    /// It became known only now by whose grant it is.
    pub fn is_by(&mut self, caller: GrantId) {
        self.caller = Some(caller);
    }

    /// It was answered.
    pub fn answered(mut self, shaping: &Shaping) {
        self.end(Outcome::OK, shaping, None);
    }

    /// It ended with an error of this code.
    pub fn failed(self, code: &str) {
        self.refused(code, Refused::default());
    }

    /// It ended with an error of this code, of which more is known.
    pub fn refused(mut self, code: &str, refused: Refused) {
        let shaping = Shaping { bytes: refused.bytes, ..Shaping::default() };
        self.end(Outcome::of_code(code), &shaping, refused.reason);
    }

    fn end(&mut self, outcome: Outcome, shaping: &Shaping, reason: Option<&'static str>) {
        self.is_over = true;
        let response_bytes = whole(shaping.bytes);
        let record = TelemetryRecord {
            request_id: self.request_id.clone(),
            endpoint: self.endpoint.clone(),
            caller: self.caller,
            timestamp: Timestamp::now(),
            estimated_tokens: shaping.tokens.map_or_else(|| estimate_tokens(response_bytes), whole),
            response_bytes,
            item_count: whole(shaping.items),
            latency_us: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            strategy: shaping.strategy,
            summarization_used: shaping.summarized,
            oversized: shaping.oversized,
            outcome,
            optimization: Optimization::of(shaping),
        };
        log(&record);
        self.telemetry.ended(record, reason, self.parent.take());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Outcome::CANCELLED, &Shaping::default(), None);
        }
    }
}

fn log(record: &TelemetryRecord) {
    let TelemetryRecord { endpoint, request_id, outcome, response_bytes, latency_us, .. } = record;
    let outcome = outcome.as_str();
    // A field that is nothing is left out.
    let caller = record.caller.map(|caller| display(caller.short()));
    let oversized = record.oversized.then_some(true);
    let Optimization { original_tokens, .. } = record.optimization;
    let original_tokens = original_tokens.filter(|_| record.oversized);
    let tokens = record.oversized.then_some(record.estimated_tokens);
    tracing::info!(
        %endpoint, %request_id, caller, outcome, response_bytes, latency_us, oversized, original_tokens, tokens, "call"
    );
}

/// A moment as it is written everywhere: UTC, with milliseconds.
pub(super) fn shown_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_milliseconds_and_is_utc() {
        let time: Timestamp = "2026-10-15T16:30:00.1239+02:00".parse().unwrap();
        assert_eq!(shown_time(time), "2026-10-15T14:30:00.123Z");
    }
}

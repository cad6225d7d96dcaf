//! One call, measured from start to end.

use std::fmt;
use std::time::Instant;

use fetchwell_callers::GrantId;
use fetchwell_core::fit::Shaping;
use fetchwell_core::saturate::saturated;
use jiff::Timestamp;
use tracing::field::display;

use super::record::{Optimization, TelemetryRecord, estimate_tokens, whole};
use super::{CallAudit, Origin, Outcome, RequestId, Telemetry, TraceParent};

/// The called tool or route. It never contains text of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(String);

impl Endpoint {
    /// Returns the endpoint of a tool. A tool that does not exist is recorded as `unknown`.
    #[must_use]
    pub fn tool(name: &str) -> Self {
        Self(format!("tool:{name}"))
    }

    /// Returns the endpoint of a route template, such as `/v1/streams/{stream}`.
    #[must_use]
    pub fn route(template: &str) -> Self {
        Self(template.to_owned())
    }

    /// Returns the text that is logged and recorded.
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

/// Details of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorDetails {
    /// Size of the response body in bytes.
    pub bytes: usize,
    /// More specific reason than the error code, for the metrics of invalid cursors.
    pub reason: Option<&'static str>,
}

/// One running call, which is recorded when it ends. A call that is dropped was cancelled.
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
    pub(crate) fn start(telemetry: Telemetry, endpoint: Endpoint, origin: Origin) -> Self {
        let Origin { request_id, caller, parent } = origin;
        let request_id = request_id.unwrap_or_else(RequestId::fresh);
        Self { telemetry, endpoint, request_id, caller, parent, started: Instant::now(), is_over: false }
    }

    /// Sets the grant of the caller, if it became known only after the start of the call.
    pub fn is_by(&mut self, caller: GrantId) {
        self.caller = Some(caller);
    }

    /// Returns the id of the request.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Returns the audit of the call, if there is an audit log.
    #[must_use]
    pub fn audit(&self) -> Option<CallAudit> {
        let log = self.telemetry.audit()?.clone();
        Some(CallAudit::new(log, self.request_id.clone(), self.endpoint.clone()))
    }

    /// Records a successful end.
    pub fn answered(mut self, shaping: &Shaping) {
        self.end(Outcome::OK, shaping, None);
    }

    /// Records an end with this error code.
    pub fn failed(self, code: &str) {
        self.refused(code, ErrorDetails::default());
    }

    /// Records an end with this error code and details of the response.
    pub fn refused(mut self, code: &str, refused: ErrorDetails) {
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
            latency_us: saturated::<u64>(self.started.elapsed().as_micros()),
            strategy: shaping.strategy,
            summarization_used: shaping.summarized,
            oversized: shaping.oversized,
            outcome,
            optimization: Optimization::from_shaping(shaping),
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
    // A field that is `None` is left out of the line.
    let caller = record.caller.map(|caller| display(caller.short()));
    let oversized = record.oversized.then_some(true);
    let Optimization { original_tokens, .. } = record.optimization;
    let original_tokens = original_tokens.filter(|_| record.oversized);
    let tokens = record.oversized.then_some(record.estimated_tokens);
    tracing::info!(
        target: "fetchwell::telemetry::call",
        %endpoint, %request_id, caller, outcome, response_bytes, latency_us, oversized, original_tokens, tokens, "call"
    );
}

/// Formats a timestamp in the form of all output: UTC with milliseconds.
pub(crate) fn shown_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_utc_with_milliseconds() {
        let time: Timestamp = "2026-10-15T16:30:00.1239+02:00".parse().unwrap();
        assert_eq!(shown_time(time), "2026-10-15T14:30:00.123Z");
    }
}

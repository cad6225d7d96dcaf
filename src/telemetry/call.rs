//! One call, from its start to its end.

use std::fmt;
use std::time::Instant;

use crate::fit::Shaping;

/// Where calls are recorded.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {}

/// What is called: a tool, or a route. Never what a client wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint(String);

impl Endpoint {
    /// A tool of ours.
    #[must_use]
    pub fn tool(name: &str) -> Self {
        Self(format!("tool:{name}"))
    }

    /// The template of a path, such as `/v1/streams/{stream}`.
    #[must_use]
    pub fn route(template: &str) -> Self {
        Self(template.to_owned())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Telemetry {
    /// A call has come; its caller may have named it.
    #[must_use]
    pub fn call(&self, endpoint: Endpoint, request_id: Option<String>) -> Call {
        Call { endpoint, request_id, started: Instant::now(), is_over: false }
    }
}

/// One call, to be recorded when it ends. One that is dropped was cancelled.
#[derive(Debug)]
pub struct Call {
    endpoint: Endpoint,
    request_id: Option<String>,
    started: Instant,
    is_over: bool,
}

impl Call {
    /// It was answered.
    pub fn answered(mut self, shaping: &Shaping) {
        self.is_over = true;
        let response_bytes = shaping.bytes;
        tracing::info!(endpoint = %self.endpoint, request_id = self.request_id, outcome = "ok", response_bytes, latency_us = self.micros(), "call");
    }

    /// It ended with an error of this code.
    pub fn failed(mut self, code: &str) {
        self.is_over = true;
        // A code of a record server's own is its text, and not ours to log.
        let code =
            if code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') { code } else { "source_error" };
        tracing::info!(endpoint = %self.endpoint, request_id = self.request_id, outcome = code, latency_us = self.micros(), "call");
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            tracing::info!(endpoint = %self.endpoint, request_id = self.request_id, outcome = "cancelled", latency_us = self.micros(), "call");
        }
    }
}

//! Totals of all calls since the first one.

use fetchwell_core::fit::Strategy;
use schemars::JsonSchema;
use serde::Serialize;

use super::TelemetryRecord;

/// Sums over calls, which only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    /// Number of responses that are lists, paginated or not.
    pub(crate) lists: u64,
    pub(crate) paginated: u64,
    pub(crate) summarized: u64,
    pub(crate) chunked: u64,
    pub(crate) oversized: u64,
    pub(crate) response_bytes: u64,
    pub(crate) latency_us: u64,
}

/// Aggregates of all calls. Shares are of all calls unless stated otherwise, and 0 without calls.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct ContextProtection {
    /// Calls of tools, of `/v1`, `/api/v1` and `/openapi.json`.
    pub total_requests: u64,
    /// The share of answered list calls that gave a page.
    pub pagination_adoption: f64,
    /// The share of all calls that gave previews in place of texts.
    pub summarization_adoption: f64,
    /// The share of all calls that gave a piece of a text.
    pub chunking_adoption: f64,
    /// Bytes of a body, on average.
    pub avg_response_size_bytes: f64,
    /// Milliseconds of a call, on average.
    pub avg_latency_ms: f64,
    /// Milliseconds that half of the latest calls took at most.
    pub p50_latency_ms: f64,
    /// Milliseconds that 95 of 100 of the latest calls took at most.
    pub p95_latency_ms: f64,
    /// Milliseconds that 99 of 100 of the latest calls took at most.
    pub p99_latency_ms: f64,
    /// Calls with an answer that was over its threshold before it was shaped.
    pub oversized_events: u64,
    /// Seconds since this process started.
    pub uptime_seconds: u64,
}

impl Totals {
    /// Returns the totals of a single call.
    pub(crate) fn from_record(record: &TelemetryRecord) -> Self {
        Self {
            requests: 1,
            lists: u64::from(matches!(record.strategy, Strategy::Paginated | Strategy::List)),
            paginated: u64::from(record.strategy == Strategy::Paginated),
            summarized: u64::from(record.summarization_used),
            chunked: u64::from(record.strategy == Strategy::Chunked),
            oversized: u64::from(record.oversized),
            response_bytes: record.response_bytes,
            latency_us: record.latency_us,
        }
    }

    pub(crate) fn plus(self, more: Self) -> Self {
        self.with(more, u64::saturating_add)
    }

    pub(crate) fn minus(self, less: Self) -> Self {
        self.with(less, u64::saturating_sub)
    }

    fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            requests: both(self.requests, other.requests),
            lists: both(self.lists, other.lists),
            paginated: both(self.paginated, other.paginated),
            summarized: both(self.summarized, other.summarized),
            chunked: both(self.chunked, other.chunked),
            oversized: both(self.oversized, other.oversized),
            response_bytes: both(self.response_bytes, other.response_bytes),
            latency_us: both(self.latency_us, other.latency_us),
        }
    }

    /// Returns the aggregates for output. `latencies` are those of the latest calls in microseconds.
    pub(crate) fn aggregate(self, mut latencies: Vec<u64>, uptime_seconds: u64) -> ContextProtection {
        latencies.sort_unstable();
        let of_requests = |count| ratio(count, self.requests);
        let latest = |per_cent| round(millis(percentile(&latencies, per_cent)));
        ContextProtection {
            total_requests: self.requests,
            pagination_adoption: ratio(self.paginated, self.lists),
            summarization_adoption: of_requests(self.summarized),
            chunking_adoption: of_requests(self.chunked),
            avg_response_size_bytes: of_requests(self.response_bytes),
            avg_latency_ms: round(ratio_exact(self.latency_us, self.requests) / 1_000.0),
            p50_latency_ms: latest(50),
            p95_latency_ms: latest(95),
            p99_latency_ms: latest(99),
            oversized_events: self.oversized,
            uptime_seconds,
        }
    }
}

/// Returns `part` divided by `whole`, rounded to four digits, or 0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    round(ratio_exact(part, whole))
}

fn ratio_exact(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn round(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

pub(crate) fn millis(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// Returns a percentile of sorted numbers (nearest rank), or 0 if there are none.
pub(crate) fn percentile(sorted: &[u64], per_cent: usize) -> u64 {
    let rank = (sorted.len() * per_cent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_numbers() {
        let hundred: Vec<u64> = (1..=100).collect();
        for (sorted, per_cent, expect) in [
            (hundred.as_slice(), 50, 50),
            (&hundred, 95, 95),
            (&hundred, 99, 99),
            (&[7], 50, 7),
            (&[7], 99, 7),
            (&[1, 2], 50, 1),
            (&[1, 2], 95, 2),
            (&[], 50, 0),
        ] {
            assert_eq!(percentile(sorted, per_cent), expect, "{per_cent} of {}", sorted.len());
        }
    }

    #[test]
    fn fractions_are_of_calls_and_zero_without_calls() {
        let none = Totals::default().aggregate(Vec::new(), 3);
        assert_eq!(none, ContextProtection { uptime_seconds: 3, ..ContextProtection::default() });
        let totals = Totals {
            requests: 30,
            lists: 3,
            paginated: 2,
            summarized: 10,
            chunked: 0,
            oversized: 1,
            response_bytes: 1_000,
            latency_us: 40_000,
        };
        let shown = totals.aggregate(vec![3_000, 500, 500], 0);
        assert_eq!((shown.pagination_adoption, shown.summarization_adoption), (0.6667, 0.3333));
        assert_eq!((shown.avg_response_size_bytes, shown.avg_latency_ms), (33.3333, 1.3333));
        assert_eq!((shown.p50_latency_ms, shown.p99_latency_ms), (0.5, 3.0));
        assert_eq!(totals.plus(totals).minus(totals), totals);
        assert_eq!(totals.minus(totals.plus(totals)), Totals::default());
    }
}

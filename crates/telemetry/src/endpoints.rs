//! Aggregates of the calls of each endpoint.

use std::collections::BTreeMap;

use fetchwell_core::fit::Strategy;
use serde::Serialize;

use super::record::whole;
use super::totals::{millis, percentile, ratio};
use super::{Outcome, StoredCall, TelemetryRecord};

/// Aggregates of the calls of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointAggregates {
    /// Tool or route that was called.
    pub endpoint: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that failed or were cancelled.
    pub errors: u64,
    /// Median latency in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of the latency in milliseconds.
    pub p95_ms: f64,
    /// 99th percentile of the latency in milliseconds.
    pub p99_ms: f64,
    /// Mean size of a response in bytes.
    pub avg_response_bytes: f64,
    /// Mean size of a response in tokens.
    pub avg_tokens: f64,
    /// Fraction of the successful calls that returned a page of a list.
    pub pagination_adoption: f64,
    /// Fraction of the calls that returned previews in place of texts.
    pub summarization_adoption: f64,
    /// Fraction of the calls that returned a piece of a text.
    pub chunking_adoption: f64,
    /// Number of responses that exceeded their threshold before they were shaped.
    pub oversized: u64,
}

/// The numbers of one call.
#[derive(Debug, Clone, Copy)]
struct CallNumbers {
    has_failed: bool,
    latency_us: u64,
    response_bytes: u64,
    estimated_tokens: u64,
    is_page: bool,
    is_summary: bool,
    is_chunk: bool,
    is_oversized: bool,
}

impl From<&StoredCall> for CallNumbers {
    fn from(call: &StoredCall) -> Self {
        Self {
            has_failed: call.outcome != Outcome::OK.as_str(),
            latency_us: call.latency_us,
            response_bytes: call.response_bytes,
            estimated_tokens: call.estimated_tokens,
            is_page: call.pagination_used,
            is_summary: call.summarization_used,
            is_chunk: call.chunking_used,
            is_oversized: call.oversized,
        }
    }
}

impl From<&TelemetryRecord> for CallNumbers {
    fn from(call: &TelemetryRecord) -> Self {
        Self {
            has_failed: call.outcome != Outcome::OK,
            latency_us: call.latency_us,
            response_bytes: call.response_bytes,
            estimated_tokens: call.estimated_tokens,
            is_page: call.strategy == Strategy::Paginated,
            is_summary: call.summarization_used,
            is_chunk: call.strategy == Strategy::Chunked,
            is_oversized: call.oversized,
        }
    }
}

impl EndpointAggregates {
    /// Aggregates stored calls by endpoint, sorted by its name.
    #[must_use]
    pub fn from_calls(calls: &[StoredCall]) -> Vec<Self> {
        Self::aggregate(calls.iter().map(|call| (call.endpoint.as_str(), call.into())))
    }

    /// Aggregates calls in memory by endpoint, sorted by its name.
    #[must_use]
    pub fn from_records<'a>(records: impl Iterator<Item = &'a TelemetryRecord>) -> Vec<Self> {
        Self::aggregate(records.map(|record| (record.endpoint.as_str(), record.into())))
    }

    fn aggregate<'a>(calls: impl Iterator<Item = (&'a str, CallNumbers)>) -> Vec<Self> {
        let mut by_endpoint: BTreeMap<&str, Vec<CallNumbers>> = BTreeMap::new();
        for (endpoint, numbers) in calls {
            by_endpoint.entry(endpoint).or_default().push(numbers);
        }
        by_endpoint.into_iter().map(|(endpoint, calls)| Self::from_numbers(endpoint, &calls)).collect()
    }

    fn from_numbers(endpoint: &str, calls: &[CallNumbers]) -> Self {
        let mut latencies: Vec<u64> = calls.iter().map(|call| call.latency_us).collect();
        latencies.sort_unstable();
        let count = whole(calls.len());
        let having = |is_so: fn(&CallNumbers) -> bool| whole(calls.iter().filter(|call| is_so(call)).count());
        let sum = |read: fn(&CallNumbers) -> u64| calls.iter().map(read).sum();
        Self {
            endpoint: endpoint.to_owned(),
            calls: count,
            errors: having(|call| call.has_failed),
            p50_ms: millis(percentile(&latencies, 50)),
            p95_ms: millis(percentile(&latencies, 95)),
            p99_ms: millis(percentile(&latencies, 99)),
            avg_response_bytes: ratio(sum(|call| call.response_bytes), count),
            avg_tokens: ratio(sum(|call| call.estimated_tokens), count),
            pagination_adoption: ratio(having(|call| call.is_page), having(|call| !call.has_failed)),
            summarization_adoption: ratio(having(|call| call.is_summary), count),
            chunking_adoption: ratio(having(|call| call.is_chunk), count),
            oversized: having(|call| call.is_oversized),
        }
    }
}

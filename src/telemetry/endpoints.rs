//! Aggregates of the calls of each endpoint.

use std::collections::BTreeMap;

use serde::Serialize;

use super::StoredCall;
use super::record::whole;
use super::totals::{millis, percentile, ratio};

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

impl EndpointAggregates {
    /// Aggregates calls by endpoint, sorted by its name.
    #[must_use]
    pub fn from_calls(calls: &[StoredCall]) -> Vec<Self> {
        let mut by_endpoint: BTreeMap<&str, Vec<&StoredCall>> = BTreeMap::new();
        for call in calls {
            by_endpoint.entry(&call.endpoint).or_default().push(call);
        }
        by_endpoint.into_iter().map(|(endpoint, calls)| Self::of_one(endpoint, &calls)).collect()
    }

    fn of_one(endpoint: &str, calls: &[&StoredCall]) -> Self {
        let mut latencies: Vec<u64> = calls.iter().map(|call| call.latency_us).collect();
        latencies.sort_unstable();
        let count = whole(calls.len());
        let having = |is_so: fn(&StoredCall) -> bool| whole(calls.iter().filter(|call| is_so(call)).count());
        let sum = |read: fn(&StoredCall) -> u64| calls.iter().map(|call| read(call)).sum();
        Self {
            endpoint: endpoint.to_owned(),
            calls: count,
            errors: having(|call| call.outcome != "ok"),
            p50_ms: millis(percentile(&latencies, 50)),
            p95_ms: millis(percentile(&latencies, 95)),
            p99_ms: millis(percentile(&latencies, 99)),
            avg_response_bytes: ratio(sum(|call| call.response_bytes), count),
            avg_tokens: ratio(sum(|call| call.estimated_tokens), count),
            pagination_adoption: ratio(
                having(|call| call.pagination_used),
                having(|call| call.outcome == "ok"),
            ),
            summarization_adoption: ratio(having(|call| call.summarization_used), count),
            chunking_adoption: ratio(having(|call| call.chunking_used), count),
            oversized: having(|call| call.oversized),
        }
    }
}

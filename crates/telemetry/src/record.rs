//! The telemetry record of one call: sizes, times and fixed strings, never the text of a query or a result.

use fetchwell_callers::GrantId;
use fetchwell_core::fit::{Shaping, Strategy};
use fetchwell_core::saturate::saturated;
use jiff::Timestamp;
use serde::Serialize;

use super::{Endpoint, Outcome, RequestId};

/// The telemetry of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryRecord {
    /// Id of the request.
    pub request_id: RequestId,
    /// Tool or route that was called.
    pub endpoint: Endpoint,
    /// Grant of the caller, or `None` if callers are anonymous.
    pub caller: Option<GrantId>,
    /// Time at which the call ended.
    pub timestamp: Timestamp,
    /// Tokens of the response: counted if it is JSON, else estimated by its bytes.
    pub estimated_tokens: u64,
    /// Size of the body, or of the payload of a tool, in bytes.
    pub response_bytes: u64,
    /// Number of records, results or groups in the response.
    pub item_count: u64,
    /// Latency in microseconds.
    pub latency_us: u64,
    /// Shape of the response: whole, an unpaginated list, a page of a list, or a piece of a text.
    pub strategy: Strategy,
    /// True if the response contains a preview in place of a text.
    pub summarization_used: bool,
    /// True if the response exceeded its threshold before it was shaped.
    pub oversized: bool,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Savings by shaping.
    pub optimization: Optimization,
}

/// The savings by shaping, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Optimization {
    /// Tokens that the response would have without shortening, equal to the final tokens if nothing was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_tokens: Option<u64>,
    /// Counted tokens of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_tokens: Option<u64>,
    /// Reduction from the original to the final tokens, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_reduction_percent: Option<f64>,
    /// Number of fields of the original records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_fields: Option<u64>,
    /// Number of those fields in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_fields: Option<u64>,
}

impl Optimization {
    pub(crate) fn from_shaping(shaping: &Shaping) -> Self {
        let last = shaping.tokens.map(whole);
        let original = shaping.candidate_tokens.map(whole).or(last);
        let reduction = original.zip(last).filter(|(original, _)| *original > 0).map(|(original, last)| {
            let saved = original.saturating_sub(last);
            (saved as f64 / original as f64 * 1_000.0).round() / 10.0
        });
        Self {
            original_tokens: original,
            final_tokens: last,
            token_reduction_percent: reduction,
            original_fields: shaping.fields.map(|(original, _)| whole(original)),
            kept_fields: shaping.fields.map(|(_, kept)| whole(kept)),
        }
    }
}

/// Estimates the tokens of a text from its bytes: a quarter of them plus 20 %, rounded up.
#[must_use]
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.saturating_mul(3).div_ceil(10)
}

pub(crate) fn whole(number: usize) -> u64 {
    saturated::<u64>(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimated_tokens_are_a_quarter_of_the_bytes_plus_20_percent() {
        for (bytes, tokens) in [(0, 0), (1, 1), (4, 2), (40, 12), (1_000, 300), (16_384, 4_916)] {
            assert_eq!(estimate_tokens(bytes), tokens, "{bytes}");
        }
        assert!(estimate_tokens(u64::MAX) > 0);
    }

    #[track_caller]
    fn check(shaping: Shaping, expect: &str) {
        assert_eq!(serde_json::to_string(&Optimization::from_shaping(&shaping)).unwrap(), expect);
    }

    #[test]
    fn unknown_values_are_omitted() {
        check(Shaping::default(), "{}");
        check(
            Shaping { tokens: Some(10), ..Shaping::default() },
            r#"{"original_tokens":10,"final_tokens":10,"token_reduction_percent":0.0}"#,
        );
        check(
            Shaping {
                tokens: Some(400),
                candidate_tokens: Some(1_200),
                fields: Some((20, 6)),
                ..Shaping::default()
            },
            r#"{"original_tokens":1200,"final_tokens":400,"token_reduction_percent":66.7,"original_fields":20,"kept_fields":6}"#,
        );
        // A preview can be longer than the original. The reduction is then zero, not negative.
        check(
            Shaping { tokens: Some(3), candidate_tokens: Some(2), ..Shaping::default() },
            r#"{"original_tokens":2,"final_tokens":3,"token_reduction_percent":0.0}"#,
        );
    }
}

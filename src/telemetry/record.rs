//! What is recorded of one call: sizes, times and words of ours, and nothing of what was asked or found.

use jiff::Timestamp;
use serde::Serialize;

use super::{Endpoint, Outcome, RequestId};
use crate::access::GrantId;
use crate::fit::{Shaping, Strategy};

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryRecord {
    /// What it is known by.
    pub request_id: RequestId,
    /// What was called.
    pub endpoint: Endpoint,
    /// By whose grant; nothing where callers are not told apart.
    pub caller: Option<GrantId>,
    /// When it ended.
    pub timestamp: Timestamp,
    /// Tokens of the answer: counted where they were, else estimated.
    pub estimated_tokens: u64,
    /// Bytes of the body, or of the payload of a tool.
    pub response_bytes: u64,
    /// Records, results or groups in it.
    pub item_count: u64,
    /// How long it took, in microseconds.
    pub latency_us: u64,
    /// Whether it is a page, or a piece of a text; never both.
    pub strategy: Strategy,
    /// Something in it was replaced by a preview.
    pub summarization_used: bool,
    /// Before it was shaped it was over its threshold.
    pub oversized: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// What shaping saved.
    pub optimization: Optimization,
}

/// What shaping saved, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Optimization {
    /// Tokens of what the answer was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_tokens: Option<u64>,
    /// Tokens of the answer, counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_tokens: Option<u64>,
    /// The difference, in hundredths of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_reduction_percent: Option<f64>,
    /// Fields of the records it was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_fields: Option<u64>,
    /// How many of them it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_fields: Option<u64>,
}

impl Optimization {
    pub(super) fn of(shaping: &Shaping) -> Self {
        let (original, last) = (shaping.candidate_tokens.map(whole), shaping.tokens.map(whole));
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

/// Tokens of so many bytes: a quarter of them and a fifth more, rounded up.
#[must_use]
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.saturating_mul(3).div_ceil(10)
}

pub(super) fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_a_quarter_of_the_bytes_and_a_fifth_more() {
        for (bytes, tokens) in [(0, 0), (1, 1), (4, 2), (40, 12), (1_000, 300), (16_384, 4_916)] {
            assert_eq!(estimate_tokens(bytes), tokens, "{bytes}");
        }
        assert!(estimate_tokens(u64::MAX) > 0);
    }

    #[track_caller]
    fn check(shaping: Shaping, expect: &str) {
        assert_eq!(serde_json::to_string(&Optimization::of(&shaping)).unwrap(), expect);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        check(Shaping::default(), "{}");
        check(Shaping { tokens: Some(10), ..Shaping::default() }, r#"{"final_tokens":10}"#);
        check(
            Shaping {
                tokens: Some(400),
                candidate_tokens: Some(1_200),
                fields: Some((20, 6)),
                ..Shaping::default()
            },
            r#"{"original_tokens":1200,"final_tokens":400,"token_reduction_percent":66.7,"original_fields":20,"kept_fields":6}"#,
        );
        // A preview can be longer than what it stands for; that saved nothing, and not less than nothing.
        check(
            Shaping { tokens: Some(3), candidate_tokens: Some(2), ..Shaping::default() },
            r#"{"original_tokens":2,"final_tokens":3,"token_reduction_percent":0.0}"#,
        );
    }
}

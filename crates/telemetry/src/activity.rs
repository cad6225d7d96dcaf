//! Calls over time.

use std::sync::Arc;

use fetchwell_core::saturate::saturated;
use jiff::{SignedDuration, Timestamp};

use super::{Outcome, TelemetryRecord};

/// The end of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCall {
    pub(crate) timestamp: Timestamp,
    /// False if the call failed or was cancelled.
    pub(crate) is_answered: bool,
}

impl From<&TelemetryRecord> for EndedCall {
    fn from(record: &TelemetryRecord) -> Self {
        Self { timestamp: record.timestamp, is_answered: record.outcome == Outcome::OK }
    }
}

/// Calls in consecutive intervals of the same length, the oldest first. The last interval ends now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Length of an interval.
    pub interval: SignedDuration,
    /// The intervals.
    pub intervals: Vec<IntervalCalls>,
}

/// The calls that ended in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalCalls {
    /// Begin of the interval.
    pub start: Timestamp,
    /// Number of calls that were answered.
    pub answered: u64,
    /// Number of calls that failed or were cancelled.
    pub failed: u64,
}

impl Activity {
    /// Counts the calls of the last `count` intervals before `now`. Earlier calls are left out.
    #[must_use]
    pub fn new(
        records: &[Arc<TelemetryRecord>],
        now: Timestamp,
        interval: SignedDuration,
        count: usize,
    ) -> Self {
        Self::from_calls(records.iter().map(|record| record.as_ref().into()), now, interval, count)
    }

    /// Counts calls in the same way, in any order.
    pub(crate) fn from_calls(
        ended: impl Iterator<Item = EndedCall>,
        now: Timestamp,
        interval: SignedDuration,
        count: usize,
    ) -> Self {
        let step = interval.as_millis().max(1);
        let end = now.as_millisecond();
        let begin_of = |number: usize| {
            let before = saturated::<i64>(count.saturating_sub(number));
            let length = saturated::<i64>(step);
            Timestamp::from_millisecond(end.saturating_sub(before.saturating_mul(length))).unwrap_or_default()
        };
        let mut intervals: Vec<IntervalCalls> = (0..count)
            .map(|number| IntervalCalls { start: begin_of(number), answered: 0, failed: 0 })
            .collect();
        for call in ended {
            let age = i128::from(end.saturating_sub(call.timestamp.as_millisecond()).max(0));
            let nth_from_end = saturated::<usize>(age / step);
            let place = count.checked_sub(1).and_then(|last| last.checked_sub(nth_from_end));
            let Some(calls) = place.and_then(|place| intervals.get_mut(place)) else { continue };
            if call.is_answered {
                calls.answered += 1;
            } else {
                calls.failed += 1;
            }
        }
        Self { interval, intervals }
    }

    /// Returns the largest number of calls of an interval.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.intervals.iter().map(|calls| calls.answered + calls.failed).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Optimization, RequestId};
    use fetchwell_core::fit::Strategy;

    fn record(seconds: i64, outcome: Outcome) -> Arc<TelemetryRecord> {
        Arc::new(TelemetryRecord {
            request_id: RequestId::fresh(),
            endpoint: Endpoint::tool("search"),
            caller: None,
            timestamp: Timestamp::from_second(seconds).unwrap(),
            estimated_tokens: 1,
            response_bytes: 1,
            item_count: 1,
            latency_us: 1,
            strategy: Strategy::List,
            summarization_used: false,
            oversized: false,
            outcome,
            optimization: Optimization::default(),
        })
    }

    #[test]
    fn calls_are_counted_in_the_interval_of_their_end() {
        let now = Timestamp::from_second(1_000).unwrap();
        let failed = Outcome::of_code("not_found");
        let records = [
            record(1_000, Outcome::OK),
            record(1_002, Outcome::OK), // A clock that was set back.
            record(991, failed),
            record(990, Outcome::OK),
            record(975, Outcome::CANCELLED),
            record(969, Outcome::OK), // Before the first interval.
        ];
        let activity = Activity::new(&records, now, SignedDuration::from_secs(10), 3);
        let counts: Vec<_> = activity
            .intervals
            .iter()
            .map(|calls| (calls.start.as_second(), calls.answered, calls.failed))
            .collect();
        assert_eq!(counts, [(970, 0, 1), (980, 1, 0), (990, 2, 1)]);
        assert_eq!(activity.max(), 3);
        assert_eq!(Activity::new(&records, now, SignedDuration::ZERO, 0).max(), 0);
    }
}

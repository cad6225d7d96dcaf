//! Measurement of call times.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::runtime::Runtime;

use crate::app::failure::Failure;

/// Number of warm-up calls, which fill the caches.
const WARM_UP_CALLS: usize = 5;

/// Percentiles of a call's times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) p50_us: f64,
    pub(super) p95_us: f64,
    pub(super) p99_us: f64,
}

impl Times {
    pub(super) fn from_durations(mut taken: Vec<Duration>) -> Self {
        taken.sort_unstable();
        let micros = |share| (percentile(&taken, share).as_secs_f64() * 10_000_000.0).round() / 10.0;
        Self { p50_us: micros(50), p95_us: micros(95), p99_us: micros(99) }
    }
}

/// Returns a percentile of sorted times.
pub(super) fn percentile(sorted: &[Duration], share: usize) -> Duration {
    sorted.get(sorted.len() * share / 100).copied().unwrap_or_default()
}

/// Makes a call repeatedly, each with its number. Returns the times and the size in bytes of the last answer.
pub(super) fn timed<Answer: Future<Output = Result<usize, Failure>>>(
    runtime: &Runtime,
    times: usize,
    call: impl Fn(usize) -> Answer,
) -> Result<(Times, usize), Failure> {
    let (mut taken, mut bytes) = (Vec::with_capacity(times), 0);
    for number in 0..WARM_UP_CALLS + times {
        let started = Instant::now();
        bytes = runtime.block_on(call(number))?;
        taken.push(started.elapsed());
    }
    Ok((Times::from_durations(taken.split_off(WARM_UP_CALLS)), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shares_of_what_was_measured() {
        let taken = (1..=100).rev().map(Duration::from_micros).collect();
        assert_eq!(Times::from_durations(taken), Times { p50_us: 51.0, p95_us: 96.0, p99_us: 100.0 });
        assert_eq!(Times::from_durations(Vec::new()), Times { p50_us: 0.0, p95_us: 0.0, p99_us: 0.0 });
    }
}

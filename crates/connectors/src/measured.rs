//! A check that work grows with the size of its input, for the tests of readers of hostile files.

use std::time::Instant;

/// Number of times that work on one input is measured. Its fastest time counts, because other processes slow it down.
const ATTEMPTS: usize = 5;

/// Maximum of the time of four times the input, as a multiple of that of the input: 4 is linear, and 16 quadratic.
const MAX_GROWTH: f64 = 10.0;

/// Seconds of a tick, by which Linux counts the time of a thread. Shorter times count as long.
const TICK_SECONDS: f64 = 0.004;

/// Runs work on inputs of `size` and of `4 * size`, and fails if its time grows faster than the input.
#[track_caller]
pub(crate) fn assert_linear(size: usize, work: &dyn Fn(usize)) {
    let fastest = |size: usize| (0..ATTEMPTS).map(|_| seconds(&|| work(size))).fold(f64::INFINITY, f64::min);
    let small = fastest(size).max(TICK_SECONDS);
    let mut growth = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        growth = growth.min(seconds(&|| work(4 * size)) / small);
        if growth < MAX_GROWTH {
            return;
        }
    }
    panic!("work on an input of {} takes {growth:.1} times as long as on one of {size}", 4 * size);
}

/// Returns the time that work takes: that of the thread where the system tells it, because other processes take turns.
fn seconds(work: &dyn Fn()) -> f64 {
    let (before, started) = (thread_seconds(), Instant::now());
    work();
    let wall = started.elapsed().as_secs_f64();
    before.zip(thread_seconds()).map_or(wall, |(before, after)| after - before)
}

/// Returns the seconds that this thread ran, as Linux counts them.
fn thread_seconds() -> Option<f64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadratic_work_is_found() {
        let quadratic = |count: usize| {
            let text = "a".repeat(count);
            let found = (0..count).filter(|at| text.get(*at..).is_some_and(|rest| rest.contains('b')));
            assert_eq!(found.count(), 0);
        };
        assert!(std::panic::catch_unwind(|| assert_linear(20_000, &quadratic)).is_err());
        assert_linear(10_000, &|count| assert_eq!("a".repeat(count).len(), count));
    }
}

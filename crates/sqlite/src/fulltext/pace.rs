//! Pace of the searches of a store, from which the duration of the next one is expected.
//!
//! Two hand-overs between threads take a tenth of the time of a search of some thousand records.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Maximum duration of a short search.
const SHORT: Duration = Duration::from_millis(1);

/// Number of consecutive short searches after which the next one is expected to be short.
const MIN_SHORT: u32 = 8;

/// Pace of the latest searches.
#[derive(Debug, Default)]
pub(super) struct SearchPace {
    /// Number of short searches since the last longer one.
    short: AtomicU32,
}

/// Timer of a running search. A search that fails counts as a long one.
#[derive(Debug)]
pub(super) struct SearchTimer<'a> {
    pace: &'a SearchPace,
    began: Instant,
    is_done: bool,
}

impl SearchPace {
    /// Starts the timer of a search.
    pub(super) fn start(&self) -> SearchTimer<'_> {
        SearchTimer { pace: self, began: Instant::now(), is_done: false }
    }

    /// Returns true if the next search is expected to be short.
    pub(super) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed) >= MIN_SHORT
    }

    fn note(&self, is_short: bool) {
        if !is_short {
            self.short.store(0, Ordering::Relaxed);
        } else if !self.is_short() {
            self.short.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl SearchTimer<'_> {
    /// Stops the timer of a search that was answered.
    pub(super) fn stop(mut self) {
        self.is_done = true;
    }
}

impl Drop for SearchTimer<'_> {
    fn drop(&mut self) {
        self.pace.note(self.is_done && self.began.elapsed() <= SHORT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_failed_search_begins_the_count_again() {
        let pace = SearchPace::default();
        let short = |count: u32| (0..count).for_each(|_| pace.note(true));
        short(MIN_SHORT - 1);
        assert!(!pace.is_short());
        short(2);
        assert!(pace.is_short());
        drop(pace.start());
        assert!(!pace.is_short(), "a failed search");
        short(MIN_SHORT);
        let mut timer = pace.start();
        timer.began = timer.began.checked_sub(SHORT * 2).unwrap();
        timer.stop();
        assert!(!pace.is_short(), "a long search");
    }
}

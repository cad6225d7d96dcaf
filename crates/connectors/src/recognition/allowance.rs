//! Pages and time for the text recognition of several files together: the attachments of a message.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;

use super::measure::MAX_PAGES;

/// Maximum time for all attachments of a message, as for a file.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);

/// The pages and the time that are left for the attachments of a message.
#[derive(Debug)]
pub(crate) struct OcrAllowance {
    pages: AtomicUsize,
    /// Time that was used, in milliseconds.
    used: AtomicU64,
}

impl OcrAllowance {
    /// Creates the allowance of a message, which has as many pages and as much time as a file.
    pub(crate) fn for_message() -> Self {
        Self { pages: AtomicUsize::new(MAX_PAGES), used: AtomicU64::new(0) }
    }

    /// Counts a page that is recognized next.
    ///
    /// # Errors
    ///
    /// No page or no time is left, which the text says.
    pub(super) fn take_page(&self) -> Result<(), String> {
        if self.time_left().is_zero() {
            let minutes = MAX_TIME.as_secs() / 60;
            return Err(format!("recognizing the attachments before it took longer than {minutes} minutes"));
        }
        let left = self.pages.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_none| {
            format!("text is recognized on at most {MAX_PAGES} pages of the attachments of a message")
        })
    }

    /// Returns the time that is left.
    pub(super) fn time_left(&self) -> Duration {
        MAX_TIME.saturating_sub(self.used())
    }

    /// Returns the time that was used.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_millis(self.used.load(Ordering::Relaxed))
    }

    /// Counts the time from `start` until now.
    pub(super) fn use_time_since(&self, start: Instant) {
        self.used.fetch_add(saturated(start.elapsed().as_millis()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_time_end() {
        let allowance = OcrAllowance::for_message();
        for _ in 0..MAX_PAGES {
            allowance.take_page().unwrap();
        }
        assert!(allowance.take_page().unwrap_err().contains("at most 500 pages of the attachments"));
        let allowance = OcrAllowance::for_message();
        allowance.used.store(30 * 60 * 1_000 - 1, Ordering::Relaxed);
        assert_eq!((allowance.take_page(), allowance.time_left()), (Ok(()), Duration::from_millis(1)));
        allowance.used.store(30 * 60 * 1_000, Ordering::Relaxed);
        assert!(allowance.take_page().unwrap_err().contains("took longer than 30 minutes"));
    }
}

//! How often the configuration was read again, for whoever counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What became of changes of the configuration file. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Reloads(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    applied: AtomicU64,
    refused: AtomicU64,
    last_micros: AtomicU64,
}

impl Reloads {
    /// Changes that are live.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.0.applied.load(Ordering::Relaxed)
    }

    /// Changes that were not valid; what was before is live.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Microseconds that the last took, from the news of it to the moment it was live; 0 before the first.
    #[must_use]
    pub fn last_micros(&self) -> u64 {
        self.0.last_micros.load(Ordering::Relaxed)
    }

    /// One more is live.
    pub fn count_applied(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.last_micros.store(micros, Ordering::Relaxed);
        self.0.applied.fetch_add(1, Ordering::Relaxed);
    }

    /// One more was not valid.
    pub fn count_refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }
}

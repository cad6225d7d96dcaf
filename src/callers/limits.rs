//! The limit of concurrent calls of each person.
//!
//! Permits are counted for each person and not for each grant: several tokens of one person share a limit.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::GrantId;
use crate::lru::{LruCache, LruLimits};

/// Maximum number of people with permits; the least recently used is evicted.
const MAX_PEOPLE: u64 = 10_000;

/// Time after which the permits of a person without calls are evicted.
const MAX_IDLE: Duration = Duration::from_secs(30 * 60);

/// Maximum time that a call waits for a permit.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Concurrency permits of all people.
#[derive(Debug)]
pub struct CallLimiter {
    /// Semaphores by person and limit: a changed limit begins with a new semaphore.
    permits: LruCache<(GrantId, usize), Arc<Semaphore>>,
}

/// The reason why an authenticated caller gets no tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// No source is configured for the caller.
    #[error("this server has no records for you; ask its operator for a source")]
    NoSources,
    /// All permits of the person are taken.
    #[error("too many calls of yours are running; make fewer at a time")]
    TooManyCalls,
}

impl CallLimiter {
    /// Creates a limiter in which no call is running.
    #[must_use]
    pub fn new() -> Self {
        Self { permits: LruCache::new(LruLimits::new(MAX_PEOPLE).with_max_idle(MAX_IDLE)) }
    }

    /// Waits for one of the `limit` permits of a person.
    ///
    /// # Errors
    ///
    /// No permit was released in time.
    pub async fn acquire(
        &self,
        person: GrantId,
        limit: usize,
    ) -> Result<OwnedSemaphorePermit, AdmissionError> {
        // Each call looks the semaphore up, so it is evicted after the last grant in use and not after the first.
        let permits = self.permits.get_or_insert_with((person, limit), || Arc::new(Semaphore::new(limit)));
        let permit = timeout(MAX_WAIT, permits.acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or(AdmissionError::TooManyCalls)
    }
}

impl Default for CallLimiter {
    fn default() -> Self {
        Self::new()
    }
}

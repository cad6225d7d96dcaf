//! The limit of concurrent calls of each person.
//!
//! Permits are counted for each person and not for each grant: several tokens of one person share a limit.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::GrantId;

/// Maximum number of people with permits; the least recently used is evicted.
const MAX_PEOPLE: u64 = 10_000;

/// Time after which the permits of a person without calls are evicted.
const MAX_IDLE: Duration = Duration::from_secs(30 * 60);

/// Maximum time that a call waits for a permit.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of a person's calls that wait for a permit.
const MAX_WAITING: usize = 256;

/// Concurrency permits of all people.
#[derive(Debug)]
pub struct CallLimiter {
    /// Permits by person and limit: a changed limit begins with new permits.
    permits: LruCache<(GrantId, usize), Permits>,
}

/// Permits of one person. Cheap to clone; clones share the permits.
#[derive(Debug, Clone)]
struct Permits {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
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
    /// No permit was released in time, or too many calls wait for one.
    pub async fn acquire(
        &self,
        person: GrantId,
        limit: usize,
    ) -> Result<OwnedSemaphorePermit, AdmissionError> {
        // Each call looks the semaphore up, so it is evicted after the last grant in use and not after the first.
        let permits = self.permits.get_or_insert_with((person, limit), || Permits::new(limit));
        permits.acquire().await.ok_or(AdmissionError::TooManyCalls)
    }
}

impl Permits {
    fn new(limit: usize) -> Self {
        Self { running: Arc::new(Semaphore::new(limit)), waiting: Arc::new(Semaphore::new(MAX_WAITING)) }
    }

    async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        timeout(MAX_WAIT, Arc::clone(&self.running).acquire_owned()).await.ok()?.ok()
    }
}

impl Default for CallLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bounded_number_of_calls_waits_for_a_permit() {
        let permits = Permits::new(1);
        let running = permits.acquire().await.unwrap();
        let waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                let permits = permits.clone();
                tokio::spawn(async move { permits.acquire().await.is_some() })
            })
            .collect();
        while permits.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(permits.acquire().await.is_none(), "one more is refused at once");
        drop(running);
        for call in waiting {
            assert!(call.await.unwrap(), "each waiting call gets the permit in its turn");
        }
        assert!(permits.acquire().await.is_some());
    }
}

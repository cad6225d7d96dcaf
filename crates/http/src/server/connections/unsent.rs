//! Bounds the bytes of finished responses that wait to be sent.
//!
//! The server has to buffer the responses of a client that does not read. Each caller has a budget, and each
//! connection has one for responses that belong to no caller. A response larger than a whole budget may be sent while
//! nothing else is. A response without room waits a few seconds in a second budget of the same size, and is then
//! dropped.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::saturate::saturated;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Maximum unsent bytes of one caller's responses. A page of records is usually below 1 MiB.
pub(crate) const MAX_UNSENT_OF_CALLER: u32 = 64 * MIB;

/// Maximum unsent bytes of the responses on one connection that belong to no caller: refusals, metadata, health.
pub(crate) const MAX_UNSENT_WITHOUT_CALLER: u32 = MIB;

/// Maximum time that a response waits for others to be sent.
const MAX_WAIT: Duration = Duration::from_secs(5);

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// Budget of unsent bytes. Cheap to clone; clones share the budget.
#[derive(Debug, Clone)]
pub(crate) struct UnsentBudget {
    /// Size of the budget in KiB.
    kib: u32,
    /// Permits for responses that are being sent, in KiB.
    sending: Arc<Semaphore>,
    /// Permits for responses that wait to be sent, in KiB.
    waiting: Arc<Semaphore>,
}

/// Reserved bytes of one response, released on drop.
#[derive(Debug)]
pub(crate) struct UnsentShare {
    _bytes: OwnedSemaphorePermit,
}

/// Error of a full budget: too many responses were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchUnsent;

impl UnsentBudget {
    pub(crate) fn new(bytes: u32) -> Self {
        let kib = (bytes / KIB).max(1);
        let semaphore = || Arc::new(Semaphore::new(usize::try_from(kib).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { kib, sending: semaphore(), waiting: semaphore() }
    }

    /// Reserves room for a response and waits for it if necessary.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<UnsentShare, TooMuchUnsent> {
        let kib = saturated::<u32>(bytes.div_ceil(1024)).min(self.kib);
        if let Ok(bytes) = Arc::clone(&self.sending).try_acquire_many_owned(kib) {
            return Ok(UnsentShare { _bytes: bytes });
        }
        let _waiting = self.waiting.try_acquire_many(kib).map_err(|_full| TooMuchUnsent)?;
        let waited = timeout(MAX_WAIT, Arc::clone(&self.sending).acquire_many_owned(kib)).await;
        waited.ok().and_then(Result::ok).map(|bytes| UnsentShare { _bytes: bytes }).ok_or(TooMuchUnsent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_response_waits_for_room_and_is_then_refused() {
        let budget = UnsentBudget::new(MIB);
        let half = 512 * 1024;
        let first = budget.reserve(half).await.unwrap();
        let _second = budget.reserve(half).await.unwrap();
        assert_eq!(budget.reserve(half).await.unwrap_err(), TooMuchUnsent);
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(half).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_responses_are_bounded() {
        let budget = UnsentBudget::new(MIB);
        let _sent = budget.reserve(MIB as usize).await.unwrap();
        let waiting = budget.clone();
        let _waiting = tokio::spawn(async move { waiting.reserve(MIB as usize).await.is_ok() });
        tokio::task::yield_now().await;
        // The reservation fails at once: the clock is paused.
        let before = tokio::time::Instant::now();
        assert_eq!(budget.reserve(1).await.unwrap_err(), TooMuchUnsent);
        assert_eq!(tokio::time::Instant::now(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn one_response_may_be_larger_than_the_budget() {
        let budget = UnsentBudget::new(MIB);
        let large = budget.reserve(usize::MAX).await.unwrap();
        assert!(budget.reserve(1).await.is_err());
        drop(large);
        assert!(budget.reserve(1).await.is_ok());
    }
}

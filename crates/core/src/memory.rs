//! A process-wide budget for the text of records that are read and worked on.
//!
//! One record can have 64 MiB, and work on it takes several times that, so counting calls does not bound memory. A read of
//! record text acquires its bytes first. A `MemoryPermit` stays with the records until they are dropped.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::saturate::saturated;

/// Bytes of record text that all calls together may read and work on.
pub const MAX_BYTES: usize = 128 * 1024 * 1024;

/// Bytes that one read may have without a permit. The bound of reads at a time bounds them, too.
pub const UNCOUNTED_BYTES: usize = 256 * 1024;

/// Bytes of one permit of the semaphore.
const BYTES_PER_PERMIT: usize = 64 * 1024;

static BUDGET: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(MAX_BYTES / BYTES_PER_PERMIT)));

/// A share of the budget, returned when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct MemoryPermit {
    permits: Option<Arc<OwnedSemaphorePermit>>,
}

/// Permits are always equal, so that records are compared by their contents alone.
impl PartialEq for MemoryPermit {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// The budget was in use until the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBusy;

impl MemoryPermit {
    /// Waits until so many bytes are free. A text that is longer than the budget takes all of it.
    ///
    /// # Errors
    ///
    /// They did not become free in time.
    pub async fn acquire(bytes: usize, within: Duration) -> Result<Self, MemoryBusy> {
        Self::acquire_from(&BUDGET, bytes, within).await
    }

    async fn acquire_from(
        budget: &Arc<Semaphore>,
        bytes: usize,
        within: Duration,
    ) -> Result<Self, MemoryBusy> {
        let acquired = timeout(within, Arc::clone(budget).acquire_many_owned(count(bytes))).await;
        let permits = acquired.ok().and_then(Result::ok).ok_or(MemoryBusy)?;
        Ok(Self { permits: Some(Arc::new(permits)) })
    }

    /// Returns what is not needed for so many bytes. Does nothing to a permit that was cloned.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(permits) = self.permits.as_mut().and_then(Arc::get_mut) {
            let needed = saturated::<usize>(count(bytes));
            drop(permits.split(permits.num_permits().saturating_sub(needed)));
        }
    }
}

fn count(bytes: usize) -> u32 {
    let permits = bytes.min(MAX_BYTES).div_ceil(BYTES_PER_PERMIT);
    saturated::<u32>(permits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permits_are_for_bytes_and_return_when_the_last_clone_goes() {
        let budget = Arc::new(Semaphore::new(MAX_BYTES / BYTES_PER_PERMIT));
        let acquire = |bytes| MemoryPermit::acquire_from(&budget, bytes, Duration::from_secs(1));
        let mut whole = acquire(usize::MAX).await.unwrap();
        assert_eq!(acquire(1).await, Err(MemoryBusy));
        whole.shrink_to(MAX_BYTES / 2);
        let half = acquire(MAX_BYTES / 2).await.unwrap();
        let clone = half.clone();
        drop(half);
        assert_eq!(acquire(1).await, Err(MemoryBusy));
        drop((clone, whole));
        acquire(MAX_BYTES).await.unwrap();
    }
}

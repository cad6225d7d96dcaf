//! Positions in memory, for a server of one client.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::lru::{LruCache, LruLimits};

use crate::StateError;
use crate::cursor::codec::{Reference, VALID_FOR};
use crate::cursor::positions::{Position, Positions};

/// Maximum memory for positions in bytes: two of the largest, or thousands of common ones.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Positions of this process. They are evicted when their cursors expire, by a clock that cannot be set back, and
/// least recently used first when memory is short.
#[derive(Debug)]
pub(crate) struct Memory(LruCache<Reference, Position>);

impl Default for Memory {
    fn default() -> Self {
        Self::with_ttl(VALID_FOR)
    }
}

impl Memory {
    /// Creates positions with a lifetime.
    pub(crate) fn with_ttl(valid_for: Duration) -> Self {
        let weight = |_: &Reference, position: &Position| position.weight();
        Self(LruCache::with_weights(LruLimits::new(MAX_BYTES).with_lifetime(valid_for), weight))
    }
}

#[async_trait]
impl Positions for Memory {
    async fn keep(&self, reference: Reference, position: Position) -> Result<Duration, StateError> {
        let issued = position.issued;
        self.0.insert(reference, position);
        // Evicts at once. The cache would let a burst of large positions exceed the limit for a while.
        self.0.evict();
        Ok(issued)
    }

    async fn find(&self, reference: Reference, _now: Duration) -> Result<Option<Position>, StateError> {
        Ok(self.0.get(&reference))
    }

    async fn expire(&self, _now: Duration) -> Result<(), StateError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Kind;
    use crate::cursor::cursors::MAX_POSITION_BYTES;

    #[tokio::test]
    async fn newest_position_is_kept_at_the_limit() {
        let position = |text: String| Position {
            kind: Kind::Search,
            issued: Duration::ZERO,
            offset: 0,
            binding: String::new(),
            text,
        };
        for bytes in [1_000_000, MAX_POSITION_BYTES] {
            let memory = Memory::default();
            for number in 0..40 {
                let reference = [number; 16];
                memory.keep(reference, position("x".repeat(bytes))).await.unwrap();
                assert!(memory.find(reference, Duration::ZERO).await.unwrap().is_some(), "{number}");
                assert!(memory.0.weight() <= MAX_BYTES, "{number}");
            }
            assert_eq!(memory.find([0; 16], Duration::ZERO).await.unwrap(), None);
        }
    }
}

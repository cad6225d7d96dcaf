//! Remembered positions, in memory.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::CursorFault;
use super::codec::{Key, Reference, VALID_FOR, open, seal};

/// The most memory that positions take, in bytes of what their owners say they weigh.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Issues cursors for positions of one kind and remembers the positions.
///
/// Positions are forgotten [`VALID_FOR`] after their issue, by a clock that cannot be set back, and those
/// that were not used for longest go earlier when memory is short; a cursor whose position is gone is
/// expired.
pub struct CursorStore<Position> {
    key: Key,
    positions: Cache<Reference, (u32, Position)>,
}

impl<Position> fmt::Debug for CursorStore<Position> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CursorStore").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<Position: Clone + Send + Sync + 'static> CursorStore<Position> {
    /// A store with a key of its own, which has an id of its own as far as one byte goes: a cursor of an earlier
    /// run is expired, or, once in 256 runs, has a wrong signature.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn new() -> Result<Self, getrandom::Error> {
        let (mut id, mut secret) = ([0], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(Self::with_key(Key::new(u8::from_ne_bytes(id), secret)))
    }

    fn with_key(key: Key) -> Self {
        let positions = Cache::builder()
            .time_to_live(VALID_FOR)
            .max_capacity(MOST_BYTES)
            // The default policy refuses what is new when memory is short, and the newest cursor is the
            // one that a client is about to use.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_, (bytes, _): &(u32, Position)| *bytes)
            .build();
        Self { key, positions }
    }

    /// Remembers a position of about `bytes` bytes and gives its cursor.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn issue(&self, position: Position, bytes: usize) -> Result<String, getrandom::Error> {
        let mut reference = Reference::default();
        getrandom::fill(&mut reference)?;
        self.positions.insert(reference, (u32::try_from(bytes).unwrap_or(u32::MAX), position));
        Ok(seal(&self.key, &reference, since_1970()))
    }

    /// The position of a cursor.
    ///
    /// # Errors
    ///
    /// The cursor is not one of this store's, or its time is over.
    pub fn position(&self, cursor: &str) -> Result<Position, CursorFault> {
        let reference = open(&self.key, cursor, since_1970())?;
        self.positions.get(&reference).map(|(_, position)| position).ok_or(CursorFault::Expired)
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_can_be_used_again_and_only_here() {
        let store = CursorStore::with_key(Key::new(1, [1; 32]));
        let cursor = store.issue("here", 4).unwrap();
        assert_eq!(store.position(&cursor), Ok("here"));
        assert_eq!(store.position(&cursor), Ok("here"));
        let restarted = CursorStore::<&str>::with_key(Key::new(2, [2; 32]));
        assert_eq!(restarted.position(&cursor), Err(CursorFault::Expired));
        // Two runs have different keys.
        let runs: Vec<CursorStore<&str>> = (0..2).map(|_| CursorStore::new().unwrap()).collect();
        assert!(runs[1].position(&runs[0].issue("here", 4).unwrap()).is_err());
    }

    #[test]
    fn when_memory_is_short_the_newest_cursor_lives() {
        let store = CursorStore::new().unwrap();
        let oldest = store.issue(0, 1_000_000).unwrap();
        let mut newest = oldest.clone();
        for number in 1..40 {
            newest = store.issue(number, 1_000_000).unwrap();
            store.positions.run_pending_tasks();
            assert_eq!(store.position(&newest), Ok(number));
        }
        assert_eq!(store.position(&newest), Ok(39));
        assert_eq!(store.position(&oldest), Err(CursorFault::Expired));
    }

    #[test]
    fn a_forgotten_position_is_an_expired_cursor() {
        let store = CursorStore::new().unwrap();
        let cursor = store.issue("here", 4).unwrap();
        store.positions.invalidate_all();
        assert_eq!(store.position(&cursor), Err(CursorFault::Expired));
    }
}

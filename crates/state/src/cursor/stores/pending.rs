//! Positions that are not in their file yet, in the order of their issue.
//!
//! Pure: the caller has the lock, the clock and the file. **Invariant:** the positions take at most [`MAX_BYTES`], or are a single one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::cursor::codec::Reference;
use crate::cursor::positions::Position;

/// Maximum memory for positions in bytes: two of the largest, or thousands of common ones.
pub(super) const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Size of the positions of one transaction, in bytes: many common ones, or a few large ones. Longer writes delay calls at the
/// same time where all processors are busy; shorter ones fall behind a client that calls without pause.
const BATCH_BYTES: usize = 256 * 1024;

/// Maximum number of first uses that wait. Uses are only informative, and more are dropped.
const MAX_USES: usize = 4_096;

/// Positions and first uses that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Pending {
    positions: VecDeque<PendingPosition>,
    uses: Vec<Use>,
    bytes: usize,
    /// Number of the newest position.
    newest: u64,
}

#[derive(Debug, Clone)]
struct PendingPosition {
    number: u64,
    reference: Reference,
    position: Arc<Position>,
    /// Time of expiry, since 1970.
    expires: Duration,
}

/// First use of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) reference: Reference,
    /// Time of the use, since 1970.
    pub(super) at: Duration,
}

/// Positions and first uses for one transaction.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) positions: Vec<(Reference, Arc<Position>)>,
    pub(super) uses: Vec<Use>,
    /// Number of the newest position.
    newest: u64,
    /// True if other positions were left.
    pub(super) is_partial: bool,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.uses.is_empty()
    }

    /// Returns true if half of the memory is in use, so that the next write should not wait for more.
    pub(super) fn is_half_full(&self) -> bool {
        self.bytes > MAX_BYTES / 2
    }

    /// Returns true if there is memory for a position.
    pub(super) fn has_room(&self, position: &Position) -> bool {
        self.positions.is_empty() || self.bytes + position.weight() <= MAX_BYTES
    }

    /// Removes the oldest positions until there is memory for another.
    pub(super) fn evict_for(&mut self, position: &Position) {
        while !self.has_room(position) {
            self.pop();
        }
    }

    /// Adds a position and returns its number.
    pub(super) fn push(&mut self, reference: Reference, position: Arc<Position>, expires: Duration) -> u64 {
        self.newest += 1;
        self.bytes += position.weight();
        self.positions.push_back(PendingPosition { number: self.newest, reference, position, expires });
        self.newest
    }

    pub(super) fn push_use(&mut self, first_use: Use) {
        if self.uses.len() < MAX_USES {
            self.uses.push(first_use);
        }
    }

    /// Returns the position of a reference, unless it has expired at `now`.
    pub(super) fn get(&self, reference: &Reference, now: Duration) -> Option<Arc<Position>> {
        let found = self.positions.iter().rev().find(|pending| pending.reference == *reference)?;
        (now <= found.expires).then(|| Arc::clone(&found.position))
    }

    /// Removes the positions that have expired at `now`.
    pub(super) fn expire(&mut self, now: Duration) {
        self.positions.retain(|pending| now <= pending.expires);
        self.bytes = self.positions.iter().map(|pending| pending.position.weight()).sum();
    }

    /// Returns the oldest positions, which stay until [`Self::complete`], and takes the uses.
    pub(super) fn batch(&mut self) -> Batch {
        let uses = std::mem::take(&mut self.uses);
        let mut batch = Batch { positions: Vec::new(), uses, newest: 0, is_partial: false };
        let mut bytes = 0;
        for pending in &self.positions {
            if bytes >= BATCH_BYTES {
                batch.is_partial = true;
                break;
            }
            bytes += pending.position.weight();
            batch.positions.push((pending.reference, Arc::clone(&pending.position)));
            batch.newest = pending.number;
        }
        batch
    }

    /// Removes the positions of a batch, which are written.
    pub(super) fn complete(&mut self, batch: &Batch) {
        while self.positions.front().is_some_and(|oldest| oldest.number <= batch.newest) {
            self.pop();
        }
    }

    /// Returns true if a position is written, or was evicted.
    pub(super) fn is_complete(&self, number: u64) -> bool {
        self.positions.front().is_none_or(|oldest| oldest.number > number)
    }

    fn pop(&mut self) {
        if let Some(oldest) = self.positions.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.position.weight());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Kind;

    fn position(bytes: usize) -> Arc<Position> {
        let text = "x".repeat(bytes);
        let (issued, binding) = (Duration::ZERO, String::new());
        Arc::new(Position { kind: Kind::Search, issued, offset: 0, binding, text })
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_position_is_found_until_it_is_written_or_expires() {
        let mut pending = Pending::default();
        let first = pending.push([1; 16], position(10), at(10));
        let batch = pending.batch();
        let second = pending.push([2; 16], position(20), at(20));
        assert!(pending.get(&[1; 16], at(10)).is_some() && pending.get(&[1; 16], at(11)).is_none());
        pending.complete(&batch);
        assert!(pending.is_complete(first) && !pending.is_complete(second));
        assert!(pending.get(&[1; 16], at(0)).is_none() && pending.get(&[2; 16], at(20)).is_some());
        pending.expire(at(21));
        assert!(pending.is_empty() && pending.bytes == 0);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_position_is_kept() {
        let mut pending = Pending::default();
        for number in 0..100 {
            let position = position(1_000_000);
            pending.evict_for(&position);
            pending.push([number; 16], position, at(10));
            assert!(pending.bytes <= MAX_BYTES, "{number}");
            assert!(pending.get(&[number; 16], at(0)).is_some());
            pending.push_use(Use { reference: [number; 16], at: at(0) });
        }
        assert!(pending.get(&[0; 16], at(0)).is_none());
        // A batch ends with the position that makes it large enough.
        let batch = pending.batch();
        assert_eq!((batch.positions.len(), batch.uses.len(), batch.is_partial), (1, 100, true));
        pending.complete(&batch);
        assert_eq!(pending.batch().uses, []);
        for _ in 0..2 * MAX_USES {
            pending.push_use(Use { reference: [0; 16], at: at(0) });
        }
        assert_eq!(pending.uses.len(), MAX_USES);
    }
}

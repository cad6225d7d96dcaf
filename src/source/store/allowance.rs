//! The bytes of record text that one read may have.
//!
//! A read that comes upon more text than it may have goes on without it and notes how much it needs; its answer is not
//! used. It is repeated when that much memory is free, so no read waits while it holds a connection.

use std::cell::Cell;

use crate::memory::MAX_BYTES;

/// A read that needs more is repeated with at least this many times the bytes: a long list is not repeated for each of
/// its records.
const GROWTH: usize = 4;

/// The bytes that a read may have, and those it has.
#[derive(Debug)]
pub(super) struct Allowance {
    granted: usize,
    used: Cell<usize>,
    needed: Cell<Option<usize>>,
}

impl Allowance {
    /// Grants so many bytes. A grant of the whole budget has no limit.
    pub(super) fn new(bytes: usize) -> Self {
        let granted = if bytes >= MAX_BYTES { usize::MAX } else { bytes };
        Self { granted, used: Cell::new(0), needed: Cell::new(None) }
    }

    /// Takes the bytes of a text that the answer keeps. Returns whether the text may be read.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let used = self.used.get().saturating_add(bytes);
        if self.needed.get().is_some() || used > self.granted {
            // More are likely to follow: a scan of ever longer records is repeated a few times, and not for each of them.
            let needed = self.needed.get().unwrap_or(0).max(used).max(self.granted.saturating_mul(GROWTH));
            self.needed.set(Some(needed));
            return false;
        }
        self.used.set(used);
        true
    }

    /// Returns whether a text may be looked at that is dropped before the next one.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        let may = self.take(bytes);
        if may {
            self.used.set(self.used.get() - bytes);
        }
        may
    }

    /// Gives back the bytes of texts that were dropped.
    pub(super) fn clear(&self) {
        self.used.set(0);
    }

    /// Returns how many bytes the read needs, when it was not granted enough.
    pub(super) fn needed(&self) -> Option<usize> {
        self.needed.get()
    }

    /// Returns the bytes of the texts that the answer has.
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_is_granted_is_noted_and_not_taken() {
        let allowance = Allowance::new(100);
        assert!(allowance.take(60) && allowance.has_room_for(40) && allowance.take(40));
        assert_eq!((allowance.used(), allowance.needed()), (100, None));
        assert!(!allowance.take(1) && !allowance.take(0));
        assert_eq!(allowance.needed(), Some(400));
        let first = Allowance::new(100);
        assert!(!first.take(700));
        assert_eq!(first.needed(), Some(700));
        assert!(Allowance::new(MAX_BYTES).take(usize::MAX));
    }
}

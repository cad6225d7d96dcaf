//! Memory limit for the record text of one read.
//!
//! A read that meets more text than its limit drops that text and notes how many bytes it needs; its result is
//! discarded. The caller then acquires that much memory and repeats the read, so no read waits for memory while it
//! holds a connection.

use std::cell::Cell;

use crate::memory::MAX_BYTES;

/// Minimum factor by which the limit grows when a read is repeated. Without it, a long list would be repeated once
/// per record.
const GROWTH: usize = 4;

/// Byte limit of one read, with the bytes that the read holds.
#[derive(Debug)]
pub(in crate::source::store) struct Allowance {
    granted: usize,
    used: Cell<usize>,
    needed: Cell<Option<usize>>,
}

impl Allowance {
    /// Creates a limit of `bytes`. A limit of the whole memory budget counts as no limit.
    pub(in crate::source::store) fn new(bytes: usize) -> Self {
        let granted = if bytes >= MAX_BYTES { usize::MAX } else { bytes };
        Self { granted, used: Cell::new(0), needed: Cell::new(None) }
    }

    /// Adds the bytes of a text that the result keeps. Returns false if the text exceeds the limit and must not be
    /// read.
    pub(in crate::source::store) fn take(&self, bytes: usize) -> bool {
        let used = self.used.get().saturating_add(bytes);
        if self.needed.get().is_some() || used > self.granted {
            // Later records are probably larger too: growing by a factor bounds the number of repetitions of a scan.
            let needed = self.needed.get().unwrap_or(0).max(used).max(self.granted.saturating_mul(GROWTH));
            self.needed.set(Some(needed));
            return false;
        }
        self.used.set(used);
        true
    }

    /// Returns true if a text that is dropped before the next one may be read.
    pub(in crate::source::store) fn has_room_for(&self, bytes: usize) -> bool {
        let may = self.take(bytes);
        if may {
            self.used.set(self.used.get() - bytes);
        }
        may
    }

    /// Resets the count after the texts that were read have been dropped.
    pub(in crate::source::store) fn clear(&self) {
        self.used.set(0);
    }

    /// Returns the number of bytes that the read needs, if it exceeded its limit.
    pub(in crate::source::store) fn needed(&self) -> Option<usize> {
        self.needed.get()
    }

    /// Returns the number of bytes of text that the result holds.
    pub(in crate::source::store) fn used(&self) -> usize {
        self.used.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_over_the_limit_is_counted_and_refused() {
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

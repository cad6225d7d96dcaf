//! Memory limit for the record text of one read.
//!
//! A read that meets more text than its limit drops that text and notes how many bytes it needs; its result is
//! discarded. The caller then acquires that much memory and repeats the read, so no read waits for memory while it
//! holds a connection.

use std::cell::Cell;
use std::time::Duration;

use fetchwell_core::memory::{MAX_BYTES, MemoryPermit, UNCOUNTED_BYTES};
use fetchwell_source::SourceError;

/// Minimum factor by which the limit grows when a read is repeated. Without it, a long list would be repeated once
/// per record.
const GROWTH: usize = 4;

/// Maximum time that a read of large records waits for memory. Shorter than the default deadline of a source.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(4);

/// Result of a read within a limit.
#[derive(Debug)]
pub struct MeasuredRead<Answer> {
    answer: Result<Answer, SourceError>,
    needed: Option<usize>,
    used: usize,
}

impl<Answer> MeasuredRead<Answer> {
    /// Runs a read within a limit of `granted` bytes.
    pub fn new(granted: usize, read: impl FnOnce(&Allowance) -> Result<Answer, SourceError>) -> Self {
        let allowance = Allowance::new(granted);
        let answer = read(&allowance);
        Self { answer, needed: allowance.needed(), used: allowance.used() }
    }
}

/// Runs a read of record text and repeats it with a larger memory permit if it needs one. `read` gets its limit in bytes.
/// Returns the permit for the text in the result.
pub async fn with_memory<Answer, Read>(
    read: impl Fn(usize) -> Read,
) -> Result<(Answer, MemoryPermit), SourceError>
where
    Read: Future<Output = Result<MeasuredRead<Answer>, SourceError>>,
{
    let (mut permit, mut granted) = (MemoryPermit::default(), UNCOUNTED_BYTES);
    loop {
        let MeasuredRead { answer, needed, used } = read(granted).await?;
        let Some(needed) = needed else {
            permit.shrink_to(used);
            return Ok((answer?, permit));
        };
        // The first permit is released before the next one is acquired: two reads that each held one would deadlock.
        drop((answer, permit));
        permit = MemoryPermit::acquire(needed, MEMORY_TIMEOUT).await.map_err(|_busy| SourceError::Busy)?;
        granted = needed;
    }
}

/// Byte limit of one read, with the bytes that the read holds.
#[derive(Debug)]
pub struct Allowance {
    granted: usize,
    used: Cell<usize>,
    needed: Cell<Option<usize>>,
}

impl Allowance {
    /// Creates a limit of `bytes`. A limit of the whole memory budget counts as no limit.
    pub(crate) fn new(bytes: usize) -> Self {
        let granted = if bytes >= MAX_BYTES { usize::MAX } else { bytes };
        Self { granted, used: Cell::new(0), needed: Cell::new(None) }
    }

    /// Creates no limit, for reads that drop each text before the next one.
    pub fn unlimited() -> Self {
        Self::new(MAX_BYTES)
    }

    /// Adds the bytes of a text that the result keeps. Returns false if the text exceeds the limit and must not be
    /// read.
    pub fn take(&self, bytes: usize) -> bool {
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
    pub fn has_room_for(&self, bytes: usize) -> bool {
        let may = self.take(bytes);
        if may {
            self.used.set(self.used.get() - bytes);
        }
        may
    }

    /// Resets the count after the texts that were read have been dropped.
    pub fn clear(&self) {
        self.used.set(0);
    }

    /// Returns the number of bytes that the read needs, if it exceeded its limit.
    pub(crate) fn needed(&self) -> Option<usize> {
        self.needed.get()
    }

    /// Returns the number of bytes of text that the result holds.
    pub(crate) fn used(&self) -> usize {
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

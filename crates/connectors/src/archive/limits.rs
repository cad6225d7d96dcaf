//! Limits of all archives in one file.

use super::super::skips::Problem;
use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Maximum number of archives in archives. A `.tar.gz` counts twice.
const MAX_LEVELS: u32 = 4;

/// Maximum number of entries of an archive and of the archives in it.
const MAX_ENTRIES: u64 = 200_000;

/// Maximum ratio of decompressed to compressed bytes. Text in the files of offices and mailboxes has less than 20.
const MAX_RATIO: u64 = 100;

/// Number of bytes that may be decompressed in any case: one file of the maximum size, and its directory.
const MIN_BYTES: u64 = 80 * 1024 * 1024;

/// The entries and bytes that may still be read. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveLimits {
    level: u32,
    bytes: Rc<Cell<u64>>,
    entries: Rc<Cell<u64>>,
}

impl ArchiveLimits {
    /// Creates the limits of an archive with this size in bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let bytes = bytes.saturating_mul(MAX_RATIO).max(MIN_BYTES);
        Self { level: 0, bytes: Rc::new(Cell::new(bytes)), entries: Rc::new(Cell::new(MAX_ENTRIES)) }
    }

    /// Returns the limits of an archive in this number of others.
    pub(crate) fn at_level(self, level: u32) -> Self {
        Self { level, ..self }
    }

    /// Returns the limits of an archive in this one.
    pub(crate) fn nested(&self) -> Result<Self, Problem> {
        if self.level >= MAX_LEVELS {
            return Err(Problem::too_large(format!("it is in more than {MAX_LEVELS} archives")));
        }
        Ok(Self { level: self.level + 1, ..self.clone() })
    }

    /// Counts an entry.
    pub(super) fn count_entry(&self) -> Result<(), Problem> {
        let left = self.entries.get().checked_sub(1);
        self.entries
            .set(left.ok_or_else(|| Problem::too_large(format!("it has more than {MAX_ENTRIES} entries")))?);
        Ok(())
    }

    /// Returns true if no more bytes may be read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.get() == 0
    }

    /// Wraps a reader of decompressed bytes, which fails when the limit is exceeded.
    pub(super) fn limit<R: Read>(&self, reader: R) -> LimitedReader<R> {
        LimitedReader { reader, bytes: Rc::clone(&self.bytes) }
    }
}

/// The reason to reject an archive that expands too much.
pub(super) fn expands_too_much() -> Problem {
    Problem::too_large(format!("it expands to more than {MAX_RATIO} times its size"))
}

/// A reader of decompressed bytes that counts them.
pub(super) struct LimitedReader<R> {
    reader: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let left = self.bytes.get().checked_sub(count as u64);
        self.bytes.set(left.unwrap_or(0));
        if left.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, expands_too_much().text));
        }
        Ok(count)
    }
}

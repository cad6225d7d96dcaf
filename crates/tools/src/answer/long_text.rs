//! Parts of a text that exceeds the budget of an answer.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use fetchwell_core::fit::{ChunkBudget, PageBudget};
use fetchwell_core::handle::Handle;

use super::blocking::cancelled;
use super::payload::room_beside;
use crate::cache::{PartError, PartQuery, Parts};
use crate::error::ToolError;

/// Minimum size of the text of a part, even if the rest of the answer takes nearly the whole budget.
const MIN_TEXT_BYTES: usize = 1_000;

/// A part of the long text of a record.
pub(crate) struct LongText<'a> {
    /// Cache of the ends of parts.
    pub(crate) parts: &'a Parts,
    /// Handle of the record.
    pub(crate) handle: &'a Handle,
    pub(crate) text: &'a str,
    /// Pieces of the text that are parts of their own.
    pub(crate) sections: &'a [Range<usize>],
    /// Number of the part, from 0.
    pub(crate) number: u32,
    pub(crate) budget: PageBudget,
}

impl LongText<'_> {
    /// Returns the start and the end of the part, in bytes. `without_text` is the rest of the answer as JSON, the same for
    /// every part, and `reserved` bytes and tokens are kept for what differs between them.
    pub(crate) fn bounds(
        &self,
        without_text: &str,
        reserved: usize,
        stopped: &AtomicBool,
    ) -> Result<(usize, usize), ToolError> {
        let room = room_beside(without_text, self.budget);
        let min_bytes = MIN_TEXT_BYTES.min(self.budget.tokens / 2);
        let left = |room: usize| room.saturating_sub(reserved).max(min_bytes);
        let chunks = ChunkBudget { bytes: left(room.bytes), tokens: left(room.tokens) };
        let Self { handle, text, sections, number, .. } = *self;
        let query = PartQuery { address: handle.address(), text, sections, chunks, number };
        self.parts.bounds(query, stopped).map_err(|problem| match problem {
            PartError::NotFound { parts } => {
                ToolError::PartNotFound { parts, last: self.id_of(parts.saturating_sub(1)) }
            }
            PartError::OutOfRange => ToolError::PartOutOfRange { first: self.handle.to_string() },
            PartError::Cancelled => cancelled(),
        })
    }

    /// Returns the id of the part. The first one has that of the record.
    pub(crate) fn id(&self) -> String {
        if self.number == 0 { self.handle.to_string() } else { self.id_of(self.number) }
    }

    /// Returns the handle of the next part, if the text goes on after `end` bytes.
    pub(crate) fn next(&self, end: usize) -> Option<Handle> {
        self.handle.with_part(self.number.saturating_add(1)).filter(|_| end < self.text.len())
    }

    fn id_of(&self, number: u32) -> String {
        self.handle.with_part(number).map(|part| part.to_string()).unwrap_or_default()
    }
}

//! A bounded piece of one text field.

use crate::handle::RecordAddress;

/// A piece of a text field. Offsets are code points from the start of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where the record is. The connection is what the source says, which may be more than was asked.
    pub address: RecordAddress,
    /// The piece.
    pub text: String,
    /// Where it starts.
    pub start_chars: usize,
    /// How long the whole field is.
    pub total_chars: usize,
    /// Where in the field the text is that was looked for, if one was.
    pub found_chars: Option<std::ops::Range<usize>>,
}

impl Window {
    /// Where it ends.
    #[must_use]
    pub fn end_chars(&self) -> usize {
        self.start_chars + self.text.chars().count()
    }
}

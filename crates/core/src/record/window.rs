//! A bounded piece of one text field.

use crate::handle::RecordAddress;

/// A piece of a text field. Offsets count code points from the start of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Address of the record. The connection comes from the source, so it may be known although the request named
    /// none.
    pub address: RecordAddress,
    /// Text of the piece.
    pub text: String,
    /// Offset at which the piece starts.
    pub start_chars: usize,
    /// Length of the whole field in code points.
    pub total_chars: usize,
    /// Range of the searched text in the field, if the request searched for one and it was found.
    pub found_chars: Option<std::ops::Range<usize>>,
}

impl Window {
    /// Returns the offset at which the piece ends.
    #[must_use]
    pub fn end_chars(&self) -> usize {
        self.start_chars + self.text.chars().count()
    }
}

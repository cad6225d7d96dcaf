//! A piece of one text field. Offsets are code points.

use crate::handle::RecordAddress;

/// A piece of a text field of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    /// Which record.
    pub address: RecordAddress,
    /// Which top-level field.
    pub field: String,
    /// Where the window starts.
    pub start: WindowStart,
    /// How many code points at most, 1 to 16,384.
    pub limit_chars: usize,
}

/// Where a window starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowStart {
    /// At this code point. One past the end gives an empty window.
    Offset(usize),
    /// Around the first place that holds this text.
    Around {
        /// The text, in any case.
        text: String,
        /// Code points before it.
        before: usize,
        /// Code points after it.
        after: usize,
    },
}

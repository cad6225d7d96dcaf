//! What can be wrong with a text that should be a handle.

use std::fmt;

use super::grammar::MAX_HANDLE_BYTES;
use super::name::InvalidName;

/// The piece of a handle that a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// The account or folder, before the first `/`.
    Connection,
    /// The table.
    Stream,
    /// The record's key.
    Record,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection",
            Self::Stream => "stream",
            Self::Record => "record",
        })
    }
}

/// Why a text is not a handle. The message continues the sentence "`…` is not a handle: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleFault {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// Longer than any handle that was ever printed.
    #[error("it is {bytes} bytes long and a handle has at most {MAX_HANDLE_BYTES}")]
    TooLong {
        /// Length of the refused text in UTF-8 bytes.
        bytes: usize,
    },
    /// Neither of the older forms: the `:` between stream and record is missing.
    #[error("it has no `:` between a stream and a record")]
    NoSeparator,
    /// A segment fails the guard of its form.
    #[error("its {segment} `{name}` could be read as a path")]
    UnsafeName {
        /// Which segment.
        segment: Segment,
        /// The segment as it was sent.
        name: String,
    },
    /// A segment cannot be a name in any form.
    #[error("its {segment} is not a name: {problem}")]
    NotAName {
        /// Which segment.
        segment: Segment,
        /// What is wrong with it.
        problem: InvalidName,
    },
    /// A `%` that does not start an escape.
    #[error("its {segment} has a `%` that is not followed by two hexadecimal digits")]
    BadEscape {
        /// Which segment.
        segment: Segment,
    },
    /// The escapes of a segment decode to bytes that are no text.
    #[error("its {segment} does not decode to UTF-8")]
    NotUtf8 {
        /// Which segment.
        segment: Segment,
    },
    /// More separators than any form has.
    #[error("it has more than three `/`; inside a connection, stream or record a `/` is written `%2F`")]
    TooManySlashes,
    /// The fourth segment is not `p` and a number.
    #[error("`{part}` is not a part; parts are `p0`, `p1`, `p2` and so on")]
    BadPart {
        /// The fourth segment as it was sent.
        part: String,
    },
    /// The text names a record, but not in the one way its handle is printed.
    #[error("it is not spelled as handles are printed")]
    NotCanonical,
}

impl HandleFault {
    /// A stable word for the fault, as `fixtures/handles.json` lists them.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong { .. } => "too_long",
            Self::NoSeparator => "no_separator",
            Self::UnsafeName { .. } => "unsafe_name",
            Self::NotAName { .. } => "not_a_name",
            Self::BadEscape { .. } => "bad_escape",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::TooManySlashes => "too_many_slashes",
            Self::BadPart { .. } => "bad_part",
            Self::NotCanonical => "not_canonical",
        }
    }
}

/// A text that was refused as a handle, with the spelling that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct InvalidHandle {
    /// What is wrong.
    pub fault: HandleFault,
    /// The printed handle of the record that the text seems to mean. It is shown as a hint and
    /// never followed: following it would be guessing.
    pub canonical: Option<String>,
}

impl From<HandleFault> for InvalidHandle {
    fn from(fault: HandleFault) -> Self {
        Self { fault, canonical: None }
    }
}

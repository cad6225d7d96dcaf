//! Reasons to reject a string as a handle.

use std::fmt;

use super::name::{InvalidName, MAX_HANDLE_BYTES};

/// The segment of a handle that a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// The account or folder, before the first `/`.
    Connection,
    /// The table of the connection, before the `:`.
    Stream,
    /// The key of the record.
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

/// A reason to reject a string as a handle. The message continues the sentence "`…` is not a handle: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleFault {
    /// The string is empty.
    #[error("it is empty")]
    Empty,
    /// The string is longer than [`MAX_HANDLE_BYTES`], the maximum of handles that are printed.
    #[error("it is {bytes} bytes long and a handle has at most {MAX_HANDLE_BYTES}")]
    TooLong {
        /// Length of the refused text in UTF-8 bytes.
        bytes: usize,
    },
    /// The `:` between stream and record is missing, so it is neither of the plain forms.
    #[error("it has no `:` between a stream and a record")]
    NoSeparator,
    /// A segment of a plain form could be read as a path.
    #[error("its {segment} `{name}` could be read as a path")]
    UnsafeName {
        /// The rejected segment.
        segment: Segment,
        /// The segment as it was sent.
        name: String,
    },
    /// A segment cannot be a name in any form of a handle.
    #[error("its {segment} is not a name: {problem}")]
    NotAName {
        /// The rejected segment.
        segment: Segment,
        /// The rule that the name breaks.
        problem: InvalidName,
    },
    /// A `%` is not followed by two hexadecimal digits.
    #[error("its {segment} has a `%` that is not followed by two hexadecimal digits")]
    BadEscape {
        /// The rejected segment.
        segment: Segment,
    },
    /// The escapes of a segment decode to bytes that are not UTF-8.
    #[error("its {segment} does not decode to UTF-8")]
    NotUtf8 {
        /// The rejected segment.
        segment: Segment,
    },
    /// The string has more than three `/`, more than any form.
    #[error("it has more than three `/`; inside a connection, stream or record a `/` is written `%2F`")]
    TooManySlashes,
    /// The fourth segment is not `p` and a number without leading zeros.
    #[error("`{part}` is not a part; parts are `p0`, `p1`, `p2` and so on")]
    BadPart {
        /// The fourth segment as it was sent.
        part: String,
    },
    /// The string names a record, but not in the spelling in which its handle is printed.
    #[error("it is not spelled as handles are printed")]
    NotCanonical,
}

impl HandleFault {
    /// Returns the stable name of the fault, as `fixtures/handles.json` lists them.
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

/// A string that was rejected as a handle, with the spelling that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct InvalidHandle {
    /// The reason for the rejection.
    pub fault: HandleFault,
    /// The printed handle of the record that the string seems to mean. It is shown as a hint and never used to fetch
    /// a record, because that would be a guess.
    pub canonical: Option<String>,
}

impl From<HandleFault> for InvalidHandle {
    fn from(fault: HandleFault) -> Self {
        Self { fault, canonical: None }
    }
}

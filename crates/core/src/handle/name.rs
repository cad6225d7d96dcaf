//! Name newtypes and their validation.
//!
//! Connections, streams and sources pass `check_name`, record keys pass `check_key`; both can be a path segment
//! of a URL once they are percent-encoded. `is_safe_name` is the stricter rule of the plain handle forms and
//! decides which form a handle takes.
//!
//! ```compile_fail
//! use fetchwell::handle::{ConnectionId, StreamName};
//! let stream: StreamName = "messages".parse().unwrap();
//! let connection: ConnectionId = stream; // a stream is not a connection
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum size of a handle in bytes. A longer handle is never printed and never truncated.
pub const MAX_HANDLE_BYTES: usize = 2_048;

/// A reason to reject a string as a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The string is empty.
    #[error("it is empty")]
    Empty,
    /// The name is longer than a handle may be.
    #[error("it is {bytes} bytes long, more than the {MAX_HANDLE_BYTES} a handle can carry")]
    TooLong {
        /// Length of the refused text in UTF-8 bytes.
        bytes: usize,
    },
    /// The name contains U+0000, which ends strings in many systems.
    #[error("it holds the character U+0000")]
    Nul,
    /// The name is `.` or `..`, or, unless it is a record key, contains one as a path segment.
    #[error("it holds the path segment `{0}`")]
    DotSegment(&'static str),
}

/// Validates the name of a connection, stream or source: no `.` or `..` between separators, in any form of a handle.
fn check_name(text: &str) -> Result<(), InvalidName> {
    check_text(text)?;
    text.split(SEPARATORS).find_map(dot_segment).map_or(Ok(()), |dots| Err(InvalidName::DotSegment(dots)))
}

/// Validates a record key. Keys are file paths and mail labels in real servers, so `../a` is valid.
///
/// A key that is `.` or `..` is rejected: URL libraries resolve such a path segment even when it is percent-encoded,
/// and the request would go to a path other than the one meant.
fn check_key(text: &str) -> Result<(), InvalidName> {
    check_text(text)?;
    dot_segment(text).map_or(Ok(()), |dots| Err(InvalidName::DotSegment(dots)))
}

/// Characters that some system treats as a path separator.
pub(super) const SEPARATORS: [char; 2] = ['/', '\\'];

/// Returns the segment of a path if it is `.` or `..`.
pub(super) fn dot_segment(segment: &str) -> Option<&'static str> {
    match segment {
        "." => Some("."),
        ".." => Some(".."),
        _ => None,
    }
}

fn check_text(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > MAX_HANDLE_BYTES {
        return Err(InvalidName::TooLong { bytes: text.len() });
    }
    if text.contains('\0') {
        return Err(InvalidName::Nul);
    }
    Ok(())
}

/// Returns true for a name that the `stream:record` and `connection/stream:record` forms can hold: not empty, not
/// `.`, no `/` or `\`, and no `..` inside.
pub(super) fn is_safe_name(text: &str) -> bool {
    !text.is_empty() && text != "." && !text.contains(['/', '\\']) && !text.contains("..")
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Returns the name, unencoded.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                $check(text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                $check(&text)?;
                Ok(Self(text.into_boxed_str()))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into_string()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }
    };
}

name_type! {
    /// One account or folder of one connector, such as `cin_4f2a`.
    ConnectionId, check_name
}
name_type! {
    /// A named table of records, such as `messages`; the same name occurs under many connections.
    StreamName, check_name
}
name_type! {
    /// The canonical key of a record within its stream: a plain string, or the compact JSON array
    /// of a compound key (`["user_123","2026-04-01"]`).
    RecordId, check_key
}

impl ConnectionId {
    /// Returns true if the id can stand in the `connection/stream:record` form as it is: no `/`, no `\` and no `..`.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        is_safe_name(&self.0)
    }
}

impl RecordId {
    /// Returns true if `.` or `..` stands between separators. A proxy that resolves paths may map such a key to
    /// another record.
    #[must_use]
    pub fn has_dot_segment(&self) -> bool {
        self.0.split(SEPARATORS).any(|segment| dot_segment(segment).is_some())
    }
}

name_type! {
    /// One configured record server, remote or embedded, as errors name it.
    SourceName, check_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &Result<&str, InvalidName>) {
        assert_eq!(RecordId::from_str(text).as_ref().map(RecordId::as_str), expect.as_ref().copied());
    }

    #[test]
    fn guard_of_keys_accepts_what_real_servers_use() {
        for key in ["o1", "[Gmail]/All Mail", "a/b/c.md", "v1..v2", "...", "C:\\x\\y", "\n", "%2e", "😀"] {
            check(key, &Ok(key));
            assert!(!key.parse::<RecordId>().unwrap().has_dot_segment(), "{key}");
        }
        for key in ["a/../b", "a\\..", "./a", "../escape", "/.", "../.."] {
            check(key, &Ok(key));
            assert!(key.parse::<RecordId>().unwrap().has_dot_segment(), "{key}");
        }
    }

    #[test]
    fn guards_reject_what_could_leave_the_path() {
        check("", &Err(InvalidName::Empty));
        check(".", &Err(InvalidName::DotSegment(".")));
        check("..", &Err(InvalidName::DotSegment("..")));
        check("a\0b", &Err(InvalidName::Nul));
        check(&"k".repeat(2049), &Err(InvalidName::TooLong { bytes: 2049 }));
        for (name, dots) in [("..", ".."), (".", "."), ("a/../b", ".."), ("a\\..", ".."), ("./a", ".")] {
            let refused = Some(InvalidName::DotSegment(dots));
            assert_eq!(StreamName::from_str(name).err(), refused, "{name}");
            assert_eq!(ConnectionId::from_str(name).err(), refused, "{name}");
        }
    }

    #[test]
    fn safe_names_have_no_path_characters() {
        for bad in ["", "/", "\\", ".", "..", "a..b", "a/b", "a\\b"] {
            assert!(!is_safe_name(bad), "{bad:?}");
        }
        for good in ["a", "a.b", "a:b", "my label", "😀", "%"] {
            assert!(is_safe_name(good), "{good:?}");
        }
    }

    #[test]
    fn a_name_is_deserialized_through_its_guard() {
        assert!(serde_json::from_str::<StreamName>("\"messages\"").is_ok());
        assert!(serde_json::from_str::<StreamName>("\"a/../b\"").is_err());
    }
}

//! Name newtypes and the two guards a name can pass.
//!
//! Every name that crosses the program has passed [`check_name`], the wide guard: it can be a path
//! segment of a URL once it is percent-encoded. The narrow guard, [`is_safe_name`], is the one of
//! the older handle forms and decides which form a handle takes.
//!
//! ```compile_fail
//! use fetchwell::handle::{ConnectionId, StreamName};
//! let stream: StreamName = "messages".parse().unwrap();
//! let connection: ConnectionId = stream; // a stream is not a connection
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::grammar::MAX_HANDLE_BYTES;

/// Why a text cannot be a name of anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// Longer than any handle could carry.
    #[error("it is {bytes} bytes long, more than the {MAX_HANDLE_BYTES} a handle can carry")]
    TooLong {
        /// Length of the refused text in UTF-8 bytes.
        bytes: usize,
    },
    /// Holds U+0000, which ends strings in too many systems.
    #[error("it holds the character U+0000")]
    Nul,
    /// Is, or holds as a path segment, `.` or `..`.
    #[error("it holds the path segment `{0}`")]
    DotSegment(&'static str),
}

/// The wide guard: what no name may be, in any form of a handle.
///
/// A `/` or `\` is allowed, because record keys are file paths and mail labels in real servers; a
/// `.` or `..` between such separators is not, because URL libraries resolve it even when it is
/// percent-encoded, and the request would go to another path than the one meant.
fn check_name(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > MAX_HANDLE_BYTES {
        return Err(InvalidName::TooLong { bytes: text.len() });
    }
    if text.contains('\0') {
        return Err(InvalidName::Nul);
    }
    for segment in text.split(['/', '\\']) {
        match segment {
            "." => return Err(InvalidName::DotSegment(".")),
            ".." => return Err(InvalidName::DotSegment("..")),
            _ => {}
        }
    }
    Ok(())
}

/// The narrow guard of the `stream:record` and `connection/stream:record` forms: rejects the empty
/// name, `/`, `\`, `.` and any `..` inside.
pub(super) fn is_safe_name(text: &str) -> bool {
    !text.is_empty() && text != "." && !text.contains(['/', '\\']) && !text.contains("..")
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as it is written, unencoded.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                check_name(text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                check_name(&text)?;
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
    ConnectionId
}
name_type! {
    /// A named table of records, such as `messages`; the same name occurs under many connections.
    StreamName
}
name_type! {
    /// The canonical key of a record within its stream: a plain string, or the compact JSON array
    /// of a compound key (`["user_123","2026-04-01"]`).
    RecordId
}
name_type! {
    /// One configured record server, remote or embedded, as errors name it.
    SourceName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &Result<&str, InvalidName>) {
        assert_eq!(RecordId::from_str(text).as_ref().map(RecordId::as_str), expect.as_ref().copied());
    }

    #[test]
    fn wide_guard_accepts_what_real_servers_use_as_keys() {
        for key in ["o1", "[Gmail]/All Mail", "a/b/c.md", "v1..v2", "...", "C:\\x\\y", "\n", "%2e", "😀"] {
            check(key, &Ok(key));
        }
    }

    #[test]
    fn wide_guard_rejects_what_could_leave_the_path() {
        check("", &Err(InvalidName::Empty));
        check(".", &Err(InvalidName::DotSegment(".")));
        check("..", &Err(InvalidName::DotSegment("..")));
        check("a/../b", &Err(InvalidName::DotSegment("..")));
        check("a\\..", &Err(InvalidName::DotSegment("..")));
        check("./a", &Err(InvalidName::DotSegment(".")));
        check("a\0b", &Err(InvalidName::Nul));
        check(&"k".repeat(2049), &Err(InvalidName::TooLong { bytes: 2049 }));
    }

    #[test]
    fn narrow_guard_is_the_seeds() {
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

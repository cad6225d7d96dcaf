//! The names of a part of a store in one string: a connection, a stream of it, or one record.
//!
//! ```text
//! scope = connection [ "/" stream ] | handle with a connection
//! ```
//!
//! A `/`, `:` or `%` of a name is percent-encoded, as in the exact form of a handle.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::grammar::Handle;
use super::name::{ConnectionId, InvalidName, RecordId, StreamName};

/// Characters of a name that have a meaning in a scope.
const ENCODED: &AsciiSet = &CONTROLS.add(b'/').add(b':').add(b'%');

/// A connection, a stream of it, or one record of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordScope {
    /// Id of the connection.
    pub connection: ConnectionId,
    /// The stream, or `None` for all streams of the connection.
    pub stream: Option<StreamName>,
    /// The key of a record, or `None` for all records of the stream.
    pub record: Option<RecordId>,
}

/// The reason to reject a string as a scope.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScope {
    /// A name is not valid.
    #[error("write CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM:KEY: {0}")]
    Name(#[from] InvalidName),
    /// The text is neither a connection, nor a stream, nor the handle of a record.
    #[error("write CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM:KEY, as `fetchwell search` prints it")]
    Form,
}

impl FromStr for RecordScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let decoded = |name: &str| percent_decode_str(name).decode_utf8_lossy().into_owned();
        let segments: Vec<&str> = text.split('/').collect();
        match segments.as_slice() {
            [connection] => Ok(Self { connection: decoded(connection).parse()?, stream: None, record: None }),
            [connection, stream] if !stream.contains(':') => Ok(Self {
                connection: decoded(connection).parse()?,
                stream: Some(decoded(stream).parse()?),
                record: None,
            }),
            _ => {
                let handle: Handle = text.parse().map_err(|_invalid| InvalidScope::Form)?;
                let address = handle.address().clone();
                match (address.connection, handle.part()) {
                    (Some(connection), None) => {
                        Ok(Self { connection, stream: Some(address.stream), record: Some(address.record) })
                    }
                    _ => Err(InvalidScope::Form),
                }
            }
        }
    }
}

impl fmt::Display for RecordScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encode = |name| utf8_percent_encode(name, ENCODED);
        write!(f, "{}", encode(self.connection.as_str()))?;
        if let Some(stream) = &self.stream {
            write!(f, "/{}", encode(stream.as_str()))?;
        }
        match &self.record {
            Some(record) => write!(f, ":{}", record.as_str()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, connection: &str, stream: Option<&str>, record: Option<&str>) {
        let scope: RecordScope = text.parse().unwrap();
        let names = (scope.connection.as_str(), scope.stream.as_ref().map(StreamName::as_str));
        assert_eq!((names, scope.record.as_ref().map(RecordId::as_str)), ((connection, stream), record));
    }

    #[test]
    fn connections_streams_and_records_are_told_apart() {
        check("notes", "notes", None, None);
        check("a:b", "a:b", None, None);
        check("notes/documents", "notes", Some("documents"), None);
        check("notes/documents:plan.md", "notes", Some("documents"), Some("plan.md"));
        check("notes/documents/a%2Fplan.md", "notes", Some("documents"), Some("a/plan.md"));
        check("my%2Fnotes/a%3Ab", "my/notes", Some("a:b"), None);
        for wrong in ["", "/", "a/", "/b", "a/b:", "a/b/c/p1", "a/b/c/d/e", ".."] {
            assert!(wrong.parse::<RecordScope>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_printed_scope_is_parsed_as_the_same() {
        for text in ["notes", "notes/documents", "my%2Fnotes/a%3Ab", "100%25", "notes/documents:m1"] {
            assert_eq!(text.parse::<RecordScope>().unwrap().to_string(), text);
        }
    }
}

//! Parsers of record servers' responses in all their spellings.
//!
//! Only this module knows two spellings of one field. It takes bytes and returns typed values: a field of an
//! unexpected type counts as missing, an item that cannot be parsed is skipped, and only a response without the
//! expected list or object is an error.
//!
//! * `schema`, `stream`, `field`: schemas, streams and the capabilities of fields
//! * `search`, `record`, `records`, `window`, `aggregate`: one kind of response each
//! * `modes`: the search methods that a server declares
//! * `refusal`: error responses
//! * `tolerant`: deserialization of JSON with unexpected types; `members`: the members of an object

mod aggregate;
mod field;
mod members;
mod modes;
mod record;
mod records;
mod refusal;
mod schema;
mod search;
mod stream;
mod tolerant;
mod window;

use serde::Deserialize;

pub(super) use aggregate::aggregate;
pub(super) use modes::{DeclaredModes, declared_modes};
pub(super) use record::{names, record};
pub(super) use records::{RecordList, records};
pub(super) use refusal::refusal;
pub(super) use schema::schema;
pub(super) use search::search_page;
pub(super) use stream::stream;
pub(super) use window::window;

use crate::source::{ProtocolFault, SourceError};

/// Parses a body. The error does not quote it.
fn parse<'a, Answer: Deserialize<'a>>(body: &'a [u8]) -> Result<Answer, SourceError> {
    serde_json::from_slice(body).map_err(|error| {
        let problem = match error.classify() {
            serde_json::error::Category::Eof => format!("it ends after {} bytes", body.len()),
            serde_json::error::Category::Data => return wrong_shape("object of the protocol's shape"),
            _ => format!("line {} column {}", error.line(), error.column()),
        };
        SourceError::Protocol(ProtocolFault::BrokenJson { problem })
    })
}

fn wrong_shape(missing: &'static str) -> SourceError {
    SourceError::Protocol(ProtocolFault::WrongShape { missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_a_fault_of_the_server() {
        let stream = "messages".parse().unwrap();
        for body in [
            &b"{\"data\": [{\"id\": \"m1\", \"stream\": \"messages\", \"title\": \"\xff\xfe\"}]}"[..],
            b"\xff\xfe{\"data\": []}",
            b"{\"data\": [], \"next_cursor\": \"\xc3\"}",
        ] {
            for refused in [search_page(body).err(), records(body, &stream, None).err()] {
                let is_broken =
                    matches!(refused, Some(SourceError::Protocol(ProtocolFault::BrokenJson { .. })));
                assert!(is_broken, "{}: {refused:?}", String::from_utf8_lossy(body));
            }
        }
    }
}

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
pub mod record;
pub mod records;
mod refusal;
pub mod schema;
mod search;
pub mod stream;
mod tolerant;
mod window;

use fetchwell_source::{ProtocolFault, SourceError};
use serde::Deserialize;

pub(crate) use aggregate::aggregate;
pub(crate) use modes::{DeclaredModes, declared_modes};
pub use record::{names, record};
pub use records::{RecordList, records};
pub(crate) use refusal::{blames_path, is_of_a_position, refusal};
pub use schema::schema;
pub use search::search_page;
pub use stream::stream;
pub(crate) use window::window;

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

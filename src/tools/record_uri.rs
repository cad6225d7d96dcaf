//! `pdpp://record/…`: the resource URIs of other adapters, accepted where a handle is.

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde::Deserialize;

use super::error::ToolError;
use crate::handle::{ConnectionId, Handle, InvalidHandle, RecordAddress};

const PREFIX: &str = "pdpp://record/";

/// What an id names: a handle, or a `pdpp://record/` URI with a handle or base64url JSON of an address.
/// A URI names the address even if no handle could: what came in need not be printed.
fn read_id(id: &str) -> Result<(RecordAddress, Option<u32>), InvalidHandle> {
    let text = match id.strip_prefix(PREFIX) {
        Some(inside) => match address_of(inside) {
            Some(address) => return Ok((address, None)),
            None => inside,
        },
        None => id,
    };
    let handle: Handle = text.parse()?;
    Ok((handle.address().clone(), handle.part()))
}

/// The record that an id names, and a connection argument beside it.
#[derive(Debug)]
pub(super) struct Named {
    /// What the id itself says.
    pub(super) named: RecordAddress,
    /// The same with the connection of the argument, where the id has none.
    pub(super) address: RecordAddress,
    /// The part of the document, if the id names one.
    pub(super) part: Option<u32>,
}

/// Reads an id. A connection argument that agrees with it is fine; one that disagrees is refused.
pub(super) fn named_record(id: &str, connection: Option<ConnectionId>) -> Result<Named, ToolError> {
    let (named, part) =
        read_id(id).map_err(|refused| ToolError::CopyHandle { input: id.to_owned(), refused })?;
    let mut address = named.clone();
    match (&address.connection, connection) {
        (Some(embedded), Some(argument)) if *embedded != argument => {
            return Err(ToolError::DropConnectionArgument { argument, embedded: embedded.clone() });
        }
        (None, argument) => address.connection = argument,
        (Some(_), _) => {}
    }
    Ok(Named { named, address, part })
}

#[derive(Deserialize)]
struct Address {
    #[serde(alias = "connectionId")]
    connection_id: Option<String>,
    stream: String,
    #[serde(alias = "recordId", alias = "record_key", alias = "id")]
    record_id: String,
}

fn address_of(encoded: &str) -> Option<RecordAddress> {
    let json = URL_SAFE_NO_PAD.decode(encoded).or_else(|_padded| URL_SAFE.decode(encoded)).ok()?;
    let address: Address = serde_json::from_slice(&json).ok()?;
    Some(RecordAddress {
        connection: address.connection_id.map(|id| id.parse()).transpose().ok()?,
        stream: address.stream.parse().ok()?,
        record: address.record_id.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_holds_an_address_or_a_handle() {
        let json = r#"{"connection_id":"cin_1","stream":"files","record_id":"a/b.md"}"#;
        let uri = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
        let (address, part) = read_id(&uri).unwrap();
        assert_eq!(Handle::mint(&address).unwrap().as_str(), "cin_1/files/a%2Fb.md");
        assert_eq!(part, None);
        assert_eq!(read_id("pdpp://record/cin_1/orders:o1"), read_id("cin_1/orders:o1"));
        assert_eq!(read_id("pdpp://record/cin_1/orders/o1/p2").unwrap().1, Some(2));
    }

    #[test]
    fn a_uri_cannot_bring_in_what_a_handle_could_not() {
        let json = r#"{"connection_id":"cin_1","stream":"files","record_id":".."}"#;
        let uri = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
        assert!(read_id(&uri).is_err());
        assert!(read_id("pdpp://record/").is_err());
        assert!(read_id("pdpp://other/cin_1/orders:o1").is_err());
    }
}

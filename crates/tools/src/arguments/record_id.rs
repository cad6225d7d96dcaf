//! Ids of records: handles, and the `pdpp://record/` URIs of other adapters.
//!
//! Such a URI has a handle or an address as base64url JSON. `named_record` also merges a `connection_id` argument, which
//! `safe_connection` parses.

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use fetchwell_core::handle::{ConnectionId, InvalidHandle, PartId, RecordAddress, TextVersion};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::error::ToolError;

const PREFIX: &str = "pdpp://record/";

/// Parses an id into the reference to a record. An address in a URI is accepted even if it cannot be printed as a handle.
fn read_id(id: &str) -> Result<RecordReference, InvalidHandle> {
    let text = match id.strip_prefix(PREFIX) {
        Some(inside) => match decode_address(inside) {
            Some(address) => return Ok(RecordReference::new(address)),
            None => inside,
        },
        None => id,
    };
    let PartId { handle, version } = text.parse()?;
    let part = handle.part();
    Ok(RecordReference { part, version, ..RecordReference::new(handle.address().clone()) })
}

/// The record that an id and a connection argument name.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordReference {
    /// Address in the id.
    pub(crate) named: RecordAddress,
    /// Address with the connection of the argument if the id has none.
    pub(crate) address: RecordAddress,
    /// Number of the part, if the id names one.
    pub(crate) part: Option<u32>,
    /// Version of the text that the part is of, if the id has one.
    pub(crate) version: Option<TextVersion>,
}

impl RecordReference {
    fn new(address: RecordAddress) -> Self {
        Self { named: address.clone(), address, part: None, version: None }
    }
}

/// Parses an id. A connection argument that differs from the connection in the id is refused.
pub(crate) fn named_record(id: &str, connection: Option<ConnectionId>) -> Result<RecordReference, ToolError> {
    let reference =
        read_id(id).map_err(|refused| ToolError::InvalidHandle { input: id.to_owned(), refused })?;
    let mut address = reference.address.clone();
    match (&address.connection, connection) {
        (Some(embedded), Some(argument)) if *embedded != argument => {
            return Err(ToolError::ConflictingConnection { argument, embedded: embedded.clone() });
        }
        (None, argument) => address.connection = argument,
        (Some(_), _) => {}
    }
    Ok(RecordReference { address, ..reference })
}

/// Deserializes the `connection_id` argument of a call that reads one record, by the rule for each segment of a plain
/// handle. A connection whose id has other characters is named by the id of the record.
pub(crate) fn safe_connection<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ConnectionId>, D::Error> {
    let connection = Option::<ConnectionId>::deserialize(deserializer)?;
    if connection.as_ref().is_some_and(|connection| !connection.is_safe()) {
        let problem =
            "it has `/`, `\\` or `..`; leave it out and pass `id` as printed, which names such a connection";
        return Err(D::Error::custom(problem));
    }
    Ok(connection)
}

#[derive(Deserialize)]
struct Address {
    #[serde(alias = "connectionId")]
    connection_id: Option<String>,
    stream: String,
    #[serde(alias = "recordId", alias = "record_key", alias = "id")]
    record_id: String,
}

fn decode_address(encoded: &str) -> Option<RecordAddress> {
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
    use fetchwell_core::handle::Handle;

    use super::*;

    #[test]
    fn a_uri_has_an_address_or_a_handle() {
        let json = r#"{"connection_id":"cin_1","stream":"files","record_id":"a/b.md"}"#;
        let uri = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
        let RecordReference { address, part, .. } = read_id(&uri).unwrap();
        assert_eq!(Handle::mint(&address).unwrap().as_str(), "cin_1/files/a%2Fb.md");
        assert_eq!(part, None);
        assert_eq!(read_id("pdpp://record/cin_1/orders:o1"), read_id("cin_1/orders:o1"));
        assert_eq!(read_id("pdpp://record/cin_1/orders/o1/p2").unwrap().part, Some(2));
    }

    #[test]
    fn a_uri_with_an_unsafe_address_is_refused() {
        let json = r#"{"connection_id":"cin_1","stream":"files","record_id":".."}"#;
        let uri = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
        assert!(read_id(&uri).is_err());
        assert!(read_id("pdpp://record/").is_err());
        assert!(read_id("pdpp://other/cin_1/orders:o1").is_err());
    }
}

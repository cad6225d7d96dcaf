//! The one connection and stream of a server, known without asking it.

use std::collections::BTreeSet;

use fetchwell_core::handle::{ConnectionId, RecordAddress, RecordId, StreamName};
use fetchwell_core::record::{Capability, ConnectionSchema, FieldDetail, Schema, StreamDetail, StreamSchema};

/// Name of the stream of a server whose mapping names none.
pub const DEFAULT_STREAM: &str = "items";

/// Key of the connector in schemas.
pub(crate) const CONNECTOR: &str = "mcp";

/// Names of a server's connection and stream.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) connection: ConnectionId,
    pub(crate) stream: StreamName,
    pub(crate) label: Option<String>,
    /// Key that stands for an id which no handle can hold.
    pub(crate) no_record: RecordId,
}

impl Address {
    /// Returns the address of a record.
    pub(crate) fn address_of(&self, record: RecordId) -> RecordAddress {
        RecordAddress { connection: Some(self.connection.clone()), stream: self.stream.clone(), record }
    }

    /// Returns the schema: one connection with one stream.
    pub(crate) fn schema(&self) -> Schema {
        let connection = ConnectionSchema {
            connection_id: self.connection.clone(),
            source: None,
            display_name: self.label.clone(),
            connector_key: Some(CONNECTOR.to_owned()),
            streams: vec![StreamSchema { name: self.stream.clone(), record_count: None }],
            routes: Vec::new(),
        };
        Schema { connections: vec![connection], unavailable: Vec::new() }
    }

    /// Returns the fields of the records. Results of a search are filtered by those that every server gives.
    pub(crate) fn detail(&self) -> StreamDetail {
        let field = |name: &str, kind: &str, capabilities: &[Capability]| FieldDetail {
            name: name.to_owned(),
            types: vec![kind.to_owned()],
            capabilities: BTreeSet::from_iter(capabilities.iter().copied()),
        };
        StreamDetail {
            name: self.stream.clone(),
            connection_id: self.connection.clone(),
            display_name: self.label.clone(),
            connector_key: Some(CONNECTOR.to_owned()),
            record_count: None,
            primary_key: Vec::new(),
            cursor_field: None,
            fields: vec![
                field("title", "string", &[Capability::Lexical, Capability::Equal]),
                field("url", "string", &[Capability::Equal]),
                field("date", "date-time", &[Capability::Equal, Capability::Range]),
                field("text", "string", &[Capability::Lexical]),
            ],
            views: Vec::new(),
            relations: Vec::new(),
            declaration: None,
        }
    }
}

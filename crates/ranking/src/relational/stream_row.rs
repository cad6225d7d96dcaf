//! Streams with their fields and capabilities, and schemas, built from the columns of rows.

use std::sync::Arc;

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{ConnectionSchema, Schema, StreamDetail, StreamSchema};
use fetchwell_source::manifest::Manifest;
use fetchwell_source::manifest::declaration::fields;
use fetchwell_source::manifest::kinds::Kinds;

/// Stream of one connection with its row id.
#[derive(Debug)]
pub struct StreamRow {
    pub(crate) row: i64,
    pub(crate) detail: StreamDetail,
}

/// Returns the descriptions of streams.
pub(crate) fn details(streams: &[StreamRow]) -> Vec<&StreamDetail> {
    streams.iter().map(|stream| &stream.detail).collect()
}

/// Columns of a stream and its connection.
#[derive(Debug)]
pub struct StreamColumns<'a> {
    /// Row id of the stream.
    pub row: i64,
    /// Id of the connection.
    pub connection_id: &'a str,
    /// Label of the connection.
    pub display_name: &'a str,
    /// Key of the connector that the connection belongs to.
    pub connector_key: &'a str,
    /// Number of the records that are not deleted.
    pub record_count: i64,
    /// Manifest of the connector, as JSON.
    pub manifest: Option<&'a str>,
    /// Field that orders the stream.
    pub cursor_field: Option<&'a str>,
    /// Fields that records were seen to have.
    pub observed: &'a [(String, Kinds)],
}

impl StreamRow {
    /// Builds a stream. Returns `None` if its connection has an invalid name, which another program wrote.
    pub fn new(stream: &StreamName, columns: &StreamColumns<'_>) -> Option<Self> {
        let connection_id = columns.connection_id.parse::<ConnectionId>().ok()?;
        let manifest = columns.manifest.and_then(Manifest::cached);
        let declaration = manifest.as_deref().and_then(|manifest| manifest.stream(stream.as_str()).ok());
        Some(Self {
            row: columns.row,
            detail: StreamDetail {
                name: stream.clone(),
                connection_id,
                display_name: Some(columns.display_name.to_owned()),
                connector_key: Some(columns.connector_key.to_owned()),
                record_count: columns.record_count.try_into().ok(),
                primary_key: declaration.map(|declared| declared.primary_key.clone()).unwrap_or_default(),
                cursor_field: columns.cursor_field.map(str::to_owned),
                fields: fields(declaration, columns.observed),
                views: declaration.map(|declared| declared.views()).unwrap_or_default(),
                relations: declaration.map(|declared| declared.relations()).unwrap_or_default(),
                declaration: declaration.map(|declared| Arc::clone(declared.given())),
            },
        })
    }
}

/// Row of a stream with its connection, or of a connection without streams.
#[derive(Debug, Clone, Copy)]
pub struct SchemaRow<'a> {
    /// Id of the connection.
    pub connection_id: &'a str,
    /// Label of the connection.
    pub display_name: &'a str,
    /// Key of the connector that the connection belongs to.
    pub connector_key: &'a str,
    /// Name of the stream; `None` for a connection without streams.
    pub stream: Option<&'a str>,
    /// Number of the records that are not deleted.
    pub record_count: Option<i64>,
    /// Manifest of the connector, as JSON.
    pub manifest: Option<&'a str>,
}

/// Adds a row to a schema. The rows of a connection follow each other. Invalid names, which another program wrote, are
/// left out.
pub fn add_row(schema: &mut Schema, row: SchemaRow<'_>) {
    let Ok(connection_id) = row.connection_id.parse::<ConnectionId>() else { return };
    if schema.connections.last().is_none_or(|last| last.connection_id != connection_id) {
        let manifest = row.manifest.and_then(Manifest::cached);
        schema.connections.push(ConnectionSchema {
            connection_id,
            source: None,
            display_name: Some(row.display_name.to_owned()),
            connector_key: Some(row.connector_key.to_owned()),
            streams: Vec::new(),
            routes: manifest.map(|manifest| manifest.routes().to_vec()).unwrap_or_default(),
        });
    }
    let Some(last) = schema.connections.last_mut() else { return };
    if let Some(name) = row.stream.and_then(|stream| stream.parse::<StreamName>().ok()) {
        let record_count = row.record_count.and_then(|count| count.try_into().ok());
        last.streams.push(StreamSchema { name, record_count });
    }
}

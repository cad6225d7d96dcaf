//! Connector objects with their streams, complete or compact with one line per field.

use std::collections::BTreeMap;

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{ConnectionSchema, StreamDetail};
use schemars::JsonSchema;
use serde::Serialize;

use super::capabilities::flags;
use super::metadata::{
    Connection, ExpandCapability, StreamMetadata, connections, expand_capabilities, fields, primary_key,
    with_routes,
};

/// Streams, each with the details from every connection that has it.
pub(crate) type StreamDetails = [(StreamName, Vec<StreamDetail>)];

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Connector {
    #[schemars(extend("const" = "connector"))]
    object: &'static str,
    connector_key: String,
    connector_id: String,
    source: ConnectorSource,
    pub(crate) stream_count: usize,
    streams: Vec<StreamEntry>,
    /// With `view=compact`: the connections of its streams, unless a stream says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_connections: Option<Vec<Connection>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConnectorSource {
    #[schemars(extend("const" = "connector"))]
    kind: &'static str,
    id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum StreamEntry {
    Full(Box<StreamMetadata>),
    Compact(CompactStream),
}

/// A stream with a line for each field.
#[derive(Debug, Serialize, JsonSchema)]
struct CompactStream {
    name: String,
    primary_key: Vec<String>,
    /// Such as `t=number,eq,r=gte|gt|lte|lt,lex,sem,a=max|sum`, or `declared`.
    field_capabilities: BTreeMap<String, String>,
    expand_capabilities: Vec<ExpandCapability>,
    /// Connections of the stream, if they are not all of the connector's.
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_connections: Option<Vec<Connection>>,
}

impl Connector {
    fn new(key: &str, streams: Vec<StreamEntry>) -> Self {
        Self {
            object: "connector",
            connector_key: key.to_owned(),
            connector_id: key.to_owned(),
            source: ConnectorSource { kind: "connector", id: key.to_owned() },
            stream_count: streams.len(),
            streams,
            granted_connections: None,
        }
    }

    pub(crate) fn full(key: &str, streams: &StreamDetails, known: &[&ConnectionSchema]) -> Self {
        let entry = |(name, details): &(StreamName, Vec<StreamDetail>)| {
            StreamEntry::Full(Box::new(StreamMetadata::new(name.as_str(), details, known)))
        };
        Self::new(key, streams.iter().map(entry).collect())
    }

    pub(crate) fn compact(key: &str, streams: &StreamDetails, known: &[&ConnectionSchema]) -> Self {
        let mut shared: Vec<Connection> = Vec::new();
        for connection in streams.iter().flat_map(|(_, details)| connections(details)) {
            if !shared.contains(&connection) {
                shared.push(connection);
            }
        }
        let entry = |(name, details): &(StreamName, Vec<StreamDetail>)| {
            let own = connections(details);
            StreamEntry::Compact(CompactStream {
                name: name.to_string(),
                primary_key: primary_key(details),
                field_capabilities: fields(details)
                    .into_iter()
                    .map(|(name, field)| (name, flags(&field)))
                    .collect(),
                expand_capabilities: expand_capabilities(details),
                granted_connections: Some(own)
                    .filter(|own| *own != shared)
                    .map(|own| with_routes(own, known, Some(name.as_str()))),
            })
        };
        let streams = streams.iter().map(entry).collect();
        Self { granted_connections: Some(with_routes(shared, known, None)), ..Self::new(key, streams) }
    }
}

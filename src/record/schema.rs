//! What there is to search and read.

use super::{HttpRoute, Unavailable};
use crate::handle::{ConnectionId, SourceName, StreamName};

/// The connections of a source, in the source's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// One entry per account or folder.
    pub connections: Vec<ConnectionSchema>,
    /// Sources whose connections are missing.
    pub unavailable: Vec<Unavailable>,
}

/// One connection and its streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSchema {
    /// Its id.
    pub connection_id: ConnectionId,
    /// The source it is of, when another source has a connection of the same id.
    pub source: Option<SourceName>,
    /// Its label, when the source has one.
    pub display_name: Option<String>,
    /// The short key of its connector.
    pub connector_key: Option<String>,
    /// Its tables.
    pub streams: Vec<StreamSchema>,
    /// The paths under which its connector's own API served them.
    pub routes: Vec<HttpRoute>,
}

/// One table of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSchema {
    /// Its name.
    pub name: StreamName,
    /// How many records it holds, when the source says so.
    pub record_count: Option<u64>,
}

/// The short key of a connector. Some servers and manifests name it by the URL of its page in a registry.
#[must_use]
pub fn short_connector_key(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

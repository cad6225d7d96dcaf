//! The connections and streams of a source.

use super::{HttpRoute, Unavailable};
use crate::handle::{ConnectionId, SourceName, StreamName};

/// The connections of a source, in the order of the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// One entry per account or folder.
    pub connections: Vec<ConnectionSchema>,
    /// Sources that failed, so that their connections are missing.
    pub unavailable: Vec<Unavailable>,
}

/// One connection and its streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSchema {
    /// Id of the connection.
    pub connection_id: ConnectionId,
    /// Source of the connection, set if another source has a connection with the same id.
    pub source: Option<SourceName>,
    /// Label of the connection, if the source has one.
    pub display_name: Option<String>,
    /// Short key of the connection's connector.
    pub connector_key: Option<String>,
    /// Tables of the connection.
    pub streams: Vec<StreamSchema>,
    /// Paths under which the connector's own API served the streams.
    pub routes: Vec<HttpRoute>,
}

/// One table of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSchema {
    /// Name of the stream.
    pub name: StreamName,
    /// Number of records, if the source reports it.
    pub record_count: Option<u64>,
}

/// Returns the short key of a connector: the last path segment. Some servers and manifests name a connector by the
/// URL of its registry page.
#[must_use]
pub fn short_connector_key(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

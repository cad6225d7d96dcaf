//! Numbers of the connections and streams of a store.

use serde::Serialize;

/// Numbers of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionInfo {
    /// Id of the connection.
    pub connection_id: String,
    /// Label of the connection.
    pub display_name: String,
    /// Key of the connector.
    pub connector_key: String,
    /// Streams of the connection.
    pub streams: Vec<StreamInfo>,
}

/// Numbers of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamInfo {
    /// Name of the stream.
    pub name: String,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records that `changes_since` tells of.
    pub deleted: u64,
}

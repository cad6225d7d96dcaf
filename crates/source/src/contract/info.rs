//! Description of a store: its place, its sizes, and the numbers of its connections and streams.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::vectors::VectorStatus;

/// Description of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StoreInfo {
    /// Path of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Host, port and name of a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Version of the server of a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Version of the format of the file or of the tables.
    pub format: i64,
    /// Number of changes since the store was created.
    pub version: i64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records that `changes_since` tells of.
    pub deleted: u64,
    /// Sizes of its parts.
    #[serde(serialize_with = "sizes_by_name")]
    pub bytes: Vec<StorePart>,
    /// Connections in the order in which they were imported first.
    pub connections: Vec<ConnectionInfo>,
    /// State of the vectors, if they are a part of the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorStatus>,
}

/// Part of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorePart {
    /// Name of the part, as in JSON.
    pub name: &'static str,
    /// Size in bytes.
    pub bytes: u64,
}

/// Versions of the tables of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableVersions {
    /// Version of the tables; `None` if there are none.
    pub found: Option<i32>,
    /// Version that this release reads and writes.
    pub known: i32,
    /// Time at which each version was reached. A file does not tell.
    pub applied: Vec<(i32, String)>,
}

impl StoreInfo {
    /// Creates the numbers of a store. Each row is a connection with at most one of its streams, in the order of both.
    #[must_use]
    pub fn new(format: i64, version: i64, rows: Vec<ConnectionInfo>) -> Self {
        let mut connections: Vec<ConnectionInfo> = Vec::new();
        for row in rows {
            match connections.last_mut() {
                Some(last) if last.connection_id == row.connection_id => last.streams.extend(row.streams),
                _ => connections.push(row),
            }
        }
        let streams = || connections.iter().flat_map(|connection| &connection.streams);
        let records = streams().map(|stream| stream.records).sum();
        let deleted = streams().map(|stream| stream.deleted).sum();
        Self { format, version, records, deleted, connections, ..Self::default() }
    }
}

fn sizes_by_name<S: Serializer>(parts: &[StorePart], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parts.iter().map(|part| (part.name, part.bytes)))
}

impl TableVersions {
    /// Returns true if this release reads and writes the tables as they are.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.found == Some(self.known)
    }
}

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

impl StreamInfo {
    /// Creates the numbers of a stream from its number of records, and that of its rows with deleted records.
    #[must_use]
    pub fn new(name: String, records: i64, rows: i64) -> Self {
        let (records, rows) = (records.try_into().unwrap_or(0), rows.unsigned_abs());
        Self { name, records, deleted: rows.saturating_sub(records) }
    }
}

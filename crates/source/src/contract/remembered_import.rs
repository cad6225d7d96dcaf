//! Imports that a store remembers, to synchronize them again.

use std::path::PathBuf;

use fetchwell_core::handle::ConnectionId;
use jiff::Timestamp;

use super::import::Tally;

/// Row id of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportId(pub i64);

/// An import to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImport {
    /// Absolute path of the file or folder.
    pub origin: PathBuf,
    /// Kind of the import.
    pub kind: String,
    /// Options of the import as JSON.
    pub options: String,
}

/// An import that a store remembers. A connection has at most one.
#[derive(Debug, Clone, PartialEq)]
pub struct RememberedImport {
    /// Row id of the import.
    pub id: ImportId,
    /// Id of the connection, which is also the name of the import.
    pub connection_id: ConnectionId,
    /// Key of the connector of the connection.
    pub connector_key: String,
    /// Manifest of the connection as JSON text.
    pub manifest: Option<String>,
    /// Origin, kind and options.
    pub settings: NewImport,
    /// Result of the last synchronization.
    pub status: ImportStatus,
}

/// Result of the last synchronization of an import.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportStatus {
    /// Time of the last attempt.
    pub last_attempt: Option<Timestamp>,
    /// Time of the last attempt that read the origin.
    pub last_sync: Option<Timestamp>,
    /// Records of the last attempt by effect.
    pub tally: Tally,
    /// Number of records that are missing at the origin and were not deleted.
    pub held: u64,
    /// Number of items that could not be read.
    pub unreadable: u64,
    /// Error of the last attempt.
    pub problem: Option<String>,
}

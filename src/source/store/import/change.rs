//! Records and deletions that an import passes to the writer.

use crate::handle::{RecordId, StreamName};
use crate::record::RecordData;

/// Record to be written.
#[derive(Debug, Clone)]
pub struct IncomingRecord {
    /// Stream of the record.
    pub stream: StreamName,
    /// Key of the record.
    pub key: RecordId,
    /// Change to apply to the record.
    pub change: Change,
}

/// Change that an import applies to a record.
#[derive(Debug, Clone)]
pub enum Change {
    /// Insert or replace the record.
    Put {
        /// Fields of the record.
        data: RecordData,
        /// Time at which the connector emitted the record. An unchanged record keeps the time it has.
        emitted_at: Option<String>,
    },
    /// Delete the record.
    Delete {
        /// Time of the deletion, if known.
        deleted_at: Option<String>,
    },
}

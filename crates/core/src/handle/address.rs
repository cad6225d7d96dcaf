//! The triple that identifies one record.

use serde::{Deserialize, Serialize};

use super::name::{ConnectionId, RecordId, StreamName};

/// The address of a record: its connection, its stream and its key.
///
/// `connection` is `None` for a record that was named without one (`orders:o1`). The record server then decides
/// whether that is ambiguous; this crate never fills it in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordAddress {
    /// The account or folder, when it is known.
    pub connection: Option<ConnectionId>,
    /// The table of the connection.
    pub stream: StreamName,
    /// The canonical key of the record in its stream.
    pub record: RecordId,
}

//! The triple that names one record.

use serde::{Deserialize, Serialize};

use super::{ConnectionId, RecordId, StreamName};

/// Where a record is: its connection, as far as it is known, its stream and its key.
///
/// `connection` is `None` for a record that was named without one (`orders:o1`). The record server
/// decides then whether that is ambiguous; nothing here ever fills it in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordAddress {
    /// The account or folder, when it is known.
    pub connection: Option<ConnectionId>,
    /// The table.
    pub stream: StreamName,
    /// The canonical key.
    pub record: RecordId,
}

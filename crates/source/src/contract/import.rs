//! Records that an import writes into a connection of a store, and its result.

use std::ops::AddAssign;

use fetchwell_core::handle::{ConnectionId, RecordId, StreamName};
use fetchwell_core::record::RecordData;

use super::store_error::StoreError;

/// Maximum number of records that are written in one transaction.
pub const BATCH_RECORDS: usize = 2_000;

/// Maximum bytes of record text that are written in one transaction.
pub const BATCH_BYTES: usize = 8_000_000;

/// Connection that an import writes to.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// Id of the connection.
    pub connection_id: ConnectionId,
    /// Key of the connector, used if the connection is new.
    pub connector_key: String,
    /// New display name; `None` keeps the existing one.
    pub display_name: Option<String>,
    /// New manifest as JSON text; `None` keeps the existing one.
    pub manifest: Option<String>,
}

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

/// Number of records by effect of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Records that are new.
    pub added: u64,
    /// Records that existed and changed.
    pub changed: u64,
    /// Records that existed without a difference, and deletions of unknown records.
    pub unchanged: u64,
    /// Records that were deleted.
    pub deleted: u64,
}

/// Result of an import.
#[derive(Debug)]
pub struct ImportResult {
    /// Number of records written, by effect.
    pub tally: Tally,
    /// Error that prevents use of the search index, if there is one. The records are written all the same.
    pub index_problem: Option<StoreError>,
}

/// A receiver of the numbers of changes that were added to the search index, and of those that it lacks.
pub type IndexProgress<'a> = &'a dyn Fn(u64, u64);

/// Receives the progress of the index and shows nothing.
pub fn no_progress(_added: u64, _missing: u64) {}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.deleted += other.deleted;
    }
}

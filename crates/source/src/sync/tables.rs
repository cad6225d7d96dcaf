//! The tables of a store as one import writes them: the queries that each database answers in its own way.

use std::fmt;

use fetchwell_core::handle::{RecordId, StreamName};

use crate::contract::{
    Fingerprint, IncomingRecord, IndexProgress, ItemId, ItemState, Role, StoreError, Tally,
};

/// Records of one transaction, with their relations to items. Records of an import to its end have none.
#[derive(Debug, Default)]
pub struct RecordBatch {
    /// Records to be written, in this order.
    pub records: Vec<IncomingRecord>,
    /// Bytes of their text.
    pub bytes: usize,
    /// Parts of items, in the order in which they were read. They are written after the records.
    pub items: Vec<ItemPart>,
    /// True if [`WrittenBatch::sharing`] is needed.
    pub finds_sharing: bool,
}

/// The part of an item that is in one batch.
#[derive(Debug)]
pub struct ItemPart {
    /// Item of the part.
    pub start: ItemStart,
    /// Relations of the item to records, in the order in which they were read.
    pub relations: Vec<Relation>,
    /// State to be saved, if the item ends here. With a problem, its stale records are kept.
    pub end: Option<ItemState>,
}

/// The item of a part.
#[derive(Debug)]
pub enum ItemStart {
    /// The item with this path begins: all of its records become stale.
    Path(String),
    /// The item began in an earlier batch.
    Known(ItemId),
}

/// The relation of an item to a record. One that does not exist has none.
#[derive(Debug)]
pub enum Relation {
    /// To the record at a position of the batch.
    Written {
        /// Position in the records of the batch.
        at: usize,
        /// Role of the record for the item.
        role: Role,
    },
    /// To a record with the key of another one, which the item does not give: [`Role::Depends`], unless the item gives a
    /// record of this key.
    Depends {
        /// Stream of the record.
        stream: StreamName,
        /// Key of the record.
        key: RecordId,
    },
}

/// The effect of a batch.
#[derive(Debug, Default)]
pub struct WrittenBatch {
    /// Number of its records, by effect.
    pub tally: Tally,
    /// Item of each part.
    pub items: Vec<ItemId>,
    /// Items of the batch with other items of the import that have one of the same records, which is not stale.
    pub sharing: Vec<(ItemId, ItemId)>,
}

/// A record to delete, as it was when no item gave it.
#[derive(Debug)]
pub struct Removal {
    /// Row id of the record, in a database that refers to records by it.
    pub record: i64,
    /// Version of the record.
    pub version: i64,
    /// Deletion to be written.
    pub incoming: IncomingRecord,
}

/// A statement that changes items of an import.
#[derive(Debug)]
pub struct ItemChange<'i> {
    /// Text of the statement.
    pub sql: String,
    /// Items that the statement is about, as [`TableNames::listed`](super::TableNames::listed) compares them. `None` for a
    /// statement without a parameter.
    pub items: Option<&'i [ItemId]>,
}

/// The tables of a store as one import writes them. A batch is one transaction under the lock of all writers: it is written
/// completely or not at all. A method fails if the store cannot be used, or if the import was removed from it.
pub trait ImportTables: fmt::Debug + Send {
    /// Writes a batch: first its records, then the parts of items in their order.
    ///
    /// # Errors
    ///
    /// The batch cannot be written. Earlier batches stay written.
    fn write(&mut self, batch: RecordBatch) -> Result<WrittenBatch, StoreError>;

    /// Waits until all batches are written. Returns the records that [`Self::write`] did not count yet, by effect.
    ///
    /// # Errors
    ///
    /// A batch could not be written. Earlier batches stay written.
    fn complete(&mut self) -> Result<Tally, StoreError> {
        Ok(Tally::default())
    }

    /// Deletes records that no item gives, in one transaction.
    ///
    /// # Errors
    ///
    /// They cannot be deleted. Earlier batches stay written.
    fn remove(&mut self, removals: Vec<Removal>) -> Result<Tally, StoreError>;

    /// Saves the states of items with unchanged content, in one transaction.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError>;

    /// Returns the `numbers` columns of a query that has one row.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn count(&self, sql: &str, numbers: usize) -> Result<Vec<u64>, StoreError>;

    /// Returns the items and their fingerprints that a query has as its columns.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn fingerprints(&self, sql: &str) -> Result<Vec<(ItemId, Fingerprint)>, StoreError>;

    /// Returns the records that a query has: streams, keys, versions and row ids.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn removals(&self, sql: &str) -> Result<Vec<Removal>, StoreError>;

    /// Changes items in one transaction.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn change(&self, changes: &[ItemChange<'_>]) -> Result<(), StoreError>;

    /// Completes the search index and all that is derived from the records. Returns the error that prevents its use.
    fn finish(self: Box<Self>, tally: Tally, progress: IndexProgress<'_>) -> Option<StoreError>;
}

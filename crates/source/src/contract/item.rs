//! Items of an import: the files of its origin as they were last read, and their relation to records.

/// First 16 bytes of the SHA-256 of the content of a file.
pub type Fingerprint = [u8; 16];

/// Row id of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub i64);

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemState {
    /// Size, times and id of the file as text. `None` to read it again in any case.
    pub stamp: Option<String>,
    /// Fingerprint of its content, or `None` for a large file.
    pub fingerprint: Option<Fingerprint>,
    /// True if it was changed so shortly before that the stamp can miss a change.
    pub is_recent: bool,
    /// Reason why it could not be read completely. Its earlier records are kept.
    pub problem: Option<String>,
}

/// An item that a store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownItem {
    /// Row id of the item.
    pub id: ItemId,
    /// State in which it was read.
    pub state: ItemState,
    /// True if it was missing at the last synchronization.
    pub is_gone: bool,
}

/// The relation of an item to a record, as a number in the table `item_records`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The item gave the record when it was read before, and has not given it since.
    Stale,
    /// The item gives the record.
    Gives,
    /// The item has a record with the same key as another item, which is rejected or kept under another key. It has to
    /// be read again when the other one changes.
    Depends,
}

impl Role {
    /// Returns the number of the role in the tables of all stores.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Self::Stale => 0,
            Self::Gives => 1,
            Self::Depends => 2,
        }
    }
}

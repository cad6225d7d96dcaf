//! Records that are read from a store to export or copy them.

use fetchwell_core::record::RecordData;

use super::import::NewConnection;
use super::store_error::StoreError;
use crate::manifest::kinds::MAX_FIELDS;

/// Maximum number of fields of a stream that an import keeps the names of.
pub const MAX_EXPORTED_FIELDS: usize = MAX_FIELDS;

/// Stream of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedStream {
    row: i64,
    /// Name of the stream.
    pub name: String,
    /// Number of records, without deleted ones.
    pub records: u64,
}

impl ExportedStream {
    /// Creates the stream of a row.
    #[must_use]
    pub fn new(row: i64, name: String, records: u64) -> Self {
        Self { row, name, records }
    }

    /// Returns the row id.
    #[must_use]
    pub fn row(&self) -> i64 {
        self.row
    }
}

/// Fields of the records of a stream.
#[derive(Debug, Clone, Default)]
pub struct StreamFields {
    /// Names of all fields, in any order.
    pub names: Vec<String>,
    /// Fields of the first record as JSON text.
    pub first: Option<String>,
}

impl StreamFields {
    /// Returns the names in the order of the first record, then those that it lacks in alphabetical order.
    #[must_use]
    pub fn in_order(self) -> Vec<String> {
        let Self { mut names, first } = self;
        let first: RecordData = first.and_then(|first| serde_json::from_str(&first).ok()).unwrap_or_default();
        let place = |name: &String| first.keys().position(|known| known == name).unwrap_or(usize::MAX);
        names.sort_by_cached_key(|name| (place(name), name.clone()));
        names
    }
}

/// Record of an export. It is borrowed from the database until the next one is read.
#[derive(Debug, Clone, Copy)]
pub struct ExportedRecord<'a> {
    /// Key of the record.
    pub key: &'a str,
    /// Fields as JSON text of one line, as they were imported.
    pub data: &'a str,
    /// Time at which the connector emitted the record.
    pub emitted_at: Option<&'a str>,
}

/// Record as it is now, or its deletion. It is borrowed from the database until the next one is read.
#[derive(Debug, Clone, Copy)]
pub struct RowVersion<'a> {
    /// Key of the record.
    pub key: &'a str,
    /// Fields as JSON text of one line; `None` if the record is deleted.
    pub data: Option<&'a str>,
    /// Time at which the connector emitted the record, or at which it was deleted.
    pub emitted_at: Option<&'a str>,
}

/// Connection of a store that is copied.
#[derive(Debug, Clone)]
pub struct CopiedConnection {
    /// Names and manifest.
    pub connection: NewConnection,
    /// True for a project of documents.
    pub is_project: bool,
}

/// Reason why an export ends early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<Sink: std::error::Error> {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record cannot be written.
    #[error(transparent)]
    Sink(Sink),
}

//! The trait of a database that has records, and the rows that it passes to reads.

use super::allowance::Allowance;
use super::interrupt::ReadBounds;
use super::stream_row::StreamRow;
use crate::handle::{ConnectionId, RecordAddress, StreamName};
use crate::record::{Record, RecordData, Schema, SortValue};
use crate::source::{Direction, RangeOperator, SourceError};

/// Maximum bytes of record text on one page. A page of larger records has fewer rows than the limit.
pub(in crate::source) const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Tables of a store, as one read sees them.
pub(in crate::source) trait Tables {
    /// Error of a read: of the database, or of the query.
    type Error: From<SourceError>;

    /// Returns all connections with the names of their streams.
    fn schema(&self) -> Result<Schema, Self::Error>;

    /// Returns the id of the store and the version of its newest change.
    fn identity(&self) -> Result<StoreIdentity, Self::Error>;

    /// Returns the streams of a name, in one connection or in all.
    fn streams(
        &self,
        stream: &StreamName,
        connection: Option<&ConnectionId>,
    ) -> Result<Vec<StreamRow>, Self::Error>;

    /// Returns the records at an address: one in each connection that has it, if the address names none.
    fn find(&self, address: &RecordAddress, allowance: &Allowance) -> Result<Vec<Record>, Self::Error>;

    /// Returns the versions of the records at an address.
    fn record_versions(&self, address: &RecordAddress) -> Result<Vec<String>, Self::Error>;

    /// Passes the records of keys to `each`, in the order of the keys and with `None` for a missing one, until it returns
    /// false.
    fn records_at(
        &self,
        keys: &[RecordKey<'_>],
        allowance: &Allowance,
        each: &mut dyn FnMut(Option<SizedRecord>) -> bool,
    ) -> Result<(), Self::Error>;

    /// Passes the records of a scan to `each`, until it returns false or the read exceeds its memory limit.
    fn scan(
        &self,
        scan: &Scan<'_>,
        bounds: ReadBounds<'_>,
        each: &mut dyn FnMut(ScanRow<'_>) -> Result<bool, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Passes the records of a stream that changed after a version to `each`, in the order of their changes, until it
    /// returns false or the read exceeds its memory limit.
    fn changes(
        &self,
        stream: i64,
        since: i64,
        bounds: ReadBounds<'_>,
        each: &mut dyn FnMut(ChangeRow<'_>) -> Result<bool, Self::Error>,
    ) -> Result<(), Self::Error>;
}

/// Identity and state of a store.
#[derive(Debug, Clone)]
pub(in crate::source) struct StoreIdentity {
    /// Random id of the store.
    pub(in crate::source) uuid: String,
    /// Version of the newest change.
    pub(in crate::source) version: i64,
}

/// Key of a record within its stream.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct RecordKey<'a> {
    /// Row id of the stream.
    pub(in crate::source) stream: i64,
    pub(in crate::source) key: &'a str,
}

/// Record with the size of its text in bytes.
#[derive(Debug)]
pub(in crate::source) struct SizedRecord {
    /// Record; `None` if it is deleted, exceeds the memory limit or cannot be read.
    pub(in crate::source) record: Option<Record>,
    pub(in crate::source) bytes: usize,
}

/// Records of a stream to be read.
#[derive(Debug)]
pub(in crate::source) struct Scan<'a> {
    /// Row id of the stream.
    pub(in crate::source) stream: i64,
    /// Order by sort value and key; `None` for any order.
    pub(in crate::source) order: Option<Direction>,
    /// Position after which the scan starts.
    pub(in crate::source) after: Option<ScanStart<'a>>,
    /// Conditions on the sort value.
    pub(in crate::source) limits: Vec<(RangeOperator, SortValue)>,
    /// True if the text of the records is read.
    pub(in crate::source) wants_data: bool,
}

/// Position in the order of a scan.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct ScanStart<'a> {
    pub(in crate::source) value: &'a SortValue,
    pub(in crate::source) key: &'a str,
    /// True if the record at the position itself is read too.
    pub(in crate::source) is_inclusive: bool,
}

impl Scan<'_> {
    /// Creates a scan of the texts of all records of a stream.
    pub(in crate::source) fn of_texts(stream: i64, order: Option<Direction>) -> Self {
        Self { stream, order, after: None, limits: Vec::new(), wants_data: true }
    }
}

/// Row of a scan.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct ScanRow<'a> {
    pub(in crate::source) key: &'a str,
    pub(in crate::source) value: SortColumn<'a>,
    /// JSON object of the record; empty if the scan reads no texts.
    pub(in crate::source) data: &'a str,
}

/// Sort value in a column.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) enum SortColumn<'a> {
    Missing,
    Number(f64),
    Text(&'a str),
}

impl From<SortColumn<'_>> for SortValue {
    fn from(column: SortColumn<'_>) -> Self {
        match column {
            SortColumn::Missing => Self::Missing,
            SortColumn::Number(number) => Self::number(number),
            SortColumn::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

/// Row of a changed record.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct ChangeRow<'a> {
    pub(in crate::source) key: &'a str,
    /// JSON object of the record; `None` if it was deleted.
    pub(in crate::source) data: Option<&'a str>,
    /// Time of the record or of its deletion.
    pub(in crate::source) emitted_at: Option<&'a str>,
    pub(in crate::source) version: i64,
}

/// Columns of a record that is not deleted.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct RecordRow<'a> {
    pub(in crate::source) key: &'a str,
    pub(in crate::source) data: &'a str,
    pub(in crate::source) emitted_at: Option<&'a str>,
    pub(in crate::source) stream: &'a str,
    pub(in crate::source) connection_id: &'a str,
    pub(in crate::source) display_name: &'a str,
    pub(in crate::source) connector_key: &'a str,
}

impl RecordRow<'_> {
    /// Builds the record. Returns `None` if another program damaged it or gave it an invalid name.
    pub(in crate::source) fn record(&self) -> Option<Record> {
        let data = serde_json::from_str::<RecordData>(self.data).ok()?;
        let address = RecordAddress {
            connection: Some(self.connection_id.parse().ok()?),
            stream: self.stream.parse().ok()?,
            record: self.key.parse().ok()?,
        };
        Some(Record {
            emitted_at: self.emitted_at.map(str::to_owned),
            display_name: Some(self.display_name.to_owned()),
            connector_key: Some(self.connector_key.to_owned()),
            ..Record::new(address, data)
        })
    }
}

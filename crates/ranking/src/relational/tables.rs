//! The trait of a database that has records, and the rows that it passes to reads.

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{Record, RecordData, Schema, SortValue};
use fetchwell_source::{Direction, RangeOperator, SourceError};

use super::allowance::Allowance;
use super::columns::ColumnarStream;
use super::interrupt::ReadBounds;
use super::stream_row::StreamRow;
use crate::lexical::word_filter::WordFilter;

/// Maximum bytes of record text on one page. A page of larger records has fewer rows than the limit.
pub(crate) const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Receiver of rows, which returns false to end the read.
pub type EachRow<'e, Error> = &'e mut dyn FnMut(ScanRow<'_>) -> Result<bool, Error>;

/// Tables of a store, as one read sees them.
pub trait Tables {
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
        each: EachRow<'_, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Opens the columns of some fields of a stream, at the state that the read sees. Their segments have only records with the
    /// words, if there are any; the rest has others, too. Returns `None` if the records are to be scanned: the tables have no
    /// columns, or not of these fields, or a scan is as fast.
    fn columns(
        &self,
        stream: i64,
        fields: &[&str],
        words: Option<&WordFilter>,
    ) -> Result<Option<ColumnarStream<'_>>, Self::Error>;

    /// Passes all records of a stream that have some words to `each`, in any order, until it returns false or the read exceeds
    /// its memory limit.
    fn scan_with_words(
        &self,
        scan: &WordScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Passes the records of a stream with some row ids to `each`, in the order of the ids, until it returns false or the read
    /// exceeds its memory limit. Leaves out ids of deleted records and of other streams.
    fn rows(
        &self,
        rows: &RowScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Passes the records of a stream to `each` in the order of their keys, without sort values and texts, until it returns false.
    /// Deleted records may be among them.
    fn keys(
        &self,
        scan: &KeyScan<'_>,
        bounds: ReadBounds<'_>,
        each: EachRow<'_, Self::Error>,
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

/// Passes a record to `each` if it has some words. Returns false to end the read.
///
/// # Errors
///
/// `each` fails.
pub fn pass_with_words<Error>(
    words: &WordFilter,
    row: ScanRow<'_>,
    each: EachRow<'_, Error>,
) -> Result<bool, Error> {
    if words.passes(row.key, row.data) { each(row) } else { Ok(true) }
}

/// Identity and state of a store.
#[derive(Debug, Clone)]
pub struct StoreIdentity {
    /// Random id of the store.
    pub uuid: String,
    /// Version of the newest change.
    pub version: i64,
}

/// Key of a record within its stream.
#[derive(Debug, Clone, Copy)]
pub struct RecordKey<'a> {
    /// Row id of the stream.
    pub stream: i64,
    /// Key of the record within its stream.
    pub key: &'a str,
}

/// Record with the size of its text in bytes.
#[derive(Debug)]
pub struct SizedRecord {
    /// Record; `None` if it is deleted, exceeds the memory limit or cannot be read.
    pub record: Option<Record>,
    /// Size of the text in bytes.
    pub bytes: usize,
}

/// Records of a stream to be read.
#[derive(Debug)]
pub struct Scan<'a> {
    /// Row id of the stream.
    pub stream: i64,
    /// Order by sort value and key; `None` for any order.
    pub order: Option<Direction>,
    /// Position after which the scan starts.
    pub after: Option<ScanStart<'a>>,
    /// Conditions on the sort value.
    pub limits: Vec<(RangeOperator, SortValue)>,
    /// True if the text of the records is read.
    pub wants_data: bool,
}

/// Records of a stream to be read by their words.
#[derive(Debug)]
pub struct WordScan<'a> {
    /// Row id of the stream.
    pub stream: i64,
    /// Words that a record must have.
    pub words: &'a WordFilter,
    /// True if the text of the records is read.
    pub wants_data: bool,
}

/// Records of a stream to be read by their row ids.
#[derive(Debug)]
pub struct RowScan<'a> {
    /// Row id of the stream.
    pub stream: i64,
    /// Row ids of the records.
    pub rows: &'a [i64],
    /// True if the text of the records is read.
    pub wants_data: bool,
}

/// Records of a stream to be read in the order of their keys.
#[derive(Debug)]
pub struct KeyScan<'a> {
    /// Row id of the stream.
    pub stream: i64,
    /// Order of the keys.
    pub direction: Direction,
    /// Key after which the scan starts.
    pub after: Option<KeyStart<'a>>,
}

/// Position in the order of keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyStart<'a> {
    /// Key of the row before the first.
    pub key: &'a str,
    /// True if the record with this key is read too.
    pub is_inclusive: bool,
}

/// Position in the order of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanStart<'a> {
    /// Sort value of the row before the first.
    pub value: &'a SortValue,
    /// Key of the row before the first.
    pub key: &'a str,
    /// True if the record at the position itself is read too.
    pub is_inclusive: bool,
}

/// Returns the SQL keyword of an order.
pub fn order_keyword(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    }
}

/// Returns the SQL operator of the rows behind a position in an order, or of those with the position itself.
pub fn after_operator(direction: Direction, is_inclusive: bool) -> &'static str {
    match (direction, is_inclusive) {
        (Direction::Ascending, false) => ">",
        (Direction::Ascending, true) => ">=",
        (Direction::Descending, false) => "<",
        (Direction::Descending, true) => "<=",
    }
}

impl Scan<'_> {
    /// Creates a scan of the texts of all records of a stream.
    #[must_use]
    pub fn all_texts(stream: i64, order: Option<Direction>) -> Self {
        Self { stream, order, after: None, limits: Vec::new(), wants_data: true }
    }
}

/// Row of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanRow<'a> {
    /// Row id of the record.
    pub id: i64,
    /// Key of the record within its stream.
    pub key: &'a str,
    /// Sort value of the record.
    pub value: SortColumn<'a>,
    /// JSON object of the record; empty if the scan reads no texts.
    pub data: &'a str,
}

/// Sort value in a column.
#[derive(Debug, Clone, Copy)]
pub enum SortColumn<'a> {
    /// Missing, or neither a number nor a text.
    Missing,
    /// A finite number.
    Number(f64),
    /// Text of any length.
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
pub struct ChangeRow<'a> {
    /// Key of the record within its stream.
    pub key: &'a str,
    /// JSON object of the record; `None` if it was deleted.
    pub data: Option<&'a str>,
    /// Time of the record or of its deletion.
    pub emitted_at: Option<&'a str>,
    /// Version of the change.
    pub version: i64,
}

/// Columns of a record that is not deleted.
#[derive(Debug, Clone, Copy)]
pub struct RecordRow<'a> {
    /// Key of the record within its stream.
    pub key: &'a str,
    /// JSON object of the record.
    pub data: &'a str,
    /// Time of the record, if it has one.
    pub emitted_at: Option<&'a str>,
    /// Name of the stream.
    pub stream: &'a str,
    /// Id of the connection.
    pub connection_id: &'a str,
    /// Label of the connection.
    pub display_name: &'a str,
    /// Key of the connector that the connection belongs to.
    pub connector_key: &'a str,
}

impl RecordRow<'_> {
    /// Builds the record. Returns `None` if another program damaged it or gave it an invalid name.
    pub fn record(&self) -> Option<Record> {
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

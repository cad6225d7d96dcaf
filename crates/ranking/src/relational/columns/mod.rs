//! Values of fields in columns, beside the JSON of the records.
//!
//! A column has the values of one field exactly as a filter sees them: reading a record's value from its column gives what
//! parsing its JSON gives. A value that a column cannot hold marks its record, and the record is read as JSON whenever that
//! field is asked for. Filters, aggregates and orders therefore have the same results with columns and without.
//!
//! * `cell`: values of columns
//! * `time`: timestamps and dates as numbers
//! * `layout`: division of a record into columns, and the fields that get one
//! * `limits`: the streams whose columns are read
//! * `filter`: evaluation of filters
//! * `order`: first records of an order by a field
//! * `row_set`: sets of row ids

mod cell;
pub(crate) mod filter;
mod layout;
mod limits;
pub(super) mod order;
pub(super) mod row_set;
pub(super) mod time;

use fetchwell_source::SourceError;

pub use self::cell::{Cell, CellBlock};
pub use self::layout::{ColumnPath, ColumnPlan, ColumnValue, MAX_COLUMNS, RecordColumns, Shape};
pub use self::limits::{MAX_CHANGED, MAX_LOOKUPS, MIN_RECORDS};

use super::interrupt::Interrupt;

/// Number of records whose values are in memory at a time.
pub(crate) const BLOCK: usize = 16 * 1024;

/// Failure of a read of columns. The read is repeated with the JSON of the records, unless the caller has gone.
#[derive(Debug)]
pub enum ColumnError {
    /// The columns cannot be read.
    Unreadable(String),
    /// There are more groups or values than are kept in memory.
    TooMany,
    /// The read is refused or cancelled.
    Source(SourceError),
}

impl From<SourceError> for ColumnError {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// Returns what was read from columns; `None` if they cannot be read or have too many values.
///
/// # Errors
///
/// The read is refused or cancelled.
pub fn in_columns<Answer, Error: From<SourceError>>(
    read: Result<Answer, ColumnError>,
) -> Result<Option<Answer>, Error> {
    match read {
        Ok(answer) => Ok(Some(answer)),
        Err(ColumnError::TooMany) => Ok(None),
        Err(ColumnError::Unreadable(problem)) => {
            tracing::warn!(problem, "columns cannot be read; the JSON of all records is read instead");
            Ok(None)
        }
        Err(ColumnError::Source(error)) => Err(error.into()),
    }
}

/// Columns of some records of a stream.
pub trait ColumnSegment {
    /// Returns the numbers of the records, ascending. All of them have the values of the opened fields in columns.
    fn docs(&self) -> &[u32];

    /// Reads the values of a field for some records. `field` is the place of the field among the opened ones.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn read(&self, field: usize, docs: &[u32], block: &mut CellBlock) -> Result<(), ColumnError>;

    /// Returns the number of different texts of a field. Ordinals of texts are less.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn text_count(&self, field: usize) -> Result<usize, ColumnError>;

    /// Passes the texts of ordinals, which are sorted and different, in their order.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn texts(
        &self,
        field: usize,
        ordinals: &[u32],
        each: &mut dyn FnMut(u32, &str),
    ) -> Result<(), ColumnError>;

    /// Returns the ordinal of a text that the field has.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn ordinal(&self, field: usize, text: &str) -> Result<Option<u32>, ColumnError>;

    /// Returns true if a text of the field may be a mail address, which equals other spellings of itself.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn has_addresses(&self, field: usize) -> Result<bool, ColumnError>;

    /// Appends the row ids of some records.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    fn rows(&self, docs: &[u32], rows: &mut Vec<i64>) -> Result<(), ColumnError>;
}

/// Records of a stream: most of them in columns.
pub struct ColumnarStream<'a> {
    /// Records in columns.
    pub segments: Vec<Box<dyn ColumnSegment + 'a>>,
    /// Row ids of the records that are read as JSON. Some of them may be of other streams or deleted.
    pub rest: Vec<i64>,
    /// Maximum number of records whose keys are looked up one by one, usually [`MAX_LOOKUPS`].
    pub max_lookups: usize,
}

impl ColumnarStream<'_> {
    /// Returns the row ids of all records in columns.
    ///
    /// # Errors
    ///
    /// The columns cannot be read.
    pub fn rows(&self) -> Result<Vec<i64>, ColumnError> {
        let mut rows = Vec::new();
        for segment in &self.segments {
            segment.rows(segment.docs(), &mut rows)?;
        }
        Ok(rows)
    }
}

impl std::fmt::Debug for ColumnarStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ColumnarStream").field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

/// Reads a field of some records, block by block.
pub(crate) fn each_block(
    segment: &dyn ColumnSegment,
    field: usize,
    docs: &[u32],
    interrupt: &Interrupt,
    mut each: impl FnMut(&[u32], &CellBlock) -> Result<(), ColumnError>,
) -> Result<(), ColumnError> {
    let mut block = CellBlock::default();
    for docs in docs.chunks(BLOCK) {
        interrupt.check()?;
        segment.read(field, docs, &mut block)?;
        each(docs, &block)?;
    }
    Ok(())
}

/// Passes the texts of ordinals of a field, which are sorted and different, in their order.
pub(crate) fn each_text(
    segment: &dyn ColumnSegment,
    field: usize,
    ordinals: &[u32],
    interrupt: &Interrupt,
    mut each: impl FnMut(u32, &str),
) -> Result<(), ColumnError> {
    for ordinals in ordinals.chunks(BLOCK) {
        interrupt.check()?;
        segment.texts(field, ordinals, &mut each)?;
    }
    Ok(())
}

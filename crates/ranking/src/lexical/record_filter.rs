//! Filters over search results: conditions on the fields of records that an index found.

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::StreamDetail;
use fetchwell_source::{QueryFault, SearchQuery, SourceError};

use crate::relational::field_reader::FieldReader;
use crate::relational::predicate::{Predicate, check};
use crate::relational::stream_row::StreamRow;

/// Number of matches that are read from an index at a time.
pub const CHUNK: usize = 200;

/// Maximum number of matches examined for one page.
pub const MAX_EXAMINED: usize = 10_000;

/// Filter of a search on the fields of records.
#[derive(Debug)]
pub struct RecordFilter {
    reader: FieldReader,
    predicate: Predicate,
}

impl RecordFilter {
    /// Compiles the filter of a search; returns `None` if it has none. `streams_of` returns the streams of a name.
    pub fn for_query(
        query: &SearchQuery,
        streams_of: impl FnOnce(&StreamName) -> Result<Vec<StreamRow>, SourceError>,
    ) -> Result<Option<Self>, SourceError> {
        if query.filter.is_empty() {
            return Ok(None);
        }
        let [stream] = query.streams.as_slice() else {
            return Err(SourceError::InvalidQuery {
                fault: QueryFault::InvalidFilter,
                problem: "a filter is about the fields of one stream, and the search names none or several"
                    .to_owned(),
                hint: "Set `streams` to the one stream that has these fields.".to_owned(),
            });
        };
        for stream in streams_of(stream)? {
            check(&query.filter, &stream.detail)?;
        }
        Ok(Some(Self::compiled(query)))
    }

    /// Compiles the filter of a search of the one stream that a source has; returns `None` if it has none.
    ///
    /// # Errors
    ///
    /// The stream has no such field, or the field cannot be filtered in that way.
    pub fn for_stream(query: &SearchQuery, stream: &StreamDetail) -> Result<Option<Self>, SourceError> {
        if query.filter.is_empty() {
            return Ok(None);
        }
        check(&query.filter, stream)?;
        Ok(Some(Self::compiled(query)))
    }

    fn compiled(query: &SearchQuery) -> Self {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        Self { reader, predicate }
    }

    /// Returns true if a record passes, by its JSON text.
    pub fn passes(&self, data: &str) -> bool {
        let mut values = Vec::new();
        self.reader.read(data, &mut values);
        self.predicate.passes(&values)
    }
}

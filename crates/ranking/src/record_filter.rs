//! Filters over search results: conditions on the fields of records that an index found, and operators about attachments, of
//! which the index knows nothing.

use std::collections::HashSet;

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{ATTACHMENT_FIELDS, StreamDetail, attachment_names, has_attachments};
use fetchwell_source::{QueryFault, SearchField, SearchQuery, SearchText, SourceError};
use serde_json::Value;

use crate::lexical::terms::field_words;
use crate::lexical::words::words;
use crate::relational::columns::filter::matching_rows;
use crate::relational::columns::{ColumnarStream, in_columns};
use crate::relational::field_reader::FieldReader;
use crate::relational::interrupt::Interrupt;
use crate::relational::predicate::{Predicate, check};
use crate::relational::stream_row::{StreamRow, details};

/// Number of matches that are read from an index at a time.
pub const CHUNK: usize = 200;

/// Maximum number of matches examined for one page.
pub const MAX_EXAMINED: usize = 10_000;

/// Maximum number of records that a search selects by its filter before it ranks.
const MAX_SELECTED: usize = 1_000;

/// Filter of a search on the fields of records.
#[derive(Debug)]
pub struct RecordFilter {
    reader: FieldReader,
    predicate: Predicate,
    attachments: Option<AttachmentTest>,
    /// Row ids of the streams that the search covers.
    streams: Vec<i64>,
}

/// Rows of records that pass a filter, by their columns.
#[derive(Debug, Default)]
pub struct PassingRows {
    rows: HashSet<i64>,
    /// Rows that no column tells of.
    rest: HashSet<i64>,
}

impl PassingRows {
    /// Returns true if the record of a row passes; `None` if its JSON has to be read.
    pub fn contains(&self, row: i64) -> Option<bool> {
        if self.rest.contains(&row) { None } else { Some(self.rows.contains(&row)) }
    }

    /// Returns the rows of all records that may pass, ascending, if they are few: a search then ranks only these.
    pub fn few(&self) -> Option<Vec<i64>> {
        if self.rows.len() + self.rest.len() > MAX_SELECTED {
            return None;
        }
        let mut rows: Vec<i64> = self.rows.union(&self.rest).copied().collect();
        rows.sort_unstable();
        Some(rows)
    }
}

/// Test of the attachments of records.
#[derive(Debug)]
struct AttachmentTest {
    /// Places of the fields about attachments among the values that are read.
    fields: Vec<usize>,
    /// Words of each `filename:`, which one name must contain.
    names: Vec<Vec<String>>,
}

impl AttachmentTest {
    /// Creates the test of a query; returns `None` for one without operators about attachments.
    fn for_text(text: &SearchText, reader: &mut FieldReader) -> Option<Self> {
        let named = text.fields.iter().filter(|field| field.field == SearchField::Filename);
        let names: Vec<Vec<String>> = named.map(|field| field_words(&field.text)).collect();
        if !text.has_attachment && names.is_empty() {
            return None;
        }
        let fields = ATTACHMENT_FIELDS.iter().map(|field| reader.select(field)).collect();
        Some(Self { fields, names })
    }

    /// Returns true if a record with these values has attachments, and one with each name.
    fn passes(&self, values: &[Option<Value>]) -> bool {
        let values = || self.fields.iter().filter_map(move |at| values.get(*at)?.as_ref());
        if self.names.is_empty() {
            return values().any(has_attachments);
        }
        let names: Vec<HashSet<String>> = values()
            .flat_map(attachment_names)
            .map(|name| words(name).map(|word| word.folded(name)).collect())
            .collect();
        self.names.iter().all(|wanted| names.iter().any(|name| wanted.iter().all(|word| name.contains(word))))
    }
}

impl RecordFilter {
    /// Compiles the filter of a search; returns `None` if it has none. `streams_of` returns the streams of a name.
    pub fn for_query(
        query: &SearchQuery,
        streams_of: impl FnOnce(&StreamName) -> Result<Vec<StreamRow>, SourceError>,
    ) -> Result<Option<Self>, SourceError> {
        if query.filter.is_empty() {
            let mut reader = FieldReader::default();
            let attachments = AttachmentTest::for_text(&query.text, &mut reader);
            let predicate = Predicate::new(&query.filter, &mut reader);
            let filter = |test| Self { reader, predicate, attachments: Some(test), streams: Vec::new() };
            return Ok(attachments.map(filter));
        }
        let [stream] = query.streams.as_slice() else {
            return Err(SourceError::InvalidQuery {
                fault: QueryFault::InvalidFilter,
                problem: "a filter is about the fields of one stream, and the search names none or several"
                    .to_owned(),
                hint: "Set `streams` to the one stream that has these fields.".to_owned(),
            });
        };
        let mut filter = Self::compiled(query);
        let streams = streams_of(stream)?;
        check(&query.filter, &details(&streams))?;
        filter.streams.extend(streams.iter().map(|stream| stream.row));
        filter.attachments = AttachmentTest::for_text(&query.text, &mut filter.reader);
        Ok(Some(filter))
    }

    /// Compiles the filter of a search of the one stream that a source has; returns `None` if it has none. Operators about
    /// attachments are not applied, because the results of other programs have none.
    ///
    /// # Errors
    ///
    /// The stream has no such field, or the field cannot be filtered in that way.
    pub fn for_stream(query: &SearchQuery, stream: &StreamDetail) -> Result<Option<Self>, SourceError> {
        if query.filter.is_empty() {
            return Ok(None);
        }
        check(&query.filter, &[stream])?;
        Ok(Some(Self::compiled(query)))
    }

    fn compiled(query: &SearchQuery) -> Self {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        Self { reader, predicate, attachments: None, streams: Vec::new() }
    }

    /// Returns the row ids of the streams that the search covers; none if the filter is about attachments alone.
    pub fn streams(&self) -> &[i64] {
        &self.streams
    }

    /// Returns the rows of all records that pass, by their columns; `None` if there are no columns, or some condition is about
    /// attachments. `open` opens the columns of fields of a stream.
    ///
    /// # Errors
    ///
    /// The columns cannot be opened.
    pub fn passing_rows<'a, Error>(
        &self,
        mut open: impl FnMut(i64, &[&str]) -> Result<Option<ColumnarStream<'a>>, Error>,
    ) -> Result<Option<PassingRows>, Error> {
        let mut passing = PassingRows::default();
        if self.attachments.is_some() || self.streams.is_empty() {
            return Ok(None);
        }
        for stream in &self.streams {
            let Some(columns) = open(*stream, &self.reader.names())? else { return Ok(None) };
            let rows = matching_rows(&columns.segments, &self.predicate, &Interrupt::default());
            match in_columns(rows) {
                Ok(Some(rows)) => passing.rows.extend(rows),
                Ok(None) => return Ok(None),
                // Nothing refuses or cancels this read.
                Err::<_, SourceError>(_never) => return Ok(None),
            }
            passing.rest.extend(columns.rest);
        }
        Ok(Some(passing))
    }

    /// Returns true if a record passes, by its JSON text.
    pub fn passes(&self, data: &str) -> bool {
        let mut values = Vec::new();
        self.reader.read(data, &mut values);
        self.predicate.passes(&values) && self.attachments.as_ref().is_none_or(|test| test.passes(&values))
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_source::FieldText;
    use serde_json::json;

    use super::*;

    #[test]
    fn records_have_attachments_and_their_names() {
        let query = |has_attachment, names: &[&str]| {
            let field = |name: &&str| FieldText { field: SearchField::Filename, text: (*name).to_owned() };
            let fields = names.iter().map(field).collect();
            let text = SearchText { has_attachment, fields, ..SearchText::plain("x") };
            RecordFilter::for_query(&SearchQuery { text, ..SearchQuery::new("", 5) }, |_| Ok(Vec::new()))
                .unwrap()
        };
        assert!(query(false, &[]).is_none());
        let mail = json!({"body": "menu", "attachments": ["Menü 2026.pdf", "photo.png"]});
        let server = json!({"hasAttachments": true, "attachments": [{"filename": "menu.pdf"}]});
        let none = json!({"body": "menu.pdf", "attachments": [], "has_attachments": false});
        for (has_attachment, names, expect) in [
            (true, vec![], [true, true, false]),
            (false, vec!["menu.pdf"], [true, true, false]),
            (true, vec!["MENU pdf 2026"], [true, false, false]),
            (false, vec!["menu", "photo"], [true, false, false]),
            // No single name has both words.
            (false, vec!["menu photo"], [false, false, false]),
        ] {
            let filter = query(has_attachment, &names).unwrap();
            let passes = [&mail, &server, &none].map(|record| filter.passes(&record.to_string()));
            assert_eq!(passes, expect, "{names:?}");
        }
    }
}

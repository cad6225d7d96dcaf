//! Index documents: the fields of the index and the searchable text of a record.

use tantivy::TantivyDocument;
use tantivy::schema::{IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};

use super::super::matching::collect_texts;
use crate::record::{RecordData, own_title};

/// Number of times that the title is indexed, which is its weight against other text.
const TITLE_WEIGHT: usize = 3;

/// Maximum number of texts of one record that are searchable.
const TEXTS_PER_RECORD: usize = 10_000;

/// Fields of the index.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::store) struct Fields {
    pub(in crate::source::store) record: tantivy::schema::Field,
    pub(in crate::source::store) connection: tantivy::schema::Field,
    pub(in crate::source::store) stream: tantivy::schema::Field,
    pub(in crate::source::store) text: tantivy::schema::Field,
}

impl Fields {
    pub(super) fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        // Without field norms: the score does not use them, and they take a byte per record.
        let rows = NumericOptions::default().set_indexed();
        let words = TextFieldIndexing::default()
            .set_tokenizer("fetchwell")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let words = TextOptions::default().set_indexing_options(words);
        let fields = Self {
            record: schema.add_u64_field("record", rows.clone().set_fast()),
            connection: schema.add_u64_field("connection", rows.clone()),
            stream: schema.add_u64_field("stream", rows),
            text: schema.add_text_field("text", words),
        };
        (schema.build(), fields)
    }
}

/// Row ids of a record, its stream and its connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::store) struct Rows {
    pub(in crate::source::store) record: i64,
    pub(in crate::source::store) stream: i64,
    pub(in crate::source::store) connection: i64,
}

/// Index entry of one record.
#[derive(Debug)]
pub(in crate::source::store) struct Entry {
    /// Row id of the record.
    pub(in crate::source::store) record: i64,
    /// Searchable fields, or `None` to remove the record.
    pub(super) document: Option<TantivyDocument>,
    /// True if the index may already contain an entry of the record.
    pub(super) replaces: bool,
}

impl Entry {
    /// Returns the entry for the current state of a record.
    pub(in crate::source::store) fn new(fields: Fields, rows: Rows, key: &str, data: &RecordData) -> Self {
        let Rows { record, stream, connection } = rows;
        let mut document = TantivyDocument::new();
        document.add_u64(fields.record, row_term(record));
        document.add_u64(fields.stream, row_term(stream));
        document.add_u64(fields.connection, row_term(connection));
        document.add_text(fields.text, key);
        if let Some(title) = own_title(data) {
            (1..TITLE_WEIGHT).for_each(|_| document.add_text(fields.text, title));
        }
        let mut texts = Vec::new();
        for value in data.values() {
            collect_texts(value, &mut texts);
            if let serde_json::Value::Number(number) = value {
                document.add_text(fields.text, number.to_string());
            }
        }
        for text in texts.into_iter().take(TEXTS_PER_RECORD) {
            document.add_text(fields.text, text);
        }
        Self { record, document: Some(document), replaces: true }
    }

    /// Marks the record as new, so that the index does not search for an earlier entry.
    pub(in crate::source::store) fn for_new_record(self) -> Self {
        Self { replaces: false, ..self }
    }

    /// Returns an entry that removes a record.
    pub(in crate::source::store) fn removal(record: i64) -> Self {
        Self { record, document: None, replaces: true }
    }
}

/// Returns the index term of a row id. Row ids are positive.
pub(in crate::source::store) fn row_term(row: i64) -> u64 {
    row.unsigned_abs()
}

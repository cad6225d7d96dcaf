//! Index documents: the fields of the index, and what of a record is searchable.

use tantivy::TantivyDocument;
use tantivy::schema::{IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};

use super::super::matching::collect_texts;
use crate::record::{RecordData, own_title};

/// A word in the title counts as often as this in the text.
const TITLE_WEIGHT: usize = 3;

/// Texts of one record that are searchable; further ones are not.
const TEXTS_PER_RECORD: usize = 10_000;

/// The fields of the index.
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
        // Without field norms: a score does not depend on them, and they take a byte of each record.
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

/// The database rows of a record, its stream and its connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::store) struct Rows {
    pub(in crate::source::store) record: i64,
    pub(in crate::source::store) stream: i64,
    pub(in crate::source::store) connection: i64,
}

/// One record's entry, ready to be written.
#[derive(Debug)]
pub(in crate::source::store) struct Entry {
    /// The row of the record.
    pub(in crate::source::store) record: i64,
    /// Its searchable fields; `None` removes it.
    pub(super) document: Option<TantivyDocument>,
    /// The index may hold an entry of it already.
    pub(super) replaces: bool,
}

impl Entry {
    /// Returns the entry of a record as it is now.
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

    /// Marks the record as new, so that the index does not look for an earlier entry.
    pub(in crate::source::store) fn of_new_record(self) -> Self {
        Self { replaces: false, ..self }
    }

    /// Returns the removal of a record.
    pub(in crate::source::store) fn removal(record: i64) -> Self {
        Self { record, document: None, replaces: true }
    }
}

/// Row ids are positive, so they are their own terms.
pub(in crate::source::store) fn row_term(row: i64) -> u64 {
    row.unsigned_abs()
}

//! Index documents: the fields of the index and the searchable text of a record.

use tantivy::TantivyDocument;
use tantivy::schema::{IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};

use crate::source::lexical::content::{RecordContent, RecordText};

/// Fields of the index.
#[derive(Debug, Clone, Copy)]
pub(in crate::source::store) struct Fields {
    pub(in crate::source::store) record: tantivy::schema::Field,
    pub(in crate::source::store) connection: tantivy::schema::Field,
    pub(in crate::source::store) stream: tantivy::schema::Field,
    /// All text of a record, the title first, with positions.
    pub(in crate::source::store) text: tantivy::schema::Field,
    /// Words of the title; `None` in an index of layout 2.
    pub(in crate::source::store) title: Option<tantivy::schema::Field>,
    /// Words of the author; `None` in an index of layout 2.
    pub(in crate::source::store) from: Option<tantivy::schema::Field>,
    columns: Option<Columns>,
}

/// Columns that an index of layout 2 does not have.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// Number of words of the title.
    title_words: tantivy::schema::Field,
    /// Second at which the record was written.
    time: tantivy::schema::Field,
    /// Hash of the text that is similar for similar texts.
    similarity: tantivy::schema::Field,
}

impl Fields {
    pub(super) fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        // Without field norms: the score does not use them, and they take a byte per record.
        let rows = NumericOptions::default().set_indexed();
        let column = NumericOptions::default().set_fast();
        let fields = Self {
            record: schema.add_u64_field("record", rows.clone().set_fast()),
            connection: schema.add_u64_field("connection", rows.clone().set_fast()),
            stream: schema.add_u64_field("stream", rows.set_fast()),
            text: schema.add_text_field("text", words(IndexRecordOption::WithFreqsAndPositions, true)),
            title: Some(schema.add_text_field("title", words(IndexRecordOption::WithFreqs, true))),
            from: Some(schema.add_text_field("from", words(IndexRecordOption::Basic, false))),
            columns: Some(Columns {
                title_words: schema.add_u64_field("title_words", column.clone()),
                time: schema.add_i64_field("time", column.clone()),
                similarity: schema.add_u64_field("similarity", column),
            }),
        };
        (schema.build(), fields)
    }

    /// Returns the schema of layout 2, which is read until an index of the current layout is complete.
    pub(super) fn previous_schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let rows = NumericOptions::default().set_indexed();
        let fields = Self {
            record: schema.add_u64_field("record", rows.clone().set_fast()),
            connection: schema.add_u64_field("connection", rows.clone()),
            stream: schema.add_u64_field("stream", rows),
            text: schema.add_text_field("text", words(IndexRecordOption::WithFreqsAndPositions, true)),
            title: None,
            from: None,
            columns: None,
        };
        (schema.build(), fields)
    }

    /// Returns true if the index has columns of streams, connections, times, title lengths and similarities.
    pub(in crate::source::store) fn has_columns(self) -> bool {
        self.columns.is_some()
    }
}

/// Returns the options of a text field.
fn words(option: IndexRecordOption, has_lengths: bool) -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer("fetchwell").set_index_option(option);
    TextOptions::default().set_indexing_options(indexing.set_fieldnorms(has_lengths))
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
    pub(in crate::source::store) fn new(fields: Fields, rows: Rows, text: &RecordText<'_>) -> Self {
        let Rows { record, stream, connection } = rows;
        let content = RecordContent::new(text);
        let mut document = TantivyDocument::new();
        document.add_u64(fields.record, row_term(record));
        document.add_u64(fields.stream, row_term(stream));
        document.add_u64(fields.connection, row_term(connection));
        content.texts.iter().for_each(|text| document.add_text(fields.text, text));
        if let (Some(field), Some(title)) = (fields.title, content.title) {
            document.add_text(field, title);
        }
        if let Some(field) = fields.from {
            content.authors.iter().for_each(|author| document.add_text(field, author));
        }
        if let Some(columns) = fields.columns {
            document.add_u64(columns.title_words, content.title_words as u64);
            document.add_u64(columns.similarity, content.similarity);
            if let Some(time) = content.time {
                document.add_i64(columns.time, time);
            }
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

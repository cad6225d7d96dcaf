//! Index documents: the fields of the index and the searchable text of a record.

use std::{iter, slice};

use fetchwell_ranking::lexical::content::{RecordContent, RecordText};
use fetchwell_ranking::relational::columns::{ColumnPlan, ColumnValue, RecordColumns};
use tantivy::schema::document::{ReferenceValue, ReferenceValueLeaf, Value};
use tantivy::schema::{
    Document, Field, IndexRecordOption, JsonObjectOptions, NumericOptions, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions,
};

/// Fields of the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) record: Field,
    pub(crate) connection: Field,
    pub(crate) stream: Field,
    /// All text of a record, the title first, with positions.
    pub(crate) text: Field,
    /// Words of the title; `None` in an index of layout 2.
    pub(crate) title: Option<Field>,
    /// Words of the author; `None` in an index of layout 2.
    pub(crate) from: Option<Field>,
    columns: Option<Columns>,
    /// Columns of the fields of records; `None` in an index of layout 4 or before.
    pub(crate) of_fields: Option<FieldColumns>,
}

/// Columns of the fields of records, by the kinds of their values: a column has values of one kind, so that they are read as they
/// were written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldColumns {
    /// Texts, whole numbers and booleans.
    values: Field,
    /// Numbers that were written as floating point numbers.
    parts: Field,
    /// Timestamps and dates.
    times: Field,
    /// Shapes of lists, objects and empty texts.
    shapes: Field,
    /// Marks of the paths whose values are read as JSON.
    pub(crate) unread: Field,
}

/// Names of the columns of fields in the schema.
pub(crate) const VALUES: &str = "values";
pub(crate) const PARTS: &str = "parts";
pub(crate) const TIMES: &str = "times";
pub(crate) const SHAPES: &str = "shapes";

/// Columns that an index of layout 2 does not have.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// Number of words of the title.
    title_words: Field,
    /// Second at which the record was written.
    time: Field,
    /// Hash of the text that is similar for similar texts.
    similarity: Field,
}

impl Fields {
    pub(super) fn schema() -> (Schema, Self) {
        let (mut schema, fields) = Self::of_words();
        let options = || JsonObjectOptions::default().set_fast("raw");
        let of_fields = FieldColumns {
            values: schema.add_json_field(VALUES, options()),
            parts: schema.add_json_field(PARTS, options()),
            times: schema.add_json_field(TIMES, options()),
            shapes: schema.add_json_field(SHAPES, options()),
            unread: schema.add_u64_field("unread", NumericOptions::default().set_indexed()),
        };
        (schema.build(), Self { of_fields: Some(of_fields), ..fields })
    }

    /// Returns the schema of layouts 3 and 4, which are read until an index of the current layout is complete.
    pub(super) fn schema_of_words() -> (Schema, Self) {
        let (schema, fields) = Self::of_words();
        (schema.build(), fields)
    }

    fn of_words() -> (SchemaBuilder, Self) {
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
            of_fields: None,
        };
        (schema, fields)
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
            of_fields: None,
        };
        (schema.build(), fields)
    }

    /// Returns true if the index has columns of the fields of records.
    pub(crate) fn has_field_columns(self) -> bool {
        self.of_fields.is_some()
    }

    /// Returns true if the index has columns of streams, connections, times, title lengths and similarities.
    pub(crate) fn has_columns(self) -> bool {
        self.columns.is_some()
    }
}

/// Returns the options of a text field.
fn words(option: IndexRecordOption, has_lengths: bool) -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer("fetchwell").set_index_option(option);
    TextOptions::default().set_indexing_options(indexing.set_fieldnorms(has_lengths))
}

/// Number of values of a document besides its texts.
const NUMBERS: usize = 10;

/// Row ids of a record, its stream and its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) record: i64,
    pub(crate) stream: i64,
    pub(crate) connection: i64,
}

/// Index entry of one record.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Row id of the record.
    pub(crate) record: i64,
    /// Searchable fields, or `None` to remove the record.
    pub(super) document: Option<IndexDocument>,
    /// True if the index may already contain an entry of the record.
    pub(super) replaces: bool,
}

impl Entry {
    /// Returns the entry for the current state of a record.
    pub(crate) fn new(fields: Fields, rows: Rows, text: &RecordText<'_>, plan: &mut ColumnPlan) -> Self {
        let Rows { record, stream, connection } = rows;
        let content = RecordContent::new(text);
        let mut document = IndexDocument::for_content(&content);
        document.add(fields.record, &IndexValue::Unsigned(row_term(record)));
        document.add(fields.connection, &IndexValue::Unsigned(row_term(connection)));
        document.add(fields.stream, &IndexValue::Unsigned(row_term(stream)));
        content.texts.iter().for_each(|text| document.add(fields.text, &IndexValue::Text(text)));
        if let (Some(field), Some(title)) = (fields.title, content.title) {
            document.add(field, &IndexValue::Text(title));
        }
        if let Some(field) = fields.from {
            content.authors.iter().for_each(|author| document.add(field, &IndexValue::Text(author)));
        }
        if let Some(columns) = fields.columns {
            document.add(columns.title_words, &IndexValue::Unsigned(content.title_words as u64));
            if let Some(time) = content.time {
                document.add(columns.time, &IndexValue::Signed(time));
            }
            document.add(columns.similarity, &IndexValue::Unsigned(content.similarity));
        }
        if let Some(of_fields) = fields.of_fields {
            document.add_columns(of_fields, plan.divide(stream, text.data));
        }
        Self { record, document: Some(document), replaces: true }
    }

    /// Marks the record as new, so that the index does not search for an earlier entry.
    pub(crate) fn for_new_record(self) -> Self {
        Self { replaces: false, ..self }
    }

    /// Returns an entry that removes a record.
    pub(crate) fn removal(record: i64) -> Self {
        Self { record, document: None, replaces: true }
    }
}

/// Values of a record for the index, in the order of their fields, with all texts in one string.
#[derive(Debug)]
pub(crate) struct IndexDocument {
    texts: String,
    values: Vec<(Field, HeldValue)>,
    /// Values of the columns of fields.
    columns: RecordColumns,
}

/// Values of the columns of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Values,
    Parts,
    Times,
    Shapes,
}

impl ColumnKind {
    /// Returns a value as the columns of this kind have it; `None` for a value of another kind.
    fn value(self, value: &ColumnValue) -> Option<IndexValue<'_>> {
        match (self, value) {
            (Self::Values, ColumnValue::Bool(value)) => Some(IndexValue::Bool(*value)),
            (Self::Values, ColumnValue::Whole(number)) | (Self::Times, ColumnValue::Time(number)) => {
                Some(IndexValue::Signed(*number))
            }
            (Self::Values, ColumnValue::Text(text)) => Some(IndexValue::Text(text)),
            (Self::Parts, ColumnValue::Part(number)) => Some(IndexValue::Float(*number)),
            _ => None,
        }
    }
}

/// Value of a document. Texts follow each other without a gap.
#[derive(Debug, Clone, Copy)]
enum HeldValue {
    Unsigned(u64),
    Signed(i64),
    /// Text of this length in bytes.
    Text(usize),
    Columns(ColumnKind),
}

/// Value of a document, as the index reads it.
#[derive(Debug, Clone)]
pub(crate) enum IndexValue<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Columns(ColumnEntries<'a>),
}

/// Values of the columns of one kind, each with the name of its column.
#[derive(Debug, Clone)]
pub(crate) struct ColumnEntries<'a> {
    kind: ColumnKind,
    columns: &'a RecordColumns,
    /// Number of values that were passed.
    passed: usize,
}

impl<'a> Iterator for ColumnEntries<'a> {
    type Item = (&'a str, IndexValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.passed;
            self.passed += 1;
            if self.kind == ColumnKind::Shapes {
                let (column, shape) = self.columns.shapes.get(at)?;
                return Some((column, IndexValue::Unsigned(shape.number())));
            }
            let (column, value) = self.columns.values.get(at)?;
            if let Some(value) = self.kind.value(value) {
                return Some((column, value));
            }
        }
    }
}

/// Iterator over the values of a document.
#[derive(Debug)]
pub(crate) struct IndexValues<'a> {
    columns: &'a RecordColumns,
    /// Texts of the values that remain.
    texts: &'a str,
    values: slice::Iter<'a, (Field, HeldValue)>,
}

impl IndexDocument {
    /// Creates an empty document with room for all values of a record.
    fn for_content(content: &RecordContent<'_>) -> Self {
        let texts = content.texts.iter().map(AsRef::as_ref);
        let texts = texts.chain(content.title).chain(content.authors.iter().copied());
        let (count, bytes) = texts.fold((0, 0), |(count, bytes), text| (count + 1, bytes + text.len()));
        let (texts, values) = (String::with_capacity(bytes), Vec::with_capacity(count + NUMBERS));
        Self { texts, values, columns: RecordColumns::default() }
    }

    /// Adds the columns of the fields of the record.
    fn add_columns(&mut self, fields: FieldColumns, columns: RecordColumns) {
        let has = |kind: ColumnKind| match kind {
            ColumnKind::Shapes => !columns.shapes.is_empty(),
            kind => columns.values.iter().any(|(_, value)| kind.value(value).is_some()),
        };
        let kinds = [
            (fields.values, ColumnKind::Values),
            (fields.parts, ColumnKind::Parts),
            (fields.times, ColumnKind::Times),
            (fields.shapes, ColumnKind::Shapes),
        ];
        let kinds = kinds.into_iter().filter(|(_, kind)| has(*kind));
        self.values.extend(kinds.map(|(field, kind)| (field, HeldValue::Columns(kind))));
        let unread = columns.unread.iter().map(|mark| (fields.unread, HeldValue::Unsigned(*mark)));
        self.values.extend(unread);
        self.columns = columns;
    }

    fn add(&mut self, field: Field, value: &IndexValue<'_>) {
        let held = match value {
            IndexValue::Unsigned(number) => HeldValue::Unsigned(*number),
            IndexValue::Signed(number) => HeldValue::Signed(*number),
            IndexValue::Text(text) => {
                self.texts.push_str(text);
                HeldValue::Text(text.len())
            }
            // Only columns have such values.
            IndexValue::Float(_) | IndexValue::Bool(_) | IndexValue::Columns(_) => return,
        };
        self.values.push((field, held));
    }
}

impl Document for IndexDocument {
    type Value<'a> = IndexValue<'a>;
    type FieldsValuesIter<'a> = IndexValues<'a>;

    fn iter_fields_and_values(&self) -> IndexValues<'_> {
        IndexValues { columns: &self.columns, texts: &self.texts, values: self.values.iter() }
    }
}

impl<'a> Iterator for IndexValues<'a> {
    type Item = (Field, IndexValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (field, held) = *self.values.next()?;
        let value = match held {
            HeldValue::Unsigned(number) => IndexValue::Unsigned(number),
            HeldValue::Signed(number) => IndexValue::Signed(number),
            HeldValue::Text(length) => {
                let (text, rest) = self.texts.split_at_checked(length).unwrap_or_default();
                self.texts = rest;
                IndexValue::Text(text)
            }
            HeldValue::Columns(kind) => {
                IndexValue::Columns(ColumnEntries { kind, columns: self.columns, passed: 0 })
            }
        };
        Some((field, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }
}

impl<'a> Value<'a> for IndexValue<'a> {
    type ArrayIter = iter::Empty<Self>;
    type ObjectIter = ColumnEntries<'a>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match self {
            Self::Unsigned(number) => ReferenceValueLeaf::U64(*number),
            Self::Signed(number) => ReferenceValueLeaf::I64(*number),
            Self::Float(number) => ReferenceValueLeaf::F64(*number),
            Self::Bool(value) => ReferenceValueLeaf::Bool(*value),
            Self::Text(text) => ReferenceValueLeaf::Str(text),
            Self::Columns(entries) => return ReferenceValue::Object(entries.clone()),
        })
    }
}

/// Returns the index term of a row id. Row ids are positive.
pub(crate) fn row_term(row: i64) -> u64 {
    row.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_has_the_values_of_a_record_in_the_order_of_their_fields() {
        let data = json!({"title": "Ünï x", "author": "Ann", "count": 7, "date": "2026-04-01"});
        let data = data.as_object().unwrap();
        let (_, fields) = Fields::schema();
        let rows = Rows { record: 3, stream: 2, connection: 1 };
        let text = RecordText { key: "k", data, emitted_at: None };
        // A field gets a column with its second record.
        let mut plan = ColumnPlan::default();
        plan.divide(rows.stream, data);
        let document = Entry::new(fields, rows, &text, &mut plan).document.unwrap();
        let values: Vec<(Field, IndexValue<'_>)> = document.iter_fields_and_values().collect();
        assert!(values.is_sorted_by_key(|(field, _)| *field));
        let texts_of = |wanted: Option<Field>| -> Vec<&str> {
            let values = values.iter().filter(|(field, _)| Some(*field) == wanted);
            values.filter_map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(texts_of(Some(fields.text)), ["Ünï x", "k", "7", "Ann", "2026-04-01"]);
        assert_eq!(texts_of(fields.title), ["Ünï x"]);
        assert_eq!(texts_of(fields.from), ["Ann"]);
        let numbers: Vec<u64> = values.iter().filter_map(|(_, value)| value.as_u64()).collect();
        assert_eq!(numbers.get(..4), Some(&[3, 1, 2, 2][..]));
        let times: Vec<i64> = values.iter().filter_map(|(_, value)| value.as_i64()).collect();
        assert_eq!(times, [1_775_001_600]);
        let columns = values.iter().filter_map(|(_, value)| value.as_object()).flatten();
        let columns: Vec<IndexValue<'_>> = columns.map(|(_, value)| value).collect();
        assert_eq!(columns.iter().filter_map(|value| value.as_str()).collect::<Vec<_>>(), ["Ünï x", "Ann"]);
        assert_eq!(columns.iter().filter_map(|value| value.as_i64()).count(), 2);
    }
}

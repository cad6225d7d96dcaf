//! The searchable content of a record: its texts in order, title, authors and time.

use std::borrow::Cow;

use fetchwell_core::record::{RecordData, author_values, authored_at, own_title, parse_time, start_of_day};

use super::field_texts::collect_texts;
use super::similarity::SimilarityHash;
use super::words::position_count;

/// Maximum number of texts of one record that name its author.
const MAX_AUTHORS: usize = 20;

/// Maximum number of texts of one record that are searchable.
const TEXTS_PER_RECORD: usize = 10_000;

/// Content of a record as far as it is indexed.
#[derive(Debug)]
pub struct RecordText<'a> {
    /// Key of the record within its stream.
    pub key: &'a str,
    /// Fields of the record.
    pub data: &'a RecordData,
    /// Time at which the connector emitted the record, which stands for a time that the record does not have.
    pub emitted_at: Option<&'a str>,
}

/// Searchable content of a record.
#[derive(Debug)]
pub struct RecordContent<'a> {
    /// Title of the record, if it has one.
    pub title: Option<&'a str>,
    /// All texts in the order in which their words are counted: the title, the key, numbers and other texts.
    pub texts: Vec<Cow<'a, str>>,
    /// Names of the authors.
    pub authors: Vec<&'a str>,
    /// Number of places that the words of the title take.
    pub title_words: usize,
    /// Hash of the texts that is similar for similar texts.
    pub similarity: u64,
    /// Second at which the record was written.
    pub time: Option<i64>,
}

impl<'a> RecordContent<'a> {
    /// Collects the texts of a record.
    pub fn new(record: &RecordText<'a>) -> Self {
        let RecordText { key, data, emitted_at } = *record;
        let title = own_title(data);
        let mut similarity = SimilarityHash::default();
        let texts = texts(key, data, title, |text| similarity.add(text));
        let mut authors = Vec::new();
        author_values(data).for_each(|value| collect_texts(value, &mut authors));
        authors.truncate(MAX_AUTHORS);
        Self {
            title,
            texts,
            authors,
            title_words: title.map_or(0, position_count),
            similarity: similarity.finish(),
            time: authored_at(data).or(emitted_at).and_then(second),
        }
    }
}

/// Returns all texts of a record in the order in which their words are counted. Passes each text of its fields to `each`.
pub(super) fn texts<'a>(
    key: &'a str,
    data: &'a RecordData,
    title: Option<&'a str>,
    mut each: impl FnMut(&'a str),
) -> Vec<Cow<'a, str>> {
    // Most fields are one text or number, so the lists need not grow.
    let mut texts: Vec<Cow<'a, str>> = Vec::with_capacity(data.len() + 2);
    texts.extend(title.map(Cow::Borrowed));
    texts.push(Cow::Borrowed(key));
    let mut values = Vec::with_capacity(data.len());
    for value in data.values() {
        collect_texts(value, &mut values);
        if let serde_json::Value::Number(number) = value {
            texts.push(Cow::Owned(number.to_string()));
        }
    }
    for text in values.into_iter().take(TEXTS_PER_RECORD) {
        each(text);
        if !title.is_some_and(|title| std::ptr::eq(title, text)) {
            texts.push(Cow::Borrowed(text));
        }
    }
    texts
}

/// Returns the second of a date or timestamp.
fn second(text: &str) -> Option<i64> {
    Some(parse_time(text).or_else(|| start_of_day(text))?.as_second())
}

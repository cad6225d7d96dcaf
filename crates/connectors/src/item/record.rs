//! A record that a reader makes of a file, and the errors of readers.

use std::fmt::Display;

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::ImportError;
use super::super::intake::{Draft, DuplicatePolicy, Intake};
use super::super::skips::Problem;
use super::Item;

/// Name of the field with the pages of which no text could be recognized, each with the reason.
pub(crate) const UNREAD_PAGES: &str = "unread_pages";

/// Field with the mean confidence in recognized words, from 0 to 100.
pub(crate) const OCR_CONFIDENCE: &str = "ocr_confidence";

/// A record of a file.
#[derive(Debug)]
pub(crate) struct FileRecord {
    pub(crate) stream: String,
    pub(crate) key: String,
    pub(crate) data: RecordData,
    pub(crate) emitted_at: Option<String>,
    /// Fields that distinguish a message from another one with the same key.
    pub(crate) identity: Option<RecordData>,
}

impl FileRecord {
    /// Creates the record of a file that has one: its key is the path, and its time that of the file.
    pub(crate) fn for_item(stream: &str, item: &Item<'_>) -> Self {
        Self {
            stream: stream.to_owned(),
            key: item.path.clone(),
            data: RecordData::new(),
            emitted_at: item.changed_at.clone(),
            identity: None,
        }
    }

    /// Returns the path of the file in the record, for reports.
    pub(crate) fn path(&self) -> &str {
        self.data.get("path").and_then(Value::as_str).unwrap_or(&self.key)
    }

    /// Sets a field, unless the text is empty.
    pub(crate) fn put_text(&mut self, field: &str, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.data.insert(field.to_owned(), Value::from(text));
        }
    }

    /// Sets a field, unless the list is empty.
    pub(crate) fn put_list<Text: Into<Value>>(&mut self, field: &str, list: Vec<Text>) {
        if !list.is_empty() {
            self.data.insert(field.to_owned(), list.into_iter().map(Into::into).collect());
        }
    }

    /// Passes the record to the store's checks. `place` names it in a rejection.
    pub(crate) fn take_into(self, place: &dyn Display, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let Self { stream, key, data, emitted_at, identity } = self;
        let bytes = text_bytes_of(&data);
        if identity.is_some() {
            intake.report_attachments(place, &data);
        }
        if let Some(pages) = data.get(UNREAD_PAGES).and_then(Value::as_array) {
            let first = pages.first().and_then(Value::as_str).unwrap_or_default();
            let count = pages.len();
            intake
                .note(&place.to_string(), &format!("text of {count} pages is not recognized, first {first}"));
        }
        let repeated = identity.map_or(DuplicatePolicy::Refused, DuplicatePolicy::KeptApart);
        let key = Some(Value::from(key));
        intake.take(place, Draft { stream: &stream, key, data: Some(data), emitted_at, bytes, repeated })
    }
}

/// Returns the bytes of all strings in the fields of a record.
pub(crate) fn text_bytes_of(data: &RecordData) -> usize {
    data.values().map(text_bytes).sum()
}

/// Returns the bytes of all strings in a value.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// The error of a reader.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The file cannot be read, for this reason. It is skipped.
    Rejected(Problem),
    /// The whole import ends.
    Ended(ImportError),
}

impl From<String> for ReadError {
    fn from(reason: String) -> Self {
        Self::Rejected(reason.into())
    }
}

impl From<&str> for ReadError {
    fn from(reason: &str) -> Self {
        Self::Rejected(reason.into())
    }
}

impl From<Problem> for ReadError {
    fn from(problem: Problem) -> Self {
        Self::Rejected(problem)
    }
}

impl From<ImportError> for ReadError {
    fn from(error: ImportError) -> Self {
        Self::Ended(error)
    }
}

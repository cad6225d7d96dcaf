//! Rows of a table that are no records of their own, as one record: the title and notes above the header, or the header of
//! a table without other rows.

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::ImportError;
use super::super::intake::Intake;
use super::super::item::FileRecord;

/// Stream of the notes of tables.
const STREAM: &str = "tables";

/// Reason for a note of a table that has only a header.
pub(crate) const NO_ROWS: &str = "it has no rows below the first one, which is a record of `tables`";

/// Rows that are no records of their own.
#[derive(Debug)]
pub(crate) struct TableNote<'a> {
    /// Key of the record, unique among the tables of an import.
    pub(crate) key: String,
    /// Name of the file or sheet.
    pub(crate) title: &'a str,
    /// Path of the file in a folder, or an empty string.
    pub(crate) path: &'a str,
    /// Name of the sheet, or an empty string.
    pub(crate) sheet: &'a str,
    /// Text of the rows.
    pub(crate) text: String,
    /// Modification time of the file, if it is known.
    pub(crate) changed_at: Option<String>,
}

impl TableNote<'_> {
    /// Returns the reason for a note of the rows above a header, which is at this place.
    pub(crate) fn above(header: &str) -> String {
        format!("its header is {header}; what stands above is a record of `{STREAM}`")
    }

    /// Passes the note to the store, and reports the reason.
    pub(crate) fn take_into(self, reason: &str, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let Self { key, title, path, sheet, text, changed_at } = self;
        intake.note(&key, reason);
        if text.is_empty() {
            return Ok(());
        }
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key,
            data: RecordData::new(),
            emitted_at: changed_at,
            identity: None,
        };
        for (field, text) in [("title", title), ("path", path), ("sheet", sheet)] {
            record.put_text(field, text);
        }
        record.data.insert("body".to_owned(), Value::from(text));
        let place = record.key.clone();
        record.take_into(&place, intake)
    }
}

/// Returns rows as a text: a line for each, with its fields that are not empty.
pub(crate) fn note_text<'a, Row: Iterator<Item = &'a str>>(rows: impl Iterator<Item = Row>) -> String {
    let line = |row: Row| row.map(str::trim).filter(|field| !field.is_empty()).collect::<Vec<_>>().join(", ");
    let lines: Vec<String> = rows.map(line).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

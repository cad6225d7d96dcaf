//! The text of an attachment: its records one after the other.
//!
//! A document is its title and its text. The rows of a table stand below the names of its columns, with tabs between the cells.
//! Any other record has a line for each field. A file in an archive stands below its path, and recognized text below its confidence.

use fetchwell_core::fit::first_bytes;
use fetchwell_core::record::{RecordData, document_text};
use serde_json::Value;

use super::super::ImportError;
use super::super::attached::shown_path;
use super::super::intake::{ATTACHMENT_PROBLEMS, RecordSink};
use super::super::item::{OCR_CONFIDENCE, UNREAD_PAGES};

/// Stream of documents.
const DOCUMENTS: &str = "documents";

/// Stream of the rows of tables.
const ROWS: &str = "rows";

/// Fields of messages with ids of messages, and with problems that the outer message has as well.
const OMITTED_FIELDS: [&str; 5] =
    ["message_id", "in_reply_to", "references", "thread_id", ATTACHMENT_PROBLEMS];

/// The text of an attachment, as far as it was read.
#[derive(Debug)]
pub(super) struct AttachmentText {
    /// Name of the attachment, with which the paths of files in it begin.
    name: String,
    text: String,
    max_bytes: usize,
    is_full: bool,
    /// Path of the file that the last record was in, within the attachment.
    entry: String,
    /// Table that the last record was a row of.
    table: Option<Table>,
    /// Files with pages of which no text was recognized.
    unread: Vec<UnreadPages>,
}

/// A file with pages of which no text was recognized.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnreadPages {
    /// Path of the file, which begins with the name of the attachment.
    pub(super) path: String,
    /// Reason with the number of the first page.
    pub(super) reason: String,
}

/// A table with rows in the text.
#[derive(Debug)]
struct Table {
    sheet: String,
    columns: Vec<String>,
}

impl AttachmentText {
    /// Creates an empty text of an attachment, which may get this many bytes.
    pub(super) fn new(name: &str, max_bytes: usize) -> Self {
        let (text, entry) = (String::new(), String::new());
        let (table, unread) = (None, Vec::new());
        Self { name: name.to_owned(), text, max_bytes, is_full: false, entry, table, unread }
    }

    /// Returns true if some text did not fit.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the text, and the files with pages that it lacks.
    pub(super) fn into_parts(self) -> (String, Vec<UnreadPages>) {
        (self.text, self.unread)
    }

    /// Notes the pages of a file of which no text was recognized.
    fn note_unread(&mut self, path: Option<&str>, data: &RecordData) {
        let pages = data.get(UNREAD_PAGES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if let Some(first) = pages.first().map(cell_text) {
            let reason = match pages.len() - 1 {
                0 => first,
                others => format!("{first}; and {others} more"),
            };
            self.unread.push(UnreadPages { path: path.unwrap_or(&self.name).to_owned(), reason });
        }
    }

    /// Appends a text after a separator, as far as there is room.
    fn push(&mut self, separator: &str, text: &str) -> Result<(), ImportError> {
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        let separator = if self.text.is_empty() { "" } else { separator };
        let room = self.max_bytes.saturating_sub(self.text.len() + separator.len());
        let piece = first_bytes(text, room);
        if !piece.is_empty() {
            self.text.push_str(separator);
            self.text.push_str(piece);
        }
        self.is_full |= piece.len() < text.len();
        if self.is_full { Err(ImportError::AttachmentBounds) } else { Ok(()) }
    }

    /// Begins the text of another file in the attachment.
    fn begin_entry(&mut self, path: &str) -> Result<(), ImportError> {
        let entry = path.strip_prefix(&self.name).map_or(path, |rest| rest.trim_start_matches('/'));
        if entry == self.entry {
            return Ok(());
        }
        entry.clone_into(&mut self.entry);
        self.table = None;
        let heading = format!("[{}]", shown_path(entry));
        self.push("\n\n", &heading)
    }

    /// Appends a row below the names of its columns.
    fn push_row(&mut self, mut data: RecordData) -> Result<(), ImportError> {
        let sheet = data.shift_remove("sheet").as_ref().map(cell_text).unwrap_or_default();
        data.shift_remove("row");
        let is_next = self.table.as_ref().is_some_and(|table| table.sheet == sheet);
        if !is_next {
            let columns: Vec<String> = data.keys().cloned().collect();
            let heading = if sheet.is_empty() { String::new() } else { format!("[{sheet}]") };
            self.push("\n\n", &heading)?;
            self.push(if sheet.is_empty() { "\n\n" } else { "\n" }, &columns.join("\t"))?;
            self.table = Some(Table { sheet, columns });
        }
        let columns = self.table.as_ref().map(|table| table.columns.as_slice()).unwrap_or_default();
        let cells = columns.iter().map(|column| data.get(column).map(cell_text).unwrap_or_default());
        let mut line = cells.collect::<Vec<_>>().join("\t");
        // Rows of a sheet may have columns that its first row does not have.
        for (column, value) in data.iter().filter(|(column, _)| !columns.contains(column)) {
            line.push_str(&format!("\t{column}: {}", cell_text(value)));
        }
        self.push("\n", line.trim_end_matches('\t'))
    }
}

impl RecordSink for AttachmentText {
    fn take(&mut self, stream: &str, mut data: RecordData) -> Result<(), ImportError> {
        let path = data.shift_remove("path");
        let path = path.as_ref().and_then(Value::as_str);
        self.note_unread(path, &data);
        path.map_or(Ok(()), |path| self.begin_entry(path))?;
        match stream {
            ROWS => self.push_row(data),
            DOCUMENTS => {
                let text = |field: &str| data.get(field).and_then(Value::as_str).unwrap_or_default().trim();
                let (title, body) = (text("title"), text("body"));
                // The title is usually the first heading, or the name of the file.
                let is_shown =
                    body.contains(title) || self.name.contains(title) || self.entry.contains(title);
                let title = if is_shown { "" } else { title };
                self.push("\n\n", title)?;
                let confidence = data.get(OCR_CONFIDENCE).filter(|_| !body.is_empty()).map(cell_text);
                let confidence =
                    confidence.map(|mean| format!("[text recognized with a confidence of {mean}]"));
                self.push("\n\n", &confidence.unwrap_or_default())?;
                self.push("\n\n", body)
            }
            _ => {
                OMITTED_FIELDS.iter().for_each(|field| drop(data.shift_remove(*field)));
                self.push("\n\n", &document_text(&data))
            }
        }
    }
}

/// Returns a value as the text of a cell, on one line.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace(['\t', '\r', '\n'], " "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(text: &mut AttachmentText, stream: &str, data: Value) -> Result<(), ImportError> {
        text.take(stream, serde_json::from_value(data).unwrap())
    }

    #[test]
    fn records_become_one_text() {
        let mut text = AttachmentText::new("a.zip", 1_000);
        for (stream, data) in [
            (
                DOCUMENTS,
                json!({"title": "menu", "path": "a.zip/menu.docx", "format": "docx", "body": "Soup\n"}),
            ),
            (DOCUMENTS, json!({"title": "Lunch", "path": "a.zip/b.pdf", "body": "Rice"})),
            (ROWS, json!({"id": 1, "note": "x\ty", "path": "a.zip/t.xlsx", "sheet": "One", "row": 2})),
            (ROWS, json!({"id": 2, "more": true, "path": "a.zip/t.xlsx", "sheet": "One", "row": 3})),
            (ROWS, json!({"n": null, "m": 3, "path": "a.zip/t.xlsx", "sheet": "Two", "row": 2})),
            ("events", json!({"title": "Walk", "path": "a.zip/c.ics", "start": "2026-04-01"})),
        ] {
            take(&mut text, stream, data).unwrap();
        }
        assert!(!text.is_full());
        assert_eq!(
            text.into_parts().0,
            "[menu.docx]\n\nSoup\n\n[b.pdf]\n\nLunch\n\nRice\n\n[t.xlsx]\n\n[One]\nid\tnote\n1\tx y\n2\t\tmore: true\n\n\
             [Two]\nn\tm\n\t3\n\n[c.ics]\n\ntitle: Walk\nstart: 2026-04-01"
        );
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let mut text = AttachmentText::new("a.pdf", 10);
        let ended = take(&mut text, DOCUMENTS, json!({"title": "a", "path": "a.pdf", "body": "öööööööö"}));
        assert!(matches!(ended, Err(ImportError::AttachmentBounds)) && text.is_full());
        assert_eq!(text.into_parts(), ("ööööö".to_owned(), vec![]));
    }

    #[test]
    fn recognized_text_has_its_confidence_and_lacks_pages() {
        let mut text = AttachmentText::new("a.zip", 1_000);
        for data in [
            json!({"title": "s", "path": "a.zip/s.png", "body": "Ferry", "ocr_confidence": 90.5}),
            json!({"title": "logo", "path": "a.zip/logo.png", "body": "", "ocr_confidence": 0.0}),
            json!({"title": "p", "path": "a.zip/p.pdf", "body": "Tide", "unread_pages": ["page 2: late", "page 3: late"]}),
        ] {
            take(&mut text, DOCUMENTS, data).unwrap();
        }
        let unread =
            UnreadPages { path: "a.zip/p.pdf".to_owned(), reason: "page 2: late; and 1 more".to_owned() };
        assert_eq!(
            text.into_parts(),
            (
                "[s.png]\n\n[text recognized with a confidence of 90.5]\n\nFerry\n\n[logo.png]\n\n[p.pdf]\n\nTide".to_owned(),
                vec![unread]
            )
        );
    }
}

//! The fields that documents of all kinds have.

use serde_json::Value;

use super::super::item::{FileKind, FileRecord, Item};
use super::super::values::time_of_value;
use super::note_name::title_of_name;
use super::title::is_title;

/// Stream of documents.
const STREAM: &str = "documents";

/// A document that was read.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Title in the properties of the document.
    pub(crate) title: String,
    /// Title in its text, which counts in place of one that a program wrote into the properties. That of a notebook also
    /// counts without a title.
    pub(crate) heading: String,
    pub(crate) authors: Vec<String>,
    pub(crate) subject: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) language: String,
    pub(crate) url: String,
    /// Time at which the document was created, as the file has it.
    pub(crate) created: String,
    /// Time at which the document was last changed, as the file has it.
    pub(crate) modified: String,
    /// Number of pages, slides or chapters with the name of the field.
    pub(crate) count: Option<(&'static str, usize)>,
    pub(crate) text: String,
}

impl Document {
    /// Returns the record: title and path first, then what is known of the document, then its text as `body`. The
    /// time is that of the document, else of the file.
    pub(crate) fn into_record(self, kind: FileKind, item: &Item<'_>) -> FileRecord {
        let mut record = FileRecord::for_item(STREAM, item);
        record.put_text("title", &self.shown_title(kind).unwrap_or_else(|| title_of_name(item.stem())));
        record.put_text("path", &item.path);
        record.put_text("format", kind.as_str());
        record.put_text("author", &self.authors.join(", "));
        record.put_text("subject", &self.subject);
        record.put_list("keywords", self.keywords);
        record.put_text("language", &self.language);
        record.put_text("url", &self.url);
        let [created, modified] =
            [self.created, self.modified].map(|time| time_of_value(&Value::from(time)).unwrap_or_default());
        record.put_text("created_at", &created);
        record.put_text("modified_at", &modified);
        let own = [created, modified].into_iter().find(|time| !time.is_empty());
        record.emitted_at = own.or(record.emitted_at);
        if let Some((field, count)) = self.count {
            record.data.insert(field.to_owned(), Value::from(count));
        }
        record.data.insert("body".to_owned(), Value::from(self.text));
        record
    }

    /// Returns the title in the properties, or that in the text if a program filled the properties. `None` without either:
    /// the name of the file says more than the largest text of a page.
    fn shown_title(&self, kind: FileKind) -> Option<String> {
        let (own, heading) = (one_line(&self.title), one_line(&self.heading));
        // Authors of books and pages choose their titles; that of code is the name of its file.
        let is_chosen = matches!(kind, FileKind::Code | FileKind::Epub | FileKind::Html);
        // The heading of a notebook is marked as one.
        let is_marked = kind == FileKind::Notebook;
        match own.as_str() {
            "" if !is_marked => None,
            title if is_title(title) || is_chosen && !title.is_empty() => Some(own),
            _ => Some(heading).filter(|heading| is_title(heading)),
        }
    }
}

/// Returns a title without line breaks and repeated spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_take_the_place_of_false_titles() {
        for (kind, title, heading, expect) in [
            (FileKind::Pdf, "Annual report", "The river", Some("Annual report")),
            (FileKind::Pdf, "Untitled", "The  river", Some("The river")),
            (FileKind::Pdf, "Untitled", "", None),
            (FileKind::Pdf, " ", "The river", None),
            (FileKind::Notebook, "", "The river", Some("The river")),
            (FileKind::Notebook, "Untitled", "The river", Some("The river")),
            (FileKind::Notebook, "", "Untitled", None),
            (FileKind::Html, "Untitled", "", Some("Untitled")),
        ] {
            let (title, heading) = (title.to_owned(), heading.to_owned());
            let document = Document { title, heading, ..Document::default() };
            assert_eq!(document.shown_title(kind).as_deref(), expect);
        }
    }
}

//! The files of a project of documents: each becomes a document with its text as it is, and keeps its id.
//!
//! A document keeps its id as long as its path stays. A file at a new path gets the id of a document with equal text
//! and a missing file, so that a renamed file is the same document.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{
    Category, DOCUMENTS_STREAM, KnownDocument, NewDocument, Uuid, bounded_title, content_hash,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::attached::NoAttachments;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::super::text_input::decode;
use super::record::read_record;
use super::selection::FileSelection;

/// Origin of the categories of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CategoryFrom {
    /// Nothing: every document is `general`.
    #[default]
    General,
    /// The first folder of the path.
    Folder,
    /// The field `category` of the front matter.
    FrontMatter,
}

/// The error for a text that is no origin of categories.
#[derive(Debug, thiserror::Error)]
#[error("categories come from `folder` or `front-matter`, or all are `general`")]
pub struct InvalidCategoryFrom;

impl CategoryFrom {
    /// Returns the name of the origin in a command.
    fn as_str(self) -> &'static str {
        match self {
            Self::General => Category::GENERAL,
            Self::Folder => "folder",
            Self::FrontMatter => "front-matter",
        }
    }
}

impl fmt::Display for CategoryFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CategoryFrom {
    type Err = InvalidCategoryFrom;

    fn from_str(text: &str) -> Result<Self, InvalidCategoryFrom> {
        let mut known = [Self::General, Self::Folder, Self::FrontMatter].into_iter();
        known.find(|known| known.as_str() == text).ok_or(InvalidCategoryFrom)
    }
}

/// The ids of the documents of a project.
#[derive(Debug, Default)]
pub(crate) struct DocumentIds {
    by_path: HashMap<String, Uuid>,
    /// Ids of documents without their file, by the hash of their text.
    vacant: HashMap<String, VecDeque<Uuid>>,
}

impl DocumentIds {
    /// Takes the ids of documents. `is_present` tells whether the file at a path exists.
    pub(crate) fn new(known: Vec<KnownDocument>, is_present: impl Fn(&str) -> bool) -> Self {
        let mut ids = Self::default();
        for KnownDocument { id, path, content_hash } in known {
            if is_present(&path) {
                ids.by_path.insert(path, id);
            } else {
                ids.vacant.entry(content_hash).or_default().push_back(id);
            }
        }
        ids
    }

    /// Returns the id of the document at a path: its own, that of a missing one with equal text, or a new one.
    fn assign(&mut self, path: &str, hash: &str) -> Result<Uuid, String> {
        if let Some(id) = self.by_path.get(path) {
            return Ok(*id);
        }
        let id = match self.vacant.get_mut(hash).and_then(VecDeque::pop_front) {
            Some(id) => id,
            None => Uuid::random().map_err(|error| format!("the system has no random bytes ({error})"))?,
        };
        self.by_path.insert(path.to_owned(), id);
        Ok(id)
    }
}

/// Reader of the documents of a project.
#[derive(Debug)]
pub(crate) struct DocumentReader {
    ids: DocumentIds,
    category_from: CategoryFrom,
    /// Paths of the documents with a title that was truncated.
    truncated_titles: BTreeSet<String>,
}

impl DocumentReader {
    pub(crate) fn new(ids: DocumentIds, category_from: CategoryFrom) -> Self {
        Self { ids, category_from, truncated_titles: BTreeSet::new() }
    }

    /// Returns a warning about the titles that were truncated, if there are any.
    pub(crate) fn warning(&self) -> Option<String> {
        let first = self.truncated_titles.first()?;
        Some(match self.truncated_titles.len() - 1 {
            0 => format!("the title of `{first}` is longer than 500 characters and was truncated"),
            others => format!(
                "the titles of `{first}` and {others} more documents are longer than 500 characters and were truncated"
            ),
        })
    }

    /// Reads a file as the record of a document. Plain text and Markdown are kept as they are; of other kinds the text is
    /// extracted.
    pub(super) fn read(
        &mut self,
        kind: FileKind,
        item: &mut Item<'_>,
        selection: &FileSelection,
    ) -> Result<FileRecord, Problem> {
        let (mut record, text) = match kind {
            FileKind::Text | FileKind::Markdown => {
                let bytes = item.read_all()?;
                let reader = Box::new(bytes.as_slice());
                let mut copy = Item::from_reader(item.path.clone(), item.changed_at.clone(), reader)
                    .map_err(|error| error.to_string())?;
                let record = read_one(kind, &mut copy, selection)?;
                drop(copy);
                (record, original_text(bytes)?)
            }
            _ => {
                let mut record = read_one(kind, item, selection)?;
                let text =
                    record.data.shift_remove("body").as_ref().and_then(Value::as_str).map(str::to_owned);
                (record, text.unwrap_or_default())
            }
        };
        let id = self.ids.assign(&item.path, &content_hash(&text))?;
        let data = std::mem::take(&mut record.data);
        record.data = self.document(&item.path, data, text)?.into_record();
        (record.stream, record.key) = (DOCUMENTS_STREAM.to_owned(), id.to_string());
        Ok(record)
    }

    /// Returns the document of a file with the fields that its reader found.
    fn document(&mut self, path: &str, mut fields: RecordData, text: String) -> Result<NewDocument, String> {
        let title = fields.shift_remove("title").as_ref().and_then(Value::as_str).map(str::to_owned);
        if title.as_deref().map(str::trim).is_some_and(|title| bounded_title(title) != title) {
            self.truncated_titles.insert(path.to_owned());
        }
        for field in ["path", "body"] {
            fields.shift_remove(field);
        }
        let category = match self.category_from {
            CategoryFrom::General => None,
            CategoryFrom::Folder => path.split_once('/').and_then(|(folder, _)| Category::known(folder)),
            CategoryFrom::FrontMatter => {
                fields.shift_remove("category").as_ref().and_then(Value::as_str).and_then(Category::known)
            }
        };
        Ok(NewDocument {
            path: path.parse().map_err(|_long| "its path is longer than 1,000 characters".to_owned())?,
            title,
            category: category.unwrap_or_else(Category::general),
            metadata: fields,
            text,
        })
    }
}

fn read_one(kind: FileKind, item: &mut Item<'_>, selection: &FileSelection) -> Result<FileRecord, Problem> {
    // Messages are no documents of a project.
    let read = read_record(kind, item, selection, &NoAttachments);
    read.unwrap_or_else(|| Err("it has more than one record".into()))
}

/// Returns the text of a file with its byte order mark and its line ends. Text that is not UTF-8 is decoded.
fn original_text(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).or_else(|error| decode(error.into_bytes()).ok_or(()));
    let text = text.map_err(|()| "it is not text".to_owned())?;
    if text.contains('\0') { Err("it has the character U+0000".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reader(category_from: CategoryFrom) -> DocumentReader {
        DocumentReader::new(DocumentIds::default(), category_from)
    }

    fn read(reader: &mut DocumentReader, path: &str, bytes: &[u8]) -> Result<FileRecord, Problem> {
        let mut item = Item::from_reader(path.to_owned(), None, Box::new(bytes)).unwrap();
        let kind = if path.ends_with(".md") { FileKind::Markdown } else { FileKind::Text };
        reader.read(kind, &mut item, &FileSelection::default())
    }

    #[test]
    fn the_text_of_a_document_is_its_file() {
        let text = "\u{FEFF}---\r\ntitle: T\r\ntags: [a]\r\n---\r\n# H\r\n";
        let record = read(&mut reader(CategoryFrom::General), "a/b.md", text.as_bytes()).unwrap();
        assert_eq!(
            Value::Object(record.data),
            json!({"title": "T", "path": "a/b.md", "category": "general", "tags": ["a"], "text": text})
        );
        assert_eq!(record.stream, "documents");
        assert!(record.key.parse::<Uuid>().is_ok());
        let latin = read(&mut reader(CategoryFrom::General), "a.txt", b"Ren\xE9").unwrap();
        assert_eq!(latin.data.get("text"), Some(&json!("René")));
        assert!(
            read(&mut reader(CategoryFrom::General), "a.md", b"a\0b").unwrap_err().text.contains("U+0000")
        );
        let long = format!("{}.md", "x".repeat(1_000));
        assert!(
            read(&mut reader(CategoryFrom::General), &long, b"a")
                .unwrap_err()
                .text
                .contains("1,000 characters")
        );
    }

    #[test]
    fn categories_come_from_folders_or_front_matter() {
        let category = |from, path: &str, text: &str| {
            let record = read(&mut reader(from), path, text.as_bytes()).unwrap();
            record.data.get("category").and_then(Value::as_str).unwrap().to_owned()
        };
        let matter = "---\ncategory: Process\n---\nx";
        assert_eq!(category(CategoryFrom::General, "research/a.md", matter), "general");
        assert_eq!(category(CategoryFrom::Folder, "research/a/b.md", matter), "research");
        assert_eq!(category(CategoryFrom::Folder, "research.md", matter), "general");
        assert_eq!(category(CategoryFrom::Folder, "other/a.md", matter), "general");
        assert_eq!(category(CategoryFrom::FrontMatter, "research/a.md", matter), "process");
        assert_eq!(category(CategoryFrom::FrontMatter, "a.md", "---\ncategory: x\n---\n"), "general");
    }

    #[test]
    fn a_path_keeps_its_id_before_equal_text_gets_one() {
        let known = |path: &str, hash: &str| KnownDocument {
            id: Uuid::random().unwrap(),
            path: path.to_owned(),
            content_hash: hash.to_owned(),
        };
        let documents = [known("a", "1"), known("b", "1"), known("c", "2")];
        let [a, b, c] = documents.clone().map(|document| document.id);
        let mut ids = DocumentIds::new(documents.to_vec(), |path| path == "a");
        assert_eq!(ids.assign("d", "1"), Ok(b), "a missing document with equal text");
        assert_eq!(ids.assign("a", "2"), Ok(a), "the same path, whatever its text");
        assert_eq!(ids.assign("e", "2"), Ok(c));
        let new = ids.assign("f", "1").unwrap();
        assert!(![a, b, c].contains(&new), "an id is used once");
        assert_eq!(ids.assign("f", "9"), Ok(new), "the same file gets the same id");
    }
}

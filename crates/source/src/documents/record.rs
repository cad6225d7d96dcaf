//! A document as a record: the fields of both, and their conversion.

use std::collections::HashMap;

use fetchwell_core::record::RecordData;
use jiff::Timestamp;
use serde_json::Value;

use super::category::Category;
use super::document::{
    DOCUMENTS_STREAM, DocumentChange, DocumentPath, NewDocument, TEXT_FIELD, bounded_title,
};
use super::uuid::Uuid;
use crate::contract::{Change, IncomingRecord};

/// Fields of a document's record that have columns of their own.
const COLUMNS: [&str; 4] = ["title", "path", "category", TEXT_FIELD];

/// Columns of a document that are no fields of its record. A field of such a name would look like the column.
const RESERVED: [&str; 3] = ["id", "project_id", "content_hash"];

/// Prefix of other fields with the name of a column.
const PREFIX: &str = "front_matter_";

impl NewDocument {
    /// Returns the fields of the document's record: title, path and category first, the text last. Other fields with the
    /// name of a column, in any case, get the prefix `front_matter_`.
    #[must_use]
    pub fn into_record(self) -> RecordData {
        let Self { path, title, category, metadata, text } = self;
        let mut data = RecordData::new();
        let title = title.as_deref().map(|title| bounded_title(title.trim()));
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            data.insert("title".to_owned(), title.into());
        }
        data.insert("path".to_owned(), path.as_str().into());
        data.insert("category".to_owned(), category.as_str().into());
        let (taken, free): (Vec<_>, Vec<_>) = metadata.into_iter().partition(|(name, _)| is_column(name));
        data.extend(free);
        for (name, value) in taken {
            let mut name = format!("{PREFIX}{name}");
            while data.contains_key(&name) {
                name.insert_str(0, PREFIX);
            }
            data.insert(name, value);
        }
        data.insert(TEXT_FIELD.to_owned(), text.into());
        data
    }

    /// Returns true if a record has the fields of a document.
    #[must_use]
    pub fn is_record(data: &RecordData) -> bool {
        let text_of = |name: &str| data.get(name).and_then(Value::as_str);
        text_of(TEXT_FIELD).is_some()
            && text_of("path").is_some_and(|path| path.parse::<DocumentPath>().is_ok())
    }

    /// Returns the document of a record, or `None` for a record that is none.
    #[must_use]
    pub fn from_record(data: &RecordData) -> Option<Self> {
        let text_of = |name: &str| data.get(name).and_then(Value::as_str);
        let others = data.iter().filter(|(name, _)| !COLUMNS.contains(&name.as_str()));
        Some(Self {
            path: text_of("path")?.parse().ok()?,
            title: text_of("title").map(|title| bounded_title(title).to_owned()),
            category: text_of("category")
                .and_then(|category| category.parse().ok())
                .unwrap_or_else(Category::general),
            metadata: others.map(|(name, value)| (name.clone(), value.clone())).collect(),
            text: text_of(TEXT_FIELD)?.to_owned(),
        })
    }
}

/// Returns the records of changes of documents. A document keeps the id that the project has at its path in `ids`.
///
/// # Errors
///
/// `new_id` failed. A new document for which it returns `None` is left out.
pub fn incoming_documents<Failed>(
    changes: Vec<DocumentChange>,
    mut ids: HashMap<String, String>,
    new_id: impl Fn() -> Result<Option<Uuid>, Failed>,
) -> Result<Vec<IncomingRecord>, Failed> {
    let now = Some(format!("{:.3}", Timestamp::now()));
    let mut incoming = Vec::with_capacity(changes.len());
    for change in changes {
        let path = change.path().to_string();
        let known = ids.remove(&path);
        let (id, change) = match change {
            DocumentChange::Put(new) => {
                let id = match known {
                    Some(id) => Some(id),
                    None => new_id()?.map(|id| id.to_string()),
                };
                let Some(id) = id else { continue };
                ids.insert(path, id.clone());
                (id, Change::Put { data: new.into_record(), emitted_at: now.clone() })
            }
            DocumentChange::Delete(_) => match known {
                Some(id) => (id, Change::Delete { deleted_at: now.clone() }),
                None => continue,
            },
        };
        if let (Ok(stream), Ok(key)) = (DOCUMENTS_STREAM.parse(), id.parse()) {
            incoming.push(IncomingRecord { stream, key, change });
        }
    }
    Ok(incoming)
}

/// Returns true if a field has the name of a column. Names that differ in case are one column to SQL.
fn is_column(name: &str) -> bool {
    COLUMNS.iter().chain(&RESERVED).any(|column| column.eq_ignore_ascii_case(name))
}

/// Returns true for a document of a project, or its deletion.
pub(crate) fn is_document(incoming: &IncomingRecord) -> bool {
    let is_put = match &incoming.change {
        Change::Put { data, .. } => NewDocument::is_record(data),
        Change::Delete { .. } => true,
    };
    is_put && incoming.stream.as_str() == DOCUMENTS_STREAM && incoming.key.as_str().parse::<Uuid>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_and_its_record_are_converted() {
        let metadata = json!({"tags": ["a"], "path": "other"}).as_object().unwrap().clone();
        let document = NewDocument {
            path: "a/b.md".parse().unwrap(),
            title: Some(" Title ".to_owned()),
            category: Category::known("research").unwrap(),
            metadata,
            text: "\u{FEFF}# Title\r\n".to_owned(),
        };
        let record = document.into_record();
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            json!({"title": "Title", "path": "a/b.md", "category": "research", "tags": ["a"],
                "front_matter_path": "other", "text": "\u{FEFF}# Title\r\n"})
            .to_string()
        );
        let read = NewDocument::from_record(&record).unwrap();
        assert_eq!((read.path.as_str(), read.title.as_deref()), ("a/b.md", Some("Title")));
        assert_eq!(read.text, "\u{FEFF}# Title\r\n");
        assert_eq!(read.metadata.keys().collect::<Vec<_>>(), ["tags", "front_matter_path"]);
        assert!(NewDocument::is_record(&record) && !NewDocument::is_record(&RecordData::new()));
        assert_eq!(NewDocument::from_record(&RecordData::new()), None);
    }

    #[test]
    fn no_field_has_the_name_of_a_column() {
        let metadata = json!({"id": 7, "Project_ID": "p", "content_hash": "h", "title": "t", "path": "p", "category": "c",
            "text": "x", "front_matter_id": 8, "identity": 9});
        let document = NewDocument {
            path: "a.md".parse().unwrap(),
            title: None,
            category: Category::general(),
            metadata: metadata.as_object().unwrap().clone(),
            text: "text".to_owned(),
        };
        let expect = json!({"path": "a.md", "category": "general", "front_matter_id": 8, "identity": 9,
            "front_matter_front_matter_id": 7, "front_matter_Project_ID": "p", "front_matter_content_hash": "h",
            "front_matter_title": "t", "front_matter_path": "p", "front_matter_category": "c", "front_matter_text": "x",
            "text": "text"});
        let record = document.into_record();
        assert_eq!(Value::Object(record.clone()), expect);
        let again = NewDocument::from_record(&record).unwrap().into_record();
        assert_eq!(again, record);
    }
}

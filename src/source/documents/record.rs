//! A document as a record: the fields of both, and their conversion.

use serde_json::Value;

use super::category::Category;
use super::document::{NewDocument, TEXT_FIELD, bounded_title};
use crate::record::RecordData;

/// Fields of a document's record that have columns of their own.
const COLUMNS: [&str; 4] = ["title", "path", "category", TEXT_FIELD];

impl NewDocument {
    /// Returns the fields of the document's record: title, path and category first, the text last. Other fields with one of
    /// these names get the prefix `front_matter_`.
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
        for (name, value) in metadata {
            let is_taken = COLUMNS.contains(&name.as_str());
            data.insert(if is_taken { format!("front_matter_{name}") } else { name }, value);
        }
        data.insert(TEXT_FIELD.to_owned(), text.into());
        data
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
        assert_eq!(NewDocument::from_record(&RecordData::new()), None);
    }
}

//! Documents of a project, and their chunks.

use std::fmt;
use std::str::FromStr;

use fetchwell_core::fit::first_characters;
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::category::Category;
use super::uuid::Uuid;

/// Maximum length of a path in characters.
const MAX_PATH_CHARS: usize = 1_000;

/// Maximum length of a title in characters.
const MAX_TITLE_CHARS: usize = 500;

/// Stream of the documents of a project.
pub const DOCUMENTS_STREAM: &str = "documents";

/// Field of a document's record that has its text.
pub const TEXT_FIELD: &str = "text";

/// Path of a document in its project, with `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentPath(Box<str>);

/// The error for a text that cannot be the path of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path of a document has 1 to 1,000 characters, and no U+0000")]
pub struct InvalidDocumentPath;

impl DocumentPath {
    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DocumentPath {
    type Err = InvalidDocumentPath;

    fn from_str(text: &str) -> Result<Self, InvalidDocumentPath> {
        let length = text.chars().count();
        let is_valid = (1..=MAX_PATH_CHARS).contains(&length) && !text.contains('\0');
        if is_valid { Ok(Self(text.into())) } else { Err(InvalidDocumentPath) }
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for DocumentPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A document as a store has it, without its text. Its JSON is the `Document` of the contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Id of the document, which is also the key of its record.
    pub id: Uuid,
    /// Id of its project.
    pub project_id: Uuid,
    /// Path in the project.
    pub path: DocumentPath,
    /// Title, if it has one.
    pub title: Option<String>,
    /// SHA-256 of its text in hexadecimal digits.
    pub content_hash: String,
    /// Category of the document.
    pub category: Category,
    /// Other fields, such as those of a front matter.
    pub metadata: RecordData,
    /// Time of creation in RFC 3339.
    pub created_at: String,
    /// Time of the last change in RFC 3339.
    pub updated_at: String,
}

/// A document to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Path in the project. A document with this path is replaced and keeps its id.
    pub path: DocumentPath,
    /// Title; a longer one than 500 characters is truncated.
    pub title: Option<String>,
    /// Category of the document.
    pub category: Category,
    /// Other fields of the record.
    pub metadata: RecordData,
    /// Whole text, as `get_document` returns it.
    pub text: String,
}

/// A change of the documents of a project.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentChange {
    /// Insert or replace a document.
    Put(NewDocument),
    /// Delete the document at a path, if there is one.
    Delete(DocumentPath),
}

impl DocumentChange {
    /// Returns the path of the document.
    #[must_use]
    pub fn path(&self) -> &DocumentPath {
        match self {
            Self::Put(new) => &new.path,
            Self::Delete(path) => path,
        }
    }
}

/// A part of a document. The chunks of a document, in their order, are its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentChunk {
    /// Id of the chunk.
    pub id: Uuid,
    /// Id of its document.
    pub document_id: Uuid,
    /// Id of its project.
    pub project_id: Uuid,
    /// Text of the chunk.
    pub content: String,
    /// Number of the chunk in its document, from 0.
    pub chunk_index: u32,
    /// Number of o200k tokens.
    pub token_count: u32,
    /// Position and headings of the chunk.
    pub metadata: ChunkMetadata,
}

/// Position and headings of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct ChunkMetadata {
    /// First code point in the document.
    pub start: usize,
    /// End in the document, in code points.
    pub end: usize,
    /// Headings above the text, such as `Install > Linux`; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heading_path: String,
}

/// Number of documents of a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryCount {
    /// Category of the documents.
    pub category: Category,
    /// Number of its documents.
    pub documents: u64,
}

/// Returns the SHA-256 of a text in hexadecimal digits.
#[must_use]
pub fn content_hash(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

/// Returns a title within the limit of the contract.
#[must_use]
pub fn bounded_title(title: &str) -> &str {
    first_characters(title, MAX_TITLE_CHARS)
}

/// A document that a synchronization compares with the files of its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDocument {
    /// Id of the document.
    pub id: Uuid,
    /// Path in the project.
    pub path: String,
    /// SHA-256 of its text.
    pub content_hash: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_bounded_in_characters() {
        assert!("é".repeat(1_000).parse::<DocumentPath>().is_ok());
        for bad in ["", "a\0", &"é".repeat(1_001)] {
            assert_eq!(bad.parse::<DocumentPath>(), Err(InvalidDocumentPath));
        }
    }

    #[test]
    fn titles_end_at_a_character() {
        assert_eq!(bounded_title("short"), "short");
        let family = "👨‍👩‍👧";
        let title = format!("{}{family}", "x".repeat(498));
        assert_eq!(bounded_title(&title), "x".repeat(498));
        assert_eq!(bounded_title(&"é".repeat(501)), "é".repeat(500));
    }

    #[test]
    fn the_hash_of_a_text_is_known() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(content_hash(""), empty);
    }
}

//! Projects: the roots of documents, each a connection of its store.

use serde::Serialize;

use super::slug::ProjectSlug;
use super::uuid::Uuid;
use crate::record::RecordData;

/// Maximum length of the name of a project in characters.
const MAX_NAME_CHARS: usize = 255;

/// A project as a store has it. Its JSON is the `Project` of the contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Project {
    /// Id of the project.
    pub id: Uuid,
    /// Slug of the project.
    pub slug: ProjectSlug,
    /// Name for people.
    pub name: String,
    /// Settings of the project.
    pub settings: RecordData,
    /// Version of the documents and of everything else that changes answers.
    pub corpus_version: i64,
    /// Time of creation in RFC 3339.
    pub created_at: String,
    /// Time of the last change in RFC 3339.
    pub updated_at: String,
}

/// A project to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProject {
    /// Slug of the project.
    pub slug: ProjectSlug,
    /// Name for people.
    pub name: ProjectName,
    /// Settings of the project.
    pub settings: RecordData,
}

/// Name of a project for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectName(String);

/// The error for a text that cannot be the name of a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a project has 1 to 255 characters, none of which is a control character")]
pub struct InvalidProjectName;

impl ProjectName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&ProjectSlug> for ProjectName {
    fn from(slug: &ProjectSlug) -> Self {
        Self(slug.to_string())
    }
}

impl std::str::FromStr for ProjectName {
    type Err = InvalidProjectName;

    fn from_str(text: &str) -> Result<Self, InvalidProjectName> {
        let length = text.chars().count();
        let is_valid = (1..=MAX_NAME_CHARS).contains(&length) && !text.contains(char::is_control);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidProjectName) }
    }
}

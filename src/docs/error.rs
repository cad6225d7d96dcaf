//! Errors of requests for documents.

use crate::source::SourceError;

/// Maximum number of projects that an error lists.
const MAX_LISTED: usize = 12;

/// Reason why a request for documents has no answer.
#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    /// There is no such project, or the caller may not read it.
    #[error("there is no project `{named}`")]
    ProjectNotFound {
        /// Project as the request names it.
        named: String,
        /// Slugs of the projects that the caller may read.
        known: Vec<String>,
    },
    /// The project has no such document.
    #[error("project `{project}` has no document `{named}`")]
    DocumentNotFound {
        /// Slug of the project.
        project: String,
        /// Document as the request names it.
        named: String,
    },
    /// The query is empty or too long.
    #[error("{0}")]
    InvalidQuery(&'static str),
    /// The store cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl DocsError {
    /// Returns the code of the contract.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProjectNotFound { .. } => "PROJECT_NOT_FOUND",
            Self::DocumentNotFound { .. } => "DOCUMENT_NOT_FOUND",
            Self::InvalidQuery(_) => "INVALID_QUERY",
            Self::Source(_) => "SOURCE_UNAVAILABLE",
        }
    }

    /// Returns the projects to choose from as text, or `None` for another error.
    #[must_use]
    pub fn choices(&self) -> Option<String> {
        let Self::ProjectNotFound { known, .. } = self else { return None };
        let shown: Vec<String> = known.iter().take(MAX_LISTED).map(|slug| format!("`{slug}`")).collect();
        Some(match known.len().saturating_sub(shown.len()) {
            _ if shown.is_empty() => "there are no projects".to_owned(),
            0 => format!("the projects are {}", shown.join(", ")),
            more => format!("the projects are {} and {more} more", shown.join(", ")),
        })
    }
}

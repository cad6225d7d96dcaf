//! Errors of requests for documents.

use fetchwell_source::{ConnectionChoice, SourceError};

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
        /// Projects that the caller may read, as requests name them.
        known: Vec<String>,
    },
    /// Several sources have the project.
    #[error("`{named}` is in more than one source")]
    AmbiguousProject {
        /// Project or document as the request names it.
        named: String,
        /// `SLUG@SOURCE` of each source that has it.
        choices: Vec<ConnectionChoice>,
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
    /// Returns the projects to choose from as text, or `None` for an error without any.
    #[must_use]
    pub fn choices(&self) -> Option<String> {
        let known: Vec<&str> = match self {
            Self::ProjectNotFound { known, .. } => known.iter().map(String::as_str).collect(),
            Self::AmbiguousProject { choices, .. } => {
                choices.iter().map(|choice| choice.connection_id.as_str()).collect()
            }
            Self::DocumentNotFound { .. } | Self::InvalidQuery(_) | Self::Source(_) => return None,
        };
        let shown: Vec<String> = known.iter().take(MAX_LISTED).map(|slug| format!("`{slug}`")).collect();
        Some(match known.len().saturating_sub(shown.len()) {
            _ if shown.is_empty() => "there are no projects".to_owned(),
            0 => format!("the projects are {}", shown.join(", ")),
            more => format!("the projects are {} and {more} more", shown.join(", ")),
        })
    }
}

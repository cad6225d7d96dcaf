//! Projects of documents as resources.

use tokio::time::timeout;

use super::answer::Payload;
use super::error::{SourceHints, ToolError};
use super::list_categories::categories;
use super::projects::find_project;
use super::toolbox::Toolbox;

/// A resource of a project of documents, which is named by its slug or id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectResource {
    /// The project as `GET /api/v1/projects/{id}` has it.
    Info(String),
    /// The answer of `list_categories`.
    Categories(String),
}

impl ProjectResource {
    /// Returns the name under which reads are recorded.
    #[must_use]
    pub fn endpoint(&self) -> &'static str {
        match self {
            Self::Info(_) => "project",
            Self::Categories(_) => "list_categories",
        }
    }
}

impl Toolbox {
    /// Reads a resource of a project.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn project_resource(&self, resource: &ProjectResource) -> Result<Payload, ToolError> {
        let read = async {
            match resource {
                ProjectResource::Info(project) => {
                    let found = find_project(self, Some(project)).await?;
                    Payload::within(&found.project, self.budget("list_categories"))
                }
                ProjectResource::Categories(project) => categories(self, project, Vec::new()).await,
            }
        };
        let answer = timeout(self.call_deadline(), read).await;
        let answer = answer.unwrap_or_else(|_elapsed| Err(self.deadline_exceeded()));
        answer.map_err(|error| error.with_hints(SourceHints::DOCS))
    }
}

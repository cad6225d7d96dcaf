//! The project and the handles of a call of the profile `docs`, and projects as resources.

use tokio::time::timeout;

use super::answer::Payload;
use super::error::{SourceHints, ToolError};
use super::toolbox::Toolbox;
use crate::docs::{FoundProject, ReadableProjects};
use crate::handle::RecordAddress;
use crate::source::documents::{DOCUMENTS_STREAM, Uuid};

/// Project of a call without `project_id`.
pub(super) const DEFAULT_PROJECT: &str = "default";

/// Returns the projects that the caller may read.
pub(super) async fn readable_projects(toolbox: &Toolbox) -> Result<ReadableProjects, ToolError> {
    let source = toolbox.source();
    let projects = ReadableProjects::in_source(source).await;
    projects.map_err(|error| ToolError::from_source(source, error))
}

/// Returns the project that a call names.
pub(super) async fn find_project(toolbox: &Toolbox, named: Option<&str>) -> Result<FoundProject, ToolError> {
    let found = readable_projects(toolbox).await?.find(named.unwrap_or(DEFAULT_PROJECT)).await;
    found.map_err(|error| ToolError::from_docs(toolbox.source(), error))
}

impl Toolbox {
    /// Returns a project as `GET /api/v1/projects/{id}` has it.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn project_info(&self, named: &str) -> Result<Payload, ToolError> {
        let found = timeout(self.call_deadline(), find_project(self, Some(named))).await;
        let found = found.unwrap_or_else(|_elapsed| Err(self.deadline_exceeded()));
        let found = found.map_err(|error| error.with_hints(SourceHints::DOCS))?;
        Payload::within(&found.project, self.budget("list_categories"))
    }
}

/// Returns the address of the record of a document.
pub(super) fn document_address(found: &FoundProject, document: Uuid) -> Option<RecordAddress> {
    Some(RecordAddress {
        connection: Some(found.connection.clone()),
        stream: DOCUMENTS_STREAM.parse().ok()?,
        record: document.to_string().parse().ok()?,
    })
}

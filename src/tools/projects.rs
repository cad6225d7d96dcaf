//! The project and the handles of a call of the profile `docs`.

use super::error::ToolError;
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

/// Returns the address of the record of a document.
pub(super) fn document_address(found: &FoundProject, document: Uuid) -> Option<RecordAddress> {
    Some(RecordAddress {
        connection: Some(found.connection.clone()),
        stream: DOCUMENTS_STREAM.parse().ok()?,
        record: document.to_string().parse().ok()?,
    })
}

//! The project and the handles of a call of the profile `docs`.

use fetchwell_core::handle::RecordAddress;
use fetchwell_source::documents::{DOCUMENTS_STREAM, Uuid};

use super::error::ToolError;
use super::toolbox::Toolbox;
use crate::documents::{FoundProject, ReadableProjects};

/// Project of a call without `project_id`.
pub(crate) const DEFAULT_PROJECT: &str = "default";

/// Returns the projects that the caller may read.
pub(crate) async fn readable_projects(toolbox: &Toolbox) -> Result<ReadableProjects, ToolError> {
    let source = toolbox.source();
    let projects = ReadableProjects::in_source(source).await;
    projects.map_err(|error| ToolError::from_source(source, error))
}

/// Returns the project that a call names.
pub(crate) async fn find_project(toolbox: &Toolbox, named: Option<&str>) -> Result<FoundProject, ToolError> {
    let found = readable_projects(toolbox).await?.find(named.unwrap_or(DEFAULT_PROJECT)).await;
    found.map_err(|error| ToolError::from_docs(toolbox.source(), error))
}

/// Returns the address of the record of a document.
pub(crate) fn document_address(found: &FoundProject, document: Uuid) -> Option<RecordAddress> {
    Some(RecordAddress {
        connection: Some(found.connection.clone()),
        stream: DOCUMENTS_STREAM.parse().ok()?,
        record: document.to_string().parse().ok()?,
    })
}

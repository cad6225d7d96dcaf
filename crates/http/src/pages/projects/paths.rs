//! Paths of the pages of a project and of documents.

use fetchwell_callers::RecordPages;
use fetchwell_core::handle::{Handle, RecordAddress};
use fetchwell_source::documents::{DOCUMENTS_STREAM, Uuid};
use fetchwell_tools::documents::FoundProject;
use percent_encoding::utf8_percent_encode;

use crate::encoding::SEGMENT;

/// Returns the path of the page of a project.
pub(super) fn project_path(found: &FoundProject) -> String {
    format!("/projects/{}", utf8_percent_encode(found.connection.as_str(), SEGMENT))
}

/// Returns the path of the page of a document's record.
pub(super) fn record_path(found: &FoundProject, document: Uuid) -> Option<String> {
    let address = RecordAddress {
        connection: Some(found.connection.clone()),
        stream: DOCUMENTS_STREAM.parse().ok()?,
        record: document.to_string().parse().ok()?,
    };
    Handle::mint(&address).map(|handle| RecordPages::path(&handle))
}

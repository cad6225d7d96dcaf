//! The check of records that are written into a project.

use crate::source::documents::{DOCUMENTS_STREAM, NewDocument, Uuid};
use crate::source::store::{Change, IncomingRecord};

/// Returns true for a document of a project, or its deletion.
pub(in crate::source) fn is_document(incoming: &IncomingRecord) -> bool {
    let is_put = match &incoming.change {
        Change::Put { data, .. } => NewDocument::is_record(data),
        Change::Delete { .. } => true,
    };
    is_put && incoming.stream.as_str() == DOCUMENTS_STREAM && incoming.key.as_str().parse::<Uuid>().is_ok()
}

//! `get_document`: the whole text of a document, by its path or by the id of a search result.
//!
//! * `part`: the answer, whole or one part of it.

mod part;

use std::sync::Arc;

use serde::Deserialize;

use part::{DocumentPart, answer};

use super::answer::{Payload, StopOnDrop, run_blocking};
use super::arguments::{parse, trimmed};
use super::error::{SourceHints, ToolError};
use super::projects::{document_address, find_project};
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use crate::docs::{DocsError, FoundProject};
use crate::handle::Handle;
use crate::record::RecordData;
use crate::source::SourceError;
use crate::source::documents::{DOCUMENTS_STREAM, Document, DocumentRef};

/// Maximum length of a path or an id in characters.
const MAX_PATH_CHARS: usize = 2_048;

/// Specification of the tool. Name, description and input schema are those of the contract.
const GET_DOCUMENT: ToolSpec = ToolSpec {
    name: "get_document",
    title: "Get a document",
    description: "Retrieve full document content by path",
    input_schema: include_str!("input.json"),
    aliases: &[],
    extra_choices: &[],
    output_schema: include_str!("output.json"),
    examples: &[
        Example { argument: "path", call: r#"{"path": "the path or id of a search result"}"# },
        Example {
            argument: "project_id",
            call: r#"{"path": "the path of a search result", "project_id": "the slug of a project"}"#,
        },
    ],
    hints: SourceHints::STANDARD,
};

/// The tool `get_document` of the profile `docs`.
pub(super) struct GetDocument;

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetDocumentArgs {
    path: String,
    project_id: Option<String>,
}

impl Tool for GetDocument {
    type Arguments = GetDocumentArgs;

    const SPEC: ToolSpec = GET_DOCUMENT;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        let args: GetDocumentArgs = parse(&GET_DOCUMENT, arguments)?;
        let path = trimmed(&GET_DOCUMENT, "path", &args.path, MAX_PATH_CHARS)?;
        Ok(GetDocumentArgs { path, ..args })
    }

    async fn call(call: ToolCall<'_>, args: Self::Arguments) -> Result<Payload, ToolError> {
        let toolbox = call.toolbox;
        let handle = document_handle(&args.path);
        // An id names its project.
        let of_handle = handle.as_ref().and_then(|handle| handle.address().connection.clone());
        let named = args.project_id.clone().or_else(|| of_handle.map(|connection| connection.to_string()));
        let found = find_project(toolbox, named.as_deref()).await?;
        let failed = |error: SourceError| ToolError::from_source(toolbox.source(), error);
        let (document, number) = find_document(&found, &args.path, handle.as_ref())
            .await
            .map_err(|error| ToolError::from_docs(toolbox.source(), error))?;
        let text = found.store.text(found.project.id, document.id).await.map_err(failed)?;
        let (Some(text), Some(address)) = (text, document_address(&found.project, document.id)) else {
            let (project, named) = (found.project.slug.to_string(), args.path);
            return Err(ToolError::DocumentNotFound { project, named });
        };
        let part = DocumentPart {
            parts: toolbox.parts.clone(),
            budget: toolbox.budget("get_document"),
            pages: toolbox.pages().cloned(),
            address,
            document,
            text,
            number,
            warnings: call.warnings,
        };
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        run_blocking(move || answer(&part, &stopped)).await
    }
}

/// Returns the handle of a document or of a part of one, or `None` for a path.
fn document_handle(path: &str) -> Option<Handle> {
    let handle: Handle = path.parse().ok()?;
    let address = handle.address();
    let is_document = address.stream.as_str() == DOCUMENTS_STREAM && address.connection.is_some();
    is_document.then_some(handle)
}

/// Returns the document at a path or of a handle, and the number of the part. A path takes precedence.
async fn find_document(
    found: &FoundProject,
    path: &str,
    handle: Option<&Handle>,
) -> Result<(Document, u32), DocsError> {
    let project = found.project.id;
    if let Ok(path) = path.parse()
        && let Some(document) = found.store.document(project, &DocumentRef::Path(path)).await?
    {
        return Ok((document, 0));
    }
    let of_project =
        handle.filter(|handle| handle.address().connection.as_ref() == Some(found.project.slug.connection()));
    if let Some(handle) = of_project
        && let Ok(id) = handle.address().record.as_str().parse()
        && let Some(document) = found.store.document(project, &DocumentRef::Id(id)).await?
    {
        return Ok((document, handle.part().unwrap_or(0)));
    }
    let (project, named) = (found.project.slug.to_string(), path.to_owned());
    Err(DocsError::DocumentNotFound { project, named })
}

//! `get_document`: the whole text of a document, by its path, by the id of a search result or by its own id.
//!
//! * `part`: the answer, whole or one part of it.

mod part;

use std::sync::Arc;

use serde::Deserialize;

use fetchwell_core::handle::{ConnectionId, Handle, PartId, TextVersion};
use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{DOCUMENTS_STREAM, Document, DocumentRef};
use fetchwell_telemetry::ReadKind;
use part::{DocumentPart, answer};

use super::answer::{Payload, StopOnDrop, run_blocking};
use super::arguments::{parse, trimmed};
use super::error::{SourceHints, ToolError};
use super::projects::{document_address, find_project, readable_projects};
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;
use crate::documents::{DocsError, FoundProject};

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
    hints: SourceHints::DOCS,
};

/// The tool `get_document` of the profile `docs`.
pub(crate) struct GetDocument;

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
        let NamedDocument { found, document, part, version } = named_document(toolbox, &args).await?;
        let text = found.store.text(found.project.id, document.id).await;
        let text = text.map_err(|error| ToolError::from_source(toolbox.source(), error))?;
        let (Some(text), Some(address)) = (text, document_address(&found, document.id)) else {
            return Err(ToolError::from_docs(toolbox.source(), not_found(&found, args.path)));
        };
        found.report(ReadKind::Record, [document.id]);
        let part = DocumentPart {
            parts: toolbox.parts.clone(),
            budget: toolbox.budget("get_document"),
            pages: toolbox.pages().cloned(),
            address,
            document,
            text,
            number: part,
            version,
            warnings: call.warnings,
        };
        let stop = StopOnDrop::default();
        let stopped = Arc::clone(&stop.0);
        run_blocking(move || answer(&part, &stopped)).await
    }
}

/// A document that a call names, with its project and the number of the part.
struct NamedDocument {
    found: FoundProject,
    document: Document,
    part: u32,
    /// Version of the document of which the part before is.
    version: Option<TextVersion>,
}

/// Returns the document that a call names.
async fn named_document(toolbox: &Toolbox, args: &GetDocumentArgs) -> Result<NamedDocument, ToolError> {
    let failed = |error: DocsError| ToolError::from_docs(toolbox.source(), error);
    // The id of a document names its project.
    if args.project_id.is_none()
        && let Ok(id) = args.path.parse()
        && let Some((found, document)) =
            readable_projects(toolbox).await?.find_document(id).await.map_err(failed)?
    {
        return Ok(NamedDocument { found, document, part: 0, version: None });
    }
    let (handle, version) = document_handle(&args.path).map(|id| (id.handle, id.version)).unzip();
    let of_handle = handle.as_ref().and_then(|handle| handle.address().connection.as_ref());
    let named = args.project_id.as_deref().or(of_handle.map(ConnectionId::as_str));
    let found = find_project(toolbox, named).await?;
    let (document, part) = find_in(&found, &args.path, handle.as_ref()).await.map_err(failed)?;
    let version = version.flatten().filter(|_| part > 0);
    Ok(NamedDocument { found, document, part, version })
}

/// Returns the id of a document or of a part of one, which can have a version. A path has none.
fn document_handle(path: &str) -> Option<PartId> {
    let id: PartId = path.parse().ok()?;
    let address = id.handle.address();
    let is_document = address.stream.as_str() == DOCUMENTS_STREAM && address.connection.is_some();
    is_document.then_some(id)
}

/// Returns the document of a project at a path, of an id or of a handle, and the number of the part. A path takes
/// precedence.
async fn find_in(
    found: &FoundProject,
    path: &str,
    handle: Option<&Handle>,
) -> Result<(Document, u32), DocsError> {
    let is_of_project = |handle: &&Handle| {
        handle.address().connection.as_ref().is_some_and(|connection| found.has_connection(connection))
    };
    let handle = handle.filter(is_of_project);
    let id = match handle {
        Some(handle) => handle.address().record.as_str().parse(),
        None => path.parse(),
    };
    let names = [path.parse().ok().map(DocumentRef::Path), id.ok().map(DocumentRef::Id)];
    for named in names.into_iter().flatten() {
        if let Some(document) = found.store.document(found.project.id, &named).await? {
            let part = match named {
                DocumentRef::Path(_) => 0,
                DocumentRef::Id(_) => handle.and_then(Handle::part).unwrap_or(0),
            };
            return Ok((document, part));
        }
    }
    Err(not_found(found, path.to_owned()))
}

fn not_found(found: &FoundProject, named: String) -> DocsError {
    DocsError::DocumentNotFound { project: found.project.slug.to_string(), named }
}

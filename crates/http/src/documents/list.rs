//! `GET /api/v1/documents`: the documents of a project in the order of their paths, or one of them.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_core::fit::bytes_of;
use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{Category, Document, DocumentList, DocumentPath, DocumentRef, Uuid};
use fetchwell_tools::Toolbox;
use fetchwell_tools::documents::{DocsError, FoundProject, ReadableProjects};
use serde::{Deserialize, Serialize};

use super::error::DocumentError;
use super::parameters::{Parameters, category};
use super::request::MAX_PROJECT_CHARS;
use super::response::{MAX_ITEMS_BYTES, fitting};
use crate::answer::Answer;

/// Parameters of the path.
const PARAMETERS: [&str; 6] = ["project_id", "category", "path", "id", "cursor", "limit"];

/// Maximum length of a path in characters.
const MAX_PATH_CHARS: usize = 1_000;

/// Maximum length of a cursor in characters.
const MAX_CURSOR_CHARS: usize = 10_000;

/// Number of documents without `limit`.
const DEFAULT_LIMIT: usize = 100;

/// Maximum of `limit`.
const MAX_LIMIT: usize = 1_000;

/// A page of documents.
#[derive(Debug, Serialize)]
struct DocumentPage {
    documents: Vec<Document>,
    /// Cursor of the next page.
    next_cursor: Option<String>,
}

/// The position of a page: the list and the last path before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    project: Uuid,
    category: Option<String>,
    after: String,
}

/// A validated request.
#[derive(Debug)]
struct DocumentsRequest {
    project_id: String,
    /// The one document that is requested.
    document: Option<DocumentRef>,
    category: Option<Category>,
    cursor: Option<String>,
    limit: usize,
}

/// Returns true if a query string names a project, so that the path is not that of a stream.
pub(super) fn names_project(query: Option<&str>) -> bool {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).any(|(name, _)| name == "project_id")
}

/// Answers with a page of documents, or with one document.
pub(super) async fn documents(toolbox: &Toolbox, query: Option<&str>) -> Result<Answer, DocumentError> {
    let request = DocumentsRequest::from_query(query)?;
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(&request.project_id).await?;
    match &request.document {
        Some(named) => document(&found, named).await,
        None => page(&found, &request).await,
    }
}

async fn document(found: &FoundProject, named: &DocumentRef) -> Result<Answer, DocumentError> {
    let document = found.store.document(found.project.id, named).await?;
    let document = document.ok_or_else(|| DocsError::DocumentNotFound {
        project: found.project.slug.to_string(),
        named: match named {
            DocumentRef::Path(path) => path.to_string(),
            DocumentRef::Id(id) => id.to_string(),
        },
    })?;
    Ok(Answer::new(&bounded(document))?)
}

async fn page(found: &FoundProject, request: &DocumentsRequest) -> Result<Answer, DocumentError> {
    let category = request.category.as_ref().map(ToString::to_string);
    let after = match &request.cursor {
        None => None,
        Some(cursor) => {
            let position = Position::parse(cursor).ok_or_else(DocumentError::cursor)?;
            if position.project != found.project.id || position.category != category {
                return Err(DocumentError::cursor());
            }
            Some(position.after.parse::<DocumentPath>().map_err(|_invalid| DocumentError::cursor())?)
        }
    };
    // One more tells whether there is a next page.
    let list = DocumentList { category: request.category.clone(), after, limit: request.limit + 1 };
    let documents = found.store.documents(found.project.id, &list).await?;
    let count = documents.len();
    let mut shown = fitting(documents.into_iter().map(bounded));
    shown.truncate(request.limit);
    let last = shown.last().filter(|_| shown.len() < count);
    let next_cursor = last.map(|last| {
        let position = Position { project: found.project.id, category, after: last.path.to_string() };
        position.to_cursor()
    });
    let items = shown.len();
    Ok(Answer::new(&DocumentPage { documents: shown, next_cursor })?.with_items(items))
}

/// Returns a document without its metadata if they are longer than a response.
fn bounded(document: Document) -> Document {
    if bytes_of(&document) < MAX_ITEMS_BYTES {
        return document;
    }
    Document { metadata: RecordData::new(), ..document }
}

impl DocumentsRequest {
    fn from_query(query: Option<&str>) -> Result<Self, DocumentError> {
        let mut parameters = Parameters::from_query(query, &PARAMETERS);
        let project_id = parameters.required_text("project_id", MAX_PROJECT_CHARS);
        let category = category(&mut parameters);
        let path = parsed(&mut parameters, "path", "it is not the path of a document");
        let id = parsed(&mut parameters, "id", "it is not a UUID");
        if parameters.get("path").is_some() {
            for name in ["id", "category", "cursor", "limit"] {
                parameters.refuse_if_present(name, "`path` names one document; leave this out");
            }
        } else if parameters.get("id").is_some() {
            for name in ["category", "cursor", "limit"] {
                parameters.refuse_if_present(name, "`id` names one document; leave this out");
            }
        }
        let document = path.map(DocumentRef::Path).or(id.map(DocumentRef::Id));
        let cursor = parameters.text("cursor", MAX_CURSOR_CHARS);
        let limit = parameters.integer("limit", DEFAULT_LIMIT, MAX_LIMIT);
        parameters.finish()?;
        Ok(Self { project_id, document, category, cursor, limit })
    }
}

/// Reads a string that names a document.
fn parsed<Name: FromStr>(parameters: &mut Parameters, name: &str, problem: &str) -> Option<Name> {
    let text = parameters.text(name, MAX_PATH_CHARS)?;
    let parsed = text.parse().ok();
    if parsed.is_none() {
        parameters.refuse(name, problem, "value_error");
    }
    parsed
}

impl Position {
    fn parse(cursor: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
    }

    fn to_cursor(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

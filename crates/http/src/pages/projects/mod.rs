//! `/projects`: projects of document search, their documents, and the chunks of a document.
//!
//! * `paths`: paths of the pages of a project and of documents
//! * `view`: HTML

mod paths;
mod view;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use fetchwell_core::saturate::saturated;
use fetchwell_source::SourceError;
use fetchwell_source::documents::{Category, DocumentList, DocumentRef, Uuid};
use fetchwell_telemetry::ReadKind;
use fetchwell_tools::documents::{DocsError, FoundProject, ReadableProjects};
use maud::Markup;
use percent_encoding::percent_decode_str;

use self::paths::record_path;
use self::view::{ChunkList, DocumentPage};
use super::access::{PageContent, Pages, Visit, parameter, serve_page};
use super::layout::Section;

/// Number of documents on a page.
const DOCUMENTS: usize = 100;

/// Number of chunks on a page.
const CHUNKS: u32 = 20;

/// Returns the routes.
pub(super) fn routes(pages: Pages) -> Router {
    Router::new()
        .route("/projects", get(list))
        .route("/projects/{project}", get(project))
        .route("/projects/{project}/{document}", get(document))
        .with_state(pages)
}

/// Reason why a page cannot be shown.
#[derive(Debug)]
struct Failure {
    status: StatusCode,
    problem: String,
}

impl Failure {
    fn not_found(problem: &str) -> Self {
        Self { status: StatusCode::NOT_FOUND, problem: problem.to_owned() }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, problem: error.to_string() }
    }
}

impl From<DocsError> for Failure {
    fn from(error: DocsError) -> Self {
        match error {
            DocsError::Source(error) => error.into(),
            other => Self::not_found(&other.to_string()),
        }
    }
}

async fn list(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, "/projects", request, |_pages, visit, _request| {
        Box::pin(async move { content("Projects", project_list(visit).await) })
    })
    .await
}

async fn project(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, "/projects/{project}", request, |_pages, visit, request| {
        Box::pin(async move { content("Documents", documents(visit, request).await) })
    })
    .await
}

async fn document(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, "/projects/{project}/{document}", request, |_pages, visit, request| {
        Box::pin(async move { content("Chunks", chunks(visit, request).await) })
    })
    .await
}

fn content(title: &str, page: Result<(String, Markup), Failure>) -> PageContent {
    match page {
        Ok((name, main)) => PageContent::new(&format!("{name} · {title}"), Section::Projects, main),
        Err(Failure { status, problem }) => {
            PageContent::new(title, Section::Projects, view::failure(&problem))
                .with_error(status, "source_error")
        }
    }
}

async fn project_list(visit: &Visit) -> Result<(String, Markup), Failure> {
    let projects = ReadableProjects::in_source(visit.toolbox.source()).await?.all().await?;
    let mut rows = Vec::with_capacity(projects.len());
    for found in projects {
        let categories = found.store.categories(found.project.id).await?;
        rows.push((found, categories));
    }
    Ok(("fetchwell".to_owned(), view::projects(&rows)))
}

async fn find(visit: &Visit, request: &Parts) -> Result<FoundProject, Failure> {
    let name = segment(request, 1).ok_or_else(|| Failure::not_found("there is no such project"))?;
    Ok(ReadableProjects::in_source(visit.toolbox.source()).await?.find(&name).await?)
}

async fn documents(visit: &Visit, request: &Parts) -> Result<(String, Markup), Failure> {
    let found = find(visit, request).await?;
    let query = request.uri.query().unwrap_or_default().as_bytes();
    let category: Option<Category> = parameter(query, "category").and_then(|category| category.parse().ok());
    let after = parameter(query, "after").and_then(|after| after.parse().ok());
    let is_first = after.is_none();
    // One more tells whether there is a next page.
    let list = DocumentList { category: category.clone(), after, limit: DOCUMENTS + 1 };
    let mut documents = found.store.documents(found.project.id, &list).await?;
    let has_more = documents.len() > DOCUMENTS;
    documents.truncate(DOCUMENTS);
    let categories = found.store.categories(found.project.id).await?;
    let page = DocumentPage {
        found: &found,
        documents: &documents,
        categories: &categories,
        category,
        is_first,
        has_more,
    };
    Ok((found.project.name.clone(), view::documents(&page)))
}

async fn chunks(visit: &Visit, request: &Parts) -> Result<(String, Markup), Failure> {
    let found = find(visit, request).await?;
    let missing = || Failure::not_found("the project has no such document");
    let id: Uuid = segment(request, 2).and_then(|id| id.parse().ok()).ok_or_else(missing)?;
    let document = found.store.document(found.project.id, &DocumentRef::Id(id)).await?.ok_or_else(missing)?;
    let query = request.uri.query().unwrap_or_default().as_bytes();
    let first: u32 = parameter(query, "from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let end = first.saturating_add(CHUNKS);
    // One more tells whether there is a next page.
    let mut chunks = found.store.chunks(found.project.id, id, first..end.saturating_add(1)).await?;
    let has_more = chunks.len() > saturated::<usize>(CHUNKS);
    chunks.truncate(saturated::<usize>(CHUNKS));
    found.report(ReadKind::Record, [id]);
    let record = record_path(&found, id);
    let list = ChunkList {
        found: &found,
        document: &document,
        chunks: &chunks,
        record,
        first,
        size: CHUNKS,
        has_more,
    };
    Ok((document.path.to_string(), view::chunks(&list)))
}

/// Returns a decoded segment of the path, counted from 0.
fn segment(request: &Parts, index: usize) -> Option<String> {
    let segment = request.uri.path().trim_start_matches('/').split('/').nth(index)?;
    Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned())
}

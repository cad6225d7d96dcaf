//! The document-search API for web front ends: `/api/v1/search` and `/api/v1/projects`.
//!
//! * `request`: the body of a search, and its validation
//! * `response`: the bodies of responses, `stream`: a search as events
//! * `error`: errors with the codes of the contract, `openapi`: the description in `/openapi.json`

mod error;
pub(super) mod openapi;
mod request;
mod response;
mod stream;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::Value;

use self::error::DocumentError;
use self::request::{ValidSearch, feedback_of};
use self::response::{ProjectList, SearchResponse};
use super::body_size::sent_bytes;
use super::headers::SEARCH_ID;
use super::middleware::authenticate::toolbox_of;
use crate::docs::{ReadableProjects, remember};
use crate::fit::{Shaping, Strategy};
use crate::source::documents::{Uuid, whole_millis};
use crate::telemetry::{Endpoint, Origin, Refused, RequestId, Telemetry};
use crate::tools::Toolbox;

/// Maximum size of the body of a request in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// State of the API.
#[derive(Debug, Clone)]
pub(super) struct DocumentApi {
    telemetry: Telemetry,
}

/// A response: its status, a JSON body and the id of a search.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
    items: usize,
    search_id: Option<Uuid>,
}

/// A response with a body, or with events.
enum Answered {
    Whole(Answer),
    Events(Response),
}

impl Answer {
    fn new(body: &impl Serialize, items: usize) -> Result<Self, DocumentError> {
        let body = serde_json::to_vec(body).map_err(|_unwritable| DocumentError::internal())?;
        Ok(Self { status: StatusCode::OK, body, items, search_id: None })
    }
}

/// A path of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Search,
    Stream,
    Feedback(&'a str),
    Projects,
    Project(&'a str),
}

impl<'a> Route<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix("/api/v1/")?;
        Some(match rest.split('/').collect::<Vec<_>>().as_slice() {
            ["search"] => Self::Search,
            ["search", "stream"] => Self::Stream,
            ["search", id, "feedback"] => Self::Feedback(id),
            ["projects"] => Self::Projects,
            ["projects", id] => Self::Project(id),
            _ => return None,
        })
    }

    /// Returns the name of the endpoint in telemetry.
    fn template(self) -> &'static str {
        match self {
            Self::Search => "/api/v1/search",
            Self::Stream => "/api/v1/search/stream",
            Self::Feedback(_) => "/api/v1/search/{id}/feedback",
            Self::Projects => "/api/v1/projects",
            Self::Project(_) => "/api/v1/projects/{id}",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Search | Self::Feedback(_) => "POST",
            Self::Stream | Self::Projects | Self::Project(_) => "GET",
        }
    }
}

impl DocumentApi {
    pub(super) fn new(telemetry: Telemetry) -> Self {
        Self { telemetry }
    }

    /// Routes the paths of the API. They take precedence over streams of the same names.
    pub(super) fn routes(&self) -> Router {
        let all = any(answer).with_state(self.clone());
        [
            "/api/v1/search",
            "/api/v1/search/stream",
            "/api/v1/search/{id}/feedback",
            "/api/v1/projects",
            "/api/v1/projects/{id}",
        ]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, all.clone()))
    }

    async fn handle(request: &Parts, body: Body, request_id: &RequestId) -> Result<Answered, DocumentError> {
        let route = Route::parse(request.uri.path()).ok_or_else(DocumentError::internal)?;
        if request.method.as_str() != route.method() {
            return Err(DocumentError::method(route.method()));
        }
        let toolbox = toolbox_of(&request.extensions).ok_or_else(DocumentError::internal)?;
        let work = async {
            Ok(Answered::Whole(match route {
                Route::Search => search(&toolbox, read_json(request, body).await?).await?,
                Route::Stream => {
                    let search = ValidSearch::parse(stream::parameters(request.uri.query()))?;
                    let projects = ReadableProjects::in_source(toolbox.source()).await?;
                    let found = projects.find(&search.project_id).await?;
                    let id = request_id.as_str().to_owned();
                    return Ok(Answered::Events(stream::response(Arc::clone(&toolbox), found, search, id)));
                }
                Route::Feedback(id) => feedback(&toolbox, id, &read_json(request, body).await?).await?,
                Route::Projects => projects(&toolbox).await?,
                Route::Project(id) => project(&toolbox, id).await?,
            }))
        };
        let answered = tokio::time::timeout(toolbox.call_deadline(), work).await;
        answered.unwrap_or_else(|_late| Err(DocumentError::timeout(toolbox.call_deadline())))
    }
}

async fn search(toolbox: &Toolbox, body: Value) -> Result<Answer, DocumentError> {
    let started = Instant::now();
    let ValidSearch { request, project_id, include_metadata } = ValidSearch::parse(body)?;
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(&project_id).await?;
    let cached = toolbox.searches().search(&found, &request).await?;
    let latency_ms = whole_millis(started.elapsed());
    let search_id = remember(&found, &request, &cached, latency_ms).await;
    let results = cached.answer.results.len();
    let response = SearchResponse::new(&request, &project_id, &cached, latency_ms, include_metadata);
    Ok(Answer { search_id, ..Answer::new(&response, results)? })
}

async fn answer(State(api): State<DocumentApi>, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let id = request.extensions.get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
    let route = Route::parse(request.uri.path());
    let template = route.map_or("/api/v1/{unknown}", Route::template);
    let record = api.telemetry.call(Endpoint::route(template), Origin::from_extensions(&request.extensions));
    let answered = AssertUnwindSafe(DocumentApi::handle(&request, body, &id)).catch_unwind().await;
    match answered.unwrap_or_else(|_panic| Err(DocumentError::internal())) {
        Ok(Answered::Events(response)) => {
            record.answered(&Shaping { strategy: Strategy::List, ..Shaping::default() });
            response
        }
        Ok(Answered::Whole(Answer { status, body, items, search_id })) => {
            let bytes = sent_bytes(&request.method, body.len());
            record.answered(&Shaping { bytes, items, strategy: Strategy::List, ..Shaping::default() });
            let mut response = written(status, body);
            if let Some(id) = search_id.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
                response.headers_mut().insert(SEARCH_ID, id);
            }
            response
        }
        Err(error) => {
            let body = error.body(id.as_str());
            let bytes = sent_bytes(&request.method, body.len());
            record.refused(&error.outcome(), Refused { bytes, reason: None });
            let mut response = written(error.status(), body);
            error.add_headers(response.headers_mut());
            response
        }
    }
}

fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Reads the body of a request as JSON.
async fn read_json(request: &Parts, body: Body) -> Result<Value, DocumentError> {
    let content_type = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = content_type.is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    });
    if !is_json {
        return Err(DocumentError::content_type());
    }
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_large| DocumentError::too_large())?;
    serde_json::from_slice(&bytes).map_err(|error| DocumentError::invalid_json(&error))
}

async fn feedback(toolbox: &Toolbox, id: &str, body: &Value) -> Result<Answer, DocumentError> {
    let feedback = feedback_of(body)?;
    let id: Uuid = id.parse().map_err(|_invalid| DocumentError::search_not_found())?;
    if !ReadableProjects::in_source(toolbox.source()).await?.set_feedback(id, feedback).await? {
        return Err(DocumentError::search_not_found());
    }
    Ok(Answer { status: StatusCode::NO_CONTENT, body: Vec::new(), items: 0, search_id: None })
}

async fn projects(toolbox: &Toolbox) -> Result<Answer, DocumentError> {
    let found = ReadableProjects::in_source(toolbox.source()).await?.all().await?;
    let list = ProjectList { projects: found.into_iter().map(|found| found.project).collect() };
    Answer::new(&list, list.projects.len())
}

async fn project(toolbox: &Toolbox, id: &str) -> Result<Answer, DocumentError> {
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(id).await?;
    Answer::new(&found.project, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routes() {
        for (path, expect) in [
            ("/api/v1/search", Some(Route::Search)),
            ("/api/v1/search/stream", Some(Route::Stream)),
            ("/api/v1/search/x/feedback", Some(Route::Feedback("x"))),
            ("/api/v1/projects", Some(Route::Projects)),
            ("/api/v1/projects/x", Some(Route::Project("x"))),
            ("/api/v1/search/x", None),
            ("/v1/search", None),
        ] {
            assert_eq!(Route::parse(path), expect, "{path}");
        }
    }
}

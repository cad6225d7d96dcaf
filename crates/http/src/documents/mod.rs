//! The document-search API for web front ends: `/api/v1/search`, `/api/v1/projects` and `/api/v1/documents`.
//!
//! * `route`: the paths
//! * `parameters`: parameters of bodies and query strings, `request`: a search, and its validation
//! * `response`: the bodies of searches, `answer`: their headers, `stream`: a search as events
//! * `deadline`: the end of a call, also of one with events
//! * `list`: documents, `admin`: requests of a token with `admin = true`
//! * `error`: errors with the codes of the contract, `openapi`: the description in `/openapi.json`

mod admin;
mod answer;
mod deadline;
mod error;
mod list;
pub(crate) mod openapi;
mod parameters;
mod request;
mod response;
mod route;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::Response;
use axum::routing::any;
use fetchwell_core::fit::Strategy;
use fetchwell_source::documents::{Uuid, whole_millis};
use fetchwell_telemetry::{Call, Telemetry};
use fetchwell_tools::Toolbox;
use fetchwell_tools::documents::{AnsweredSearch, ReadableProjects, remember};
use serde_json::Value;

pub(crate) use self::route::SEARCH_STREAM;

use self::answer::with_search_headers;
use self::deadline::CallDeadline;
use self::error::DocumentError;
use self::request::{ValidSearch, feedback_of};
use self::response::{ChunkResults, ProjectList, SearchResponse};
use self::route::{DOCUMENTS, PREFIXES, Route};
use self::stream::StreamedSearch;
use super::answer::{Answer, CallResult, answer_call};
use super::api::Api;
use super::headers::LAST_EVENT_ID;
use super::middleware::authenticate::toolbox_of;
use super::middleware::served::AuthMode;

/// Maximum size of the body of a request in bytes.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// State of the API.
#[derive(Debug, Clone)]
pub(crate) struct DocumentApi {
    served: AuthMode,
    telemetry: Telemetry,
    /// API of streams, which has the path of documents without a project.
    streams: Api,
}

/// A response with a body, or with events.
enum DocumentResponse {
    Whole(Answer),
    Events(Box<StreamedSearch>),
}

impl DocumentApi {
    pub(crate) fn new(served: AuthMode, telemetry: Telemetry, streams: Api) -> Self {
        Self { served, telemetry, streams }
    }

    /// Routes the paths of the API. They take precedence over streams of the same names.
    pub(crate) fn routes(&self) -> Router {
        let all = any(answer).with_state(self.clone());
        let router = Router::new().route(DOCUMENTS, any(answer_documents).with_state(self.clone()));
        PREFIXES.into_iter().fold(router, |router, prefix| {
            let below = [format!("{prefix}/"), format!("{prefix}/{{*rest}}")];
            let router = router.route(prefix, all.clone());
            below.iter().fold(router, |router, path| router.route(path, all.clone()))
        })
    }

    async fn handle(
        &self,
        request: &Parts,
        body: Body,
        call: &Call,
    ) -> Result<DocumentResponse, DocumentError> {
        let path = request.uri.path();
        let route = Route::parse(path).ok_or_else(|| DocumentError::unknown_path(path))?;
        // The server leaves out the body of the response to HEAD.
        let method = if request.method == Method::HEAD { "GET" } else { request.method.as_str() };
        if method != route.method() {
            return Err(DocumentError::method(route.method()));
        }
        let toolbox = toolbox_of(&request.extensions).ok_or_else(DocumentError::internal)?.audited(call);
        let deadline = CallDeadline::from_now(toolbox.call_deadline());
        let work = async {
            let query = request.uri.query();
            Ok(DocumentResponse::Whole(match route {
                Route::Search => search(&toolbox, read_json(request, body).await?).await?,
                // `EventSource` reconnects after the last event until it gets this status.
                Route::Stream if request.headers.contains_key(LAST_EVENT_ID) => Answer::no_content(),
                Route::Stream => {
                    let search = ValidSearch::from_query(query)?;
                    let projects = ReadableProjects::in_source(toolbox.source()).await?;
                    let found = projects.find(&search.project_id).await?;
                    let streamed = StreamedSearch { toolbox: Arc::clone(&toolbox), found, search, deadline };
                    return Ok(DocumentResponse::Events(Box::new(streamed)));
                }
                Route::Feedback(id) => feedback(&toolbox, &id, &read_json(request, body).await?).await?,
                Route::Projects => projects(&toolbox).await?,
                Route::Project(id) => project(&toolbox, &id).await?,
                Route::History(id) => admin::history(&toolbox, &id, query).await?,
                Route::SearchGroups(id) => admin::search_groups(&toolbox, &id, query).await?,
                Route::Documents => list::documents(&toolbox, query).await?,
                Route::ClearCache => admin::clear_cache(&self.served, &toolbox, query).await?,
            }))
        };
        deadline.limit(work).await
    }
}

async fn search(toolbox: &Toolbox, body: Value) -> Result<Answer, DocumentError> {
    let started = Instant::now();
    let ValidSearch { request, project_id, include_metadata } = ValidSearch::from_body(body)?;
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(&project_id).await?;
    let cached = toolbox.searches().search(&found, &request).await?;
    let results = ChunkResults::read(&found, &cached.answer, include_metadata).await?;
    let latency_ms = whole_millis(started.elapsed());
    let caller = toolbox.source().context().grant_id();
    let answered = AnsweredSearch { request: &request, cached: &cached, latency_ms, caller };
    let search_id = remember(&found, answered).await;
    let results = results.fitting();
    let items = results.len();
    let response = SearchResponse::new(answered, &project_id, results);
    Ok(with_search_headers(Answer::new(&response)?.with_items(items), search_id, &cached.answer))
}

/// Answers a request for documents of a project, and leaves others to the API of streams.
async fn answer_documents(State(api): State<DocumentApi>, request: Request) -> Response {
    if list::names_project(request.uri().query()) {
        Box::pin(answer(State(api), request)).await
    } else {
        api.streams.respond(request).await
    }
}

async fn answer(State(api): State<DocumentApi>, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let template = Route::parse(request.uri.path()).map_or("/api/v1/{unknown}", |route| route.template());
    // Boxed, because the future of a request for documents is large.
    answer_call(&api.telemetry, template, &request, async |call| {
        Box::pin(api.handle(&request, body, call)).await
    })
    .await
}

impl CallResult for Result<DocumentResponse, DocumentError> {
    fn internal_error() -> Self {
        Err(DocumentError::internal())
    }

    fn respond(self, call: Call, request: &Parts) -> Response {
        let answered = match self {
            Ok(DocumentResponse::Events(streamed)) => return streamed.start(call),
            Ok(DocumentResponse::Whole(answer)) => Ok(answer.with_strategy(Strategy::List)),
            Err(error) => Err(error),
        };
        answered.respond(call, request)
    }
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
    let bytes = to_bytes(body, MAX_REQUEST_BYTES).await.map_err(|_large| DocumentError::too_large())?;
    serde_json::from_slice(&bytes).map_err(|error| DocumentError::invalid_json(&error))
}

async fn feedback(toolbox: &Toolbox, id: &str, body: &Value) -> Result<Answer, DocumentError> {
    let feedback = feedback_of(body)?;
    let id: Uuid = id.parse().map_err(|_invalid| DocumentError::search_not_found())?;
    let projects = ReadableProjects::in_source(toolbox.source()).await?;
    let caller = toolbox.source().context().grant_id();
    if !projects.set_feedback(id, caller, feedback).await? {
        return Err(DocumentError::search_not_found());
    }
    Ok(Answer::no_content())
}

async fn projects(toolbox: &Toolbox) -> Result<Answer, DocumentError> {
    let found = ReadableProjects::in_source(toolbox.source()).await?.all().await?;
    let list = ProjectList::new(found);
    Ok(Answer::new(&list)?.with_items(list.projects.len()))
}

async fn project(toolbox: &Toolbox, id: &str) -> Result<Answer, DocumentError> {
    let found = ReadableProjects::in_source(toolbox.source()).await?.find(id).await?;
    Ok(Answer::new(&found.project)?)
}

//! `/api/v1`: streams under the paths of their connectors' own APIs, with responses that fit a model's context.
//!
//! Lists are `{"items", "nextCursor", "meta"}`; a record is returned as it is or as a `summary`; long texts are
//! returned in chunks. The manifests of connectors define the paths; a stream without a path is available under its
//! name.
//!
//! * `routes`, `parameters`, `call`: path and query string of a request, and the request as handlers get it
//! * `list`, `page`: a page of records and its fitting
//! * `detail`: one record
//! * `content`: a long text by chunks
//! * `fields`, `marks`, `meta`: field selection, placeholders for long values, metadata
//! * `answer`, `error`: responses
//! * `openapi`: the description in `/openapi.json`

mod answer;
mod call;
mod content;
mod detail;
mod error;
mod fields;
mod list;
mod marks;
mod meta;
pub(crate) mod openapi;
mod page;
mod parameters;
mod routes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::Toolbox;

pub(crate) use self::answer::refused;
pub(crate) use self::meta::MissingSource;

use self::call::{BASE, Call};
use self::error::ApiError;
use self::parameters::Parameters;
use self::routes::{Routes, Target};
use crate::answer::{Answer, answer_call, in_time};
use crate::error::RequestError;
use crate::headers::CONTEXT_BUDGET;
use crate::middleware::authenticate::toolbox_of;

/// State of the API: telemetry and the cache of known routes.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    telemetry: Telemetry,
    routes: Arc<Routes>,
}

impl Api {
    pub(crate) fn new(telemetry: Telemetry) -> Self {
        Self { telemetry, routes: Arc::default() }
    }

    /// Routes `/api/v1` and everything below it.
    pub(crate) fn routes(&self) -> Router {
        let all = any(answer).with_state(self.clone());
        ["/api/v1", "/api/v1/", "/api/v1/{*rest}"]
            .into_iter()
            .fold(Router::new(), |router, path| router.route(path, all.clone()))
    }

    /// Answers a request that came by another route.
    pub(crate) async fn respond(&self, request: Request) -> Response {
        answer(State(self.clone()), request).await
    }
}

/// Answers one request. Errors and panics become error responses.
async fn answer(State(api): State<Api>, request: Request) -> Response {
    // The body is ignored, because no route takes one.
    let (request, _) = request.into_parts();
    let found = find(&api, &request).await;
    let endpoint =
        found.as_ref().map_or_else(|_| format!("{BASE}/{{unknown}}"), |(_, target)| target.template());
    answer_call(&api.telemetry, &endpoint, &request, async |call| {
        let (toolbox, target) = found?;
        dispatch(&toolbox.audited(call), target, &request).await
    })
    .await
}

fn check_method(request: &Parts) -> Result<(), RequestError> {
    if request.method != Method::GET {
        let problem = "records are read-only; use GET".to_owned();
        return Err(RequestError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", problem));
    }
    Ok(())
}

/// Resolves the target of a request and the toolbox of its caller.
async fn find(api: &Api, request: &Parts) -> Result<(Arc<Toolbox>, Target), ApiError> {
    check_method(request)?;
    let toolbox = toolbox_of(&request.extensions).ok_or_else(RequestError::internal)?;
    let target = target_of(api, &toolbox, request.uri.path()).await?;
    Ok((toolbox, target))
}

/// Resolves the target of a path.
async fn target_of(api: &Api, toolbox: &Toolbox, path: &str) -> Result<Target, ApiError> {
    // One slash is accepted before and after the path. More slashes make it a different path.
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(handle) = rest.strip_prefix("content/") {
        return Ok(Target::Content(handle.to_owned()));
    }
    let routes = in_time(toolbox, api.routes.get(toolbox)).await?;
    if rest.is_empty() {
        return Ok(Target::Index(routes));
    }
    routes.target(rest).ok_or_else(|| routes.unknown(rest).into())
}

async fn dispatch(toolbox: &Toolbox, target: Target, request: &Parts) -> Result<Answer, ApiError> {
    let compares = request.headers.get(CONTEXT_BUDGET).is_some_and(|asked| asked == "compare");
    let mut call = Call {
        toolbox,
        limits: toolbox.protection().limits(&target.limits_key()),
        path: target.path(),
        parameters: Parameters::read(request.uri.query())?,
        compares,
    };
    in_time(toolbox, async {
        match target {
            Target::Index(routes) => routes.index(&mut call),
            Target::Content(handle) => content::answer(&mut call, &handle).await,
            Target::List(route) => list::answer(&mut call, &route).await,
            Target::Record(route, record) => detail::answer(&mut call, &route, record).await,
        }
    })
    .await
}

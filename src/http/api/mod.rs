//! `/api/v1`: streams under the paths that their connectors' own APIs have, with answers that fit a model's context.
//!
//! The shapes are those of the seeds: `{"items", "nextCursor", "meta"}` for lists, the record itself or a `summary` of it,
//! and chunks of long texts. Where a path leads is said by the manifests of connectors; a stream that no manifest has
//! a path for is found under its name.

mod answer;
mod content;
mod detail;
mod error;
mod fields;
mod list;
mod marks;
mod meta;
pub(super) mod openapi;
mod page;
mod parameters;
mod routes;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use futures_util::FutureExt;

pub(super) use self::answer::{ORIGINAL_TOKENS, RETURNED_TOKENS};
pub(super) use self::meta::Missing;

use self::answer::{Answer, response};
use self::error::{Failure, refusal};
use self::parameters::Parameters;
use self::routes::{Place, Routes};
use super::admission::toolbox_of;
use super::answers::sent_bytes;
use super::v1::ApiError;
use crate::fit::Limits;
use crate::telemetry::{Endpoint, Origin, Refused, RequestId, Telemetry};
use crate::tools::Toolbox;

/// Where all of it is.
const BASE: &str = "/api/v1";

/// The face, with the routes it knows.
#[derive(Debug, Clone)]
pub(super) struct Api {
    telemetry: Telemetry,
    routes: Arc<Routes>,
}

/// One request, as routes see it.
#[derive(Debug)]
struct Call<'a> {
    toolbox: &'a Toolbox,
    limits: Limits,
    /// The path of the list, as clients write it.
    path: String,
    parameters: Parameters,
    /// The caller wants to know what the answer would have been without any shaping.
    compares: bool,
}

/// Asks for what shaping saves.
pub(super) const CONTEXT_BUDGET: &str = "x-context-budget";

impl Api {
    pub(super) fn new(telemetry: Telemetry) -> Self {
        Self { telemetry, routes: Arc::default() }
    }

    /// `/api/v1` and all below it.
    pub(super) fn routes(&self) -> Router {
        let all = any(answer).with_state(self.clone());
        ["/api/v1", "/api/v1/", "/api/v1/{*rest}"]
            .into_iter()
            .fold(Router::new(), |router, path| router.route(path, all.clone()))
    }
}

/// Answers one request, whatever happens on the way.
async fn answer(State(api): State<Api>, request: Request) -> Response {
    // A body is not looked at: no route takes one.
    let (request, _) = request.into_parts();
    let id = request.extensions.get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
    let found = find(&api, &request).await;
    let endpoint =
        found.as_ref().map_or_else(|_| format!("{BASE}/{{unknown}}"), |(_, place)| place.template());
    let record = api.telemetry.call(Endpoint::route(&endpoint), Origin::of(&request.extensions));
    let call = async {
        let (toolbox, place) = found?;
        answered(&toolbox, place, &request).await
    };
    let call = AssertUnwindSafe(call).catch_unwind();
    match call.await.unwrap_or_else(|_panic| Err(ApiError::internal().into())) {
        Ok(answer) => {
            record.answered(&answer.shaping);
            response(answer)
        }
        Err(failure) => {
            let body = failure.body(id.as_str());
            record.refused(
                failure.code(),
                Refused { bytes: sent_bytes(&request.method, body.len()), reason: failure.reason() },
            );
            refusal(&failure, body)
        }
    }
}

fn checked(request: &Parts) -> Result<(), ApiError> {
    if request.method != Method::GET {
        let problem = "records are read with GET".to_owned();
        return Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", problem));
    }
    Ok(())
}

/// What a request leads to, in whose records.
async fn find(api: &Api, request: &Parts) -> Result<(Arc<Toolbox>, Place), Failure> {
    checked(request)?;
    let toolbox = toolbox_of(&request.extensions).ok_or_else(ApiError::internal)?;
    let place = place_of(api, &toolbox, request.uri.path()).await?;
    Ok((toolbox, place))
}

/// What a path leads to.
async fn place_of(api: &Api, toolbox: &Toolbox, path: &str) -> Result<Place, Failure> {
    // One slash before and one behind, as people write them; with more a path is another one.
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(handle) = rest.strip_prefix("content/") {
        return Ok(Place::Content(handle.to_owned()));
    }
    let routes = tokio::time::timeout(toolbox.call_deadline(), api.routes.of(toolbox)).await;
    let routes = routes.unwrap_or_else(|_late| Err(late(toolbox)))?;
    if rest.is_empty() {
        return Ok(Place::Index(routes));
    }
    routes.place(rest).ok_or_else(|| routes.unknown(rest).into())
}

async fn answered(toolbox: &Toolbox, place: Place, request: &Parts) -> Result<Answer, Failure> {
    let compares = request.headers.get(CONTEXT_BUDGET).is_some_and(|asked| asked == "compare");
    let mut call = Call {
        toolbox,
        limits: toolbox.protection().limits(&place.limited_as()),
        path: place.path(),
        parameters: Parameters::read(request.uri.query())?,
        compares,
    };
    let work = async {
        match place {
            Place::Index(routes) => routes.index(&mut call),
            Place::Content(handle) => content::answer(&mut call, &handle).await,
            Place::List(route) => list::answer(&mut call, &route).await,
            Place::Record(route, record) => detail::answer(&mut call, &route, record).await,
        }
    };
    let answered = tokio::time::timeout(toolbox.call_deadline(), work).await;
    answered.unwrap_or_else(|_late| Err(late(toolbox)))
}

fn late(toolbox: &Toolbox) -> Failure {
    let problem = format!("no answer within {} seconds", toolbox.call_deadline().as_secs());
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "source_timeout", problem).into()
}

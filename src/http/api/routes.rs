//! Where paths lead: by the routes of manifests, else by the names of streams.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use super::error::Failure;
use super::{BASE, Call};
use crate::fit::{PageBudget, clip};
use crate::handle::{RecordId, StreamName};
use crate::http::v1::ApiError;
use crate::source::Source;
use crate::tools::Toolbox;

/// How long routes are believed before they are looked up again. A manifest changes with an import.
const FRESH: Duration = Duration::from_secs(10);

/// Callers whose routes are kept.
const KEPT_MOST: u64 = 1_000;

/// The most routes of manifests.
const ROUTES_MOST: usize = 200;

/// Routes that a refusal names.
const NAMED: usize = 30;

/// A path and the stream it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The whole path, such as `/api/v1/bookings`.
    pub(super) path: String,
    /// The stream.
    pub(super) stream: StreamName,
    /// What one of its records is called.
    pub(super) record_type: Option<String>,
    /// No manifest says so: it is the stream's name.
    pub(super) is_by_name: bool,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Place {
    /// What there is.
    Index(Arc<KnownRoutes>),
    /// A text of a record; its handle as it was sent.
    Content(String),
    /// The records of a stream.
    List(Route),
    /// One of them.
    Record(Route, RecordId),
}

/// The routes of a source, in the order of its connections.
#[derive(Debug, Default)]
pub(super) struct KnownRoutes(Vec<Route>);

/// The routes that were seen lately, by the sources and the caller they are of.
#[derive(Debug)]
pub(super) struct Routes(Cache<String, Arc<KnownRoutes>>);

impl Default for Routes {
    fn default() -> Self {
        let kept = Cache::builder().max_capacity(KEPT_MOST).eviction_policy(EvictionPolicy::lru());
        Self(kept.time_to_live(FRESH).build())
    }
}

/// What `/api/v1` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Collections")]
pub(super) struct Index<'a> {
    routes: Vec<IndexRow<'a>>,
    /// Routes that do not fit.
    #[serde(skip_serializing_if = "is_none")]
    more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Collection")]
struct IndexRow<'a> {
    /// Where its records are.
    path: &'a str,
    /// The stream they are of.
    stream: &'a str,
    /// What one of them is called.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    record_type: Option<&'a str>,
}

impl Routes {
    /// The routes of what is served now.
    pub(super) async fn of(&self, toolbox: &Toolbox) -> Result<Arc<KnownRoutes>, Failure> {
        let identity = toolbox.identity();
        if let Some(known) = self.0.get(&identity) {
            return Ok(known);
        }
        let routes = Arc::new(KnownRoutes::read(toolbox.asked_source().as_ref()).await?);
        self.0.insert(identity, Arc::clone(&routes));
        Ok(routes)
    }
}

impl KnownRoutes {
    async fn read(source: &dyn Source) -> Result<Self, Failure> {
        let schema = source.schema().await?;
        let mut routes: Vec<Route> = Vec::new();
        for route in schema.connections.iter().flat_map(|connection| &connection.routes) {
            // What the first connection says of a path goes for all: two connectors that take one path have to be
            // served apart.
            if !routes.iter().any(|known| known.path == route.path) {
                routes.push(Route {
                    path: route.path.clone(),
                    stream: route.stream.clone(),
                    record_type: route.record_type.clone(),
                    is_by_name: false,
                });
            }
        }
        // A path is the name of an endpoint in what is counted, and these names are bounded.
        routes.truncate(ROUTES_MOST);
        for stream in schema.connections.iter().flat_map(|connection| &connection.streams) {
            let path = format!("{BASE}/{}", stream.name);
            if !routes.iter().any(|known| known.path == path) {
                routes.push(Route { path, stream: stream.name.clone(), record_type: None, is_by_name: true });
            }
        }
        Ok(Self(routes))
    }

    /// What the rest of a path leads to: a list, or a record under its key.
    pub(super) fn place(&self, rest: &str) -> Option<Place> {
        let decoded =
            |text: &str| percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned);
        let list = |path: &str| {
            let path = format!("{BASE}/{}", decoded(path)?);
            self.0.iter().find(|route| route.path == path).cloned()
        };
        if let Some(route) = list(rest) {
            return Some(Place::List(route));
        }
        let (before, key) = rest.rsplit_once('/')?;
        Some(Place::Record(list(before)?, decoded(key)?.parse().ok()?))
    }

    /// A path that leads nowhere.
    pub(super) fn unknown(&self, rest: &str) -> ApiError {
        let paths: Vec<&str> = self.0.iter().take(NAMED).map(|route| route.path.as_str()).collect();
        let problem = format!("there is nothing at `{BASE}/{}`", clip(rest, 200));
        ApiError::not_found(problem).hinting(&match paths.as_slice() {
            [] => "No stream is served: import one.".to_owned(),
            paths => format!("There are {}, and records below them by their id.", paths.join(", ")),
        })
    }

    pub(super) fn index(&self, call: &mut Call<'_>) -> Result<Answer, Failure> {
        call.parameters.nothing_else()?;
        let row = |route| -> IndexRow<'_> {
            let Route { path, stream, record_type, .. }: &Route = route;
            IndexRow { path, stream: stream.as_str(), record_type: record_type.as_deref() }
        };
        let cap = PageBudget::most(&call.limits);
        let mut shown = self.0.len();
        loop {
            let more = self.0.len() - shown;
            let answer =
                Answer::of(&Index { routes: self.0.iter().take(shown).map(row).collect(), more }, shown)?;
            if answer.is_within(cap) {
                return Ok(answer);
            }
            if shown == 0 {
                let problem = format!("not one route fits into the hard cap of {} tokens", cap.tokens);
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
                    .hinting("Raise `hard_cap` for this path in the configuration.")
                    .into());
            }
            shown = shown * 3 / 4;
        }
    }
}

impl Place {
    /// What its calls are recorded as. A name that no manifest was checked for is not among it.
    pub(super) fn template(&self) -> String {
        let list = |route: &Route| match route.is_by_name {
            true => format!("{BASE}/{{stream}}"),
            false => route.path.clone(),
        };
        match self {
            Self::Index(_) => BASE.to_owned(),
            Self::Content(_) => format!("{BASE}/content/{{id}}"),
            Self::List(route) => list(route),
            Self::Record(route, _) => format!("{}/{{id}}", list(route)),
        }
    }

    /// What the configuration knows it by: where it leads and not how it was written, so that no spelling gets around it.
    pub(super) fn limited_as(&self) -> String {
        match self {
            Self::Record(route, record) => format!("{}/{record}", route.path),
            Self::Index(_) | Self::Content(_) | Self::List(_) => self.path(),
        }
    }

    /// The path of its list.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Index(_) => BASE.to_owned(),
            Self::Content(_) => format!("{BASE}/content"),
            Self::List(route) | Self::Record(route, _) => route.path.clone(),
        }
    }
}

//! Resolves paths: by the routes of manifests, otherwise by the names of streams.
//!
//! Routes are cached per caller and set of sources.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use fetchwell_core::fit::{PageBudget, clip, tokens_within};
use fetchwell_core::handle::{RecordId, StreamName};
use fetchwell_core::lru::{LruCache, LruLimits};
use fetchwell_source::BoundSource;
use fetchwell_tools::Toolbox;
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::Serialize;

use super::call::{BASE, Call};
use super::error::ApiError;
use crate::answer::Answer;
use crate::error::RequestError;

/// Time to live of cached routes. A manifest changes with an import.
const TIME_TO_LIVE: Duration = Duration::from_secs(10);

/// Maximum number of callers with cached routes.
const MAX_CALLERS: u64 = 1_000;

/// Maximum number of routes from manifests.
const MAX_ROUTES: usize = 200;

/// Maximum number of routes that an error names.
const MAX_NAMED_ROUTES: usize = 30;

/// Path and the stream that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// Complete path, such as `/api/v1/bookings`.
    pub(super) path: String,
    /// Name of the stream.
    pub(super) stream: StreamName,
    /// Name of one record of the stream.
    pub(super) record_type: Option<String>,
    /// True if no manifest defines the route, so that it is the name of the stream.
    pub(super) is_by_name: bool,
}

/// Target of a path.
#[derive(Debug)]
pub(super) enum Target {
    /// Index of all collections.
    Index(Arc<KnownRoutes>),
    /// Text of a record, by its handle as sent.
    Content(String),
    /// Records of a stream.
    List(Route),
    /// One record of a stream.
    Record(Route, RecordId),
}

/// Routes of a source, in the order of its connections.
#[derive(Debug, Default)]
pub(super) struct KnownRoutes(Vec<Route>);

/// Cache of routes, by the identity of the sources and the caller.
#[derive(Debug)]
pub(super) struct Routes(LruCache<String, Arc<KnownRoutes>>);

impl Default for Routes {
    fn default() -> Self {
        Self(LruCache::new(LruLimits::new(MAX_CALLERS).with_lifetime(TIME_TO_LIVE)))
    }
}

/// Response of `/api/v1`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Collections")]
pub(super) struct Index<'a> {
    routes: Vec<IndexRow<'a>>,
    /// Number of routes that do not fit.
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
    /// Path of the records.
    path: &'a str,
    /// Stream of the records.
    stream: &'a str,
    /// Name of one record.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    record_type: Option<&'a str>,
}

impl Routes {
    /// Returns the routes of a toolbox, from the cache if they are recent.
    pub(super) async fn get(&self, toolbox: &Toolbox) -> Result<Arc<KnownRoutes>, ApiError> {
        let identity = toolbox.identity();
        if let Some(known) = self.0.get(&identity) {
            return Ok(known);
        }
        let routes = Arc::new(KnownRoutes::read(toolbox.source()).await?);
        self.0.insert(identity, Arc::clone(&routes));
        Ok(routes)
    }
}

impl KnownRoutes {
    async fn read(source: &BoundSource) -> Result<Self, ApiError> {
        let schema = source.schema().await?;
        let mut routes: Vec<Route> = Vec::new();
        for route in schema.connections.iter().flat_map(|connection| &connection.routes) {
            // The first connection with a path determines its stream: two connectors that use the same path cannot be
            // served together.
            if !routes.iter().any(|known| known.path == route.path) {
                routes.push(Route {
                    path: route.path.clone(),
                    stream: route.stream.clone(),
                    record_type: route.record_type.clone(),
                    is_by_name: false,
                });
            }
        }
        // Paths are names of endpoints in metrics, so their number is bounded.
        routes.truncate(MAX_ROUTES);
        for stream in schema.connections.iter().flat_map(|connection| &connection.streams) {
            // Another API has the path. A manifest can give the stream one of its own.
            if is_of_document_search(stream.name.as_str()) {
                continue;
            }
            let path = format!("{BASE}/{}", stream.name);
            if !routes.iter().any(|known| known.path == path) {
                routes.push(Route { path, stream: stream.name.clone(), record_type: None, is_by_name: true });
            }
        }
        Ok(Self(routes))
    }

    /// Resolves the rest of a path to a list, or to a record by its key.
    pub(super) fn target(&self, rest: &str) -> Option<Target> {
        let decoded =
            |text: &str| percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned);
        let list = |path: &str| {
            let path = format!("{BASE}/{}", decoded(path)?);
            self.0.iter().find(|route| route.path == path).cloned()
        };
        if let Some(route) = list(rest) {
            return Some(Target::List(route));
        }
        let (before, key) = rest.rsplit_once('/')?;
        Some(Target::Record(list(before)?, decoded(key)?.parse().ok()?))
    }

    /// Returns the error for a path without a target.
    pub(super) fn unknown(&self, rest: &str) -> RequestError {
        let paths: Vec<&str> =
            self.0.iter().take(MAX_NAMED_ROUTES).map(|route| route.path.as_str()).collect();
        let problem = format!("there is nothing at `{BASE}/{}`", clip(rest, 200));
        RequestError::not_found(problem).hinting(&match paths.as_slice() {
            [] => "No stream is served: import one.".to_owned(),
            paths => format!("The paths are {}, and records below them by their id.", paths.join(", ")),
        })
    }

    pub(super) fn index(&self, call: &mut Call<'_>) -> Result<Answer, ApiError> {
        call.parameters.reject_remaining()?;
        let row = |route| -> IndexRow<'_> {
            let Route { path, stream, record_type, .. }: &Route = route;
            IndexRow { path, stream: stream.as_str(), record_type: record_type.as_deref() }
        };
        let cap = PageBudget::cap(&call.limits);
        let mut shown = self.0.len();
        loop {
            let more = self.0.len() - shown;
            let routes = self.0.iter().take(shown).map(row).collect();
            let answer = Answer::new(&Index { routes, more })?.with_items(shown);
            if answer.body.len() <= cap.bytes && tokens_within(&answer.body, cap.tokens).is_ok() {
                return Ok(answer);
            }
            if shown == 0 {
                let problem = format!("not one route fits into the hard cap of {} tokens", cap.tokens);
                return Err(RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
                    .hinting("Raise `hard_cap` for this path in the configuration.")
                    .into());
            }
            shown = shown * 3 / 4;
        }
    }
}

/// Returns true if document search has the path that a stream would have by its name.
fn is_of_document_search(name: &str) -> bool {
    matches!(name, "search" | "projects" | "admin")
}

impl Target {
    /// Returns the name of the endpoint in telemetry. It contains no stream name that a manifest did not define.
    pub(super) fn template(&self) -> String {
        let list = |route: &Route| {
            if route.is_by_name { format!("{BASE}/{{stream}}") } else { route.path.clone() }
        };
        match self {
            Self::Index(_) => BASE.to_owned(),
            Self::Content(_) => format!("{BASE}/content/{{id}}"),
            Self::List(route) => list(route),
            Self::Record(route, _) => format!("{}/{{id}}", list(route)),
        }
    }

    /// Returns the path that determines the configured limits. It depends on the target and not on the spelling, so
    /// that no spelling bypasses a limit.
    pub(super) fn limits_key(&self) -> String {
        match self {
            Self::Record(route, record) => format!("{}/{record}", route.path),
            Self::Index(_) | Self::Content(_) | Self::List(_) => self.path(),
        }
    }

    /// Returns the path of the list.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Index(_) => BASE.to_owned(),
            Self::Content(_) => format!("{BASE}/content"),
            Self::List(route) | Self::Record(route, _) => route.path.clone(),
        }
    }
}

//! `GET /health` and the liveness and readiness probes.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fetchwell_core::record::Unavailable;
use fetchwell_source::BackendStatus;
use fetchwell_telemetry::{Aggregates, ContextProtection, EmbeddingBuild, ImportProgress, StorageStatus};
use jiff::Timestamp;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use super::shared_state::{SharedStateHealth, redis_status};
use super::source_health::{backends_of, unavailable_sources};
use crate::api::MissingSource;
use crate::description::describe_response;
use crate::probes::PROBES;
use crate::site::Site;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// All sources can be read.
    Healthy,
    /// Some sources, or the state that servers share, cannot be used.
    Degraded,
    /// No source can be read.
    Unhealthy,
}

/// Connection to something that the server reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Connection {
    Connected,
    Disconnected,
}

impl Connection {
    fn new(is_connected: bool) -> Self {
        if is_connected { Self::Connected } else { Self::Disconnected }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    timestamp: String,
    version: &'static str,
    service: &'static str,
    /// `disconnected` if no source can be read.
    database: Connection,
    /// `disconnected` while the Redis that servers share cannot be used. A cache in memory alone is always `connected`.
    cache: Connection,
    /// Kind of cache: in memory, and in Redis if servers share their state.
    cache_kind: &'static str,
    contracts: Contracts,
    uptime_seconds: u64,
    /// Places that the sources read from. The numbers of connections are those of this process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backends: Vec<BackendStatus>,
    /// Sources that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<MissingSource>,
    /// Stores with records that are embedded while the server runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    embeddings: Vec<EmbeddingBuild>,
    /// Imports that the server keeps current.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imports: Vec<ImportProgress>,
    /// State that servers share, if this one shares its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_state: Option<SharedStateHealth>,
    context_protection: ContextProtection,
    telemetry: StorageStatus,
}

/// Versions of the contracts that are served.
#[derive(Debug, Serialize, JsonSchema)]
struct Contracts {
    /// Version of the document-search contract.
    docs_search: &'static str,
}

/// Returns the route of `/health`. Its requests are not recorded as calls.
pub(crate) fn routes(site: Site) -> Router {
    Router::new().route("/health", get(answer)).with_state(site)
}

/// Returns the liveness and readiness probes. They are unauthenticated and return only a status.
pub(crate) fn probes(site: Site) -> Router {
    let [live, ready_path] = PROBES;
    Router::new()
        .route(live, get(async || status_response(StatusCode::OK, None)))
        .route(ready_path, get(ready))
        .with_state(site)
}

async fn ready(State(site): State<Site>) -> Response {
    let status = match unavailable(&site).await {
        Ok(_) => StatusCode::OK,
        Err(_code) => StatusCode::SERVICE_UNAVAILABLE,
    };
    // A server is ready without Redis: answers then have no cursors.
    let redis = match &site.state {
        Some(redis) => Some(redis_status(redis).await),
        None => None,
    };
    status_response(status, redis)
}

fn status_response(status: StatusCode, redis: Option<&'static str>) -> Response {
    let word = if status == StatusCode::OK { "ok\n" } else { "unavailable\n" };
    let redis = redis.map(|status| format!("redis: {status}\n")).unwrap_or_default();
    let word = format!("{word}{redis}");
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, word).into_response()
}

/// Returns the sources that are unavailable, or an error code if all of them are. A source that uses the caller's token is not
/// checked.
async fn unavailable(site: &Site) -> Result<Vec<Unavailable>, String> {
    match site.served.everything() {
        Some(sources) => unavailable_sources(sources.source()).await,
        None => Ok(Vec::new()),
    }
}

/// Descriptions of 401 and 403 for `/health` and `/metrics`.
pub(crate) const TOKEN_NEEDED: &str = "With authentication, a token with `metrics = true` is needed";
pub(crate) const REFUSED: &str = "`Host` or `Origin` is not allowed, the token has no `metrics = true`, or without \
                                  authentication the request came through a proxy";

/// Describes `/health` for `/openapi.json`.
pub(crate) fn described(generator: &mut SchemaGenerator) -> Value {
    let health = generator.subschema_for::<Health>();
    let answer = |about| describe_response(about, "application/json", health.clone());
    json!({ "get": {
        "operationId": "getHealth",
        "summary": "Whether records can be read, and what all calls come to",
        "responses": {
            "200": answer("Records of at least one source can be read"),
            "401": describe_response(TOKEN_NEEDED, "application/json", json!({ "type": "object" })),
            "403": describe_response(REFUSED, "application/json", json!({ "type": "object" })),
            "503": answer("No record can be read"),
        },
    } })
}

async fn shared_state(site: &Site) -> Option<SharedStateHealth> {
    SharedStateHealth::read(site.state.as_ref(), &site.rate_limiter, &site.key_mismatch).await
}

async fn answer(State(site): State<Site>) -> Response {
    let (status, unavailable) = match unavailable(&site).await {
        Ok(missing) if missing.is_empty() => (Status::Healthy, missing),
        Ok(missing) => (Status::Degraded, missing),
        Err(_code) => (Status::Unhealthy, Vec::new()),
    };
    let is_down = status == Status::Unhealthy;
    let shared_state = shared_state(&site).await;
    let is_without_state = shared_state.as_ref().is_some_and(|state| !state.is_healthy());
    let status = if status == Status::Healthy && is_without_state { Status::Degraded } else { status };
    let Aggregates { context_protection, telemetry } = site.telemetry.aggregates();
    let health = Health {
        status,
        error: is_down.then_some("Database connection failed"),
        timestamp: format!("{:.3}", Timestamp::now()),
        version: env!("CARGO_PKG_VERSION"),
        service: "fetchwell",
        database: Connection::new(!is_down),
        cache: Connection::new(shared_state.as_ref().is_none_or(SharedStateHealth::is_connected)),
        cache_kind: if shared_state.is_some() { "memory and redis" } else { "memory" },
        contracts: Contracts { docs_search: "5.1.0" },
        uptime_seconds: context_protection.uptime_seconds,
        backends: backends_of(&site).await,
        unavailable: unavailable.iter().map(MissingSource::from).collect(),
        embeddings: site.telemetry.embeddings(),
        imports: site.telemetry.imports(),
        shared_state,
        context_protection,
        telemetry,
    };
    let code = if is_down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (code, headers, serde_json::to_string(&health).unwrap_or_default()).into_response()
}

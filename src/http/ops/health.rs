//! `GET /health` and the liveness and readiness probes.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::api::MissingSource;
use crate::http::description::describe_response;
use crate::http::probes::PROBES;
use crate::http::site::Site;
use crate::record::Unavailable;
use crate::source::BackendStatus;
use crate::telemetry::{Aggregates, ContextProtection, EmbeddingBuild, ImportProgress, StorageStatus};

/// Status of a shared Redis that can be used.
const CONNECTED: &str = "connected";

/// Timeout of the health checks of all sources.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// All sources can be read.
    Healthy,
    /// Some sources, or the state that servers share, cannot be read.
    Degraded,
    /// No source can be read.
    Unhealthy,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    timestamp: String,
    version: &'static str,
    service: &'static str,
    database: &'static str,
    cache: &'static str,
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

/// Health of the state that servers share, as this process sees it.
#[derive(Debug, Serialize, JsonSchema)]
struct SharedStateHealth {
    backend: &'static str,
    /// Address without user and password.
    address: String,
    /// `connected`, or the reason why the server cannot be used, such as `unreachable`.
    status: &'static str,
    /// Commands of this process.
    commands: u64,
    /// Failed commands of this process by their reason.
    failures: BTreeMap<&'static str, u64>,
    /// Requests to this process that no rate limit counted.
    rate_limit_uncounted: u64,
}

/// Versions of the contracts that are served.
#[derive(Debug, Serialize, JsonSchema)]
struct Contracts {
    /// Version of the document-search contract.
    docs_search: &'static str,
}

/// Returns the route of `/health`. Its requests are not recorded as calls.
pub(in crate::http) fn routes(site: Site) -> Router {
    Router::new().route("/health", get(answer)).with_state(site)
}

/// Returns the liveness and readiness probes. They are unauthenticated and return only a status.
pub(in crate::http) fn probes(site: Site) -> Router {
    let [live, ready_path] = PROBES;
    Router::new()
        .route(live, get(async || status_response(StatusCode::OK, None)))
        .route(ready_path, get(ready))
        .with_state(site)
}

async fn ready(State(site): State<Site>) -> Response {
    match unavailable_sources(&site).await {
        Ok(_) => status_response(StatusCode::OK, redis_status(&site).await),
        Err(()) => status_response(StatusCode::SERVICE_UNAVAILABLE, redis_status(&site).await),
    }
}

/// Returns the status of the shared Redis, if there is one. A server is ready without it: answers then have no cursors.
async fn redis_status(site: &Site) -> Option<&'static str> {
    let redis = site.state.as_ref()?;
    Some(redis.time().await.map_or_else(|error| error.kind(), |_now| CONNECTED))
}

fn status_response(status: StatusCode, redis: Option<&'static str>) -> Response {
    let word = if status == StatusCode::OK { "ok\n" } else { "unavailable\n" };
    let redis = redis.map(|status| format!("redis: {status}\n")).unwrap_or_default();
    let word = format!("{word}{redis}");
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, word).into_response()
}

/// Returns the sources that are unavailable, or an error if all of them are.
async fn unavailable_sources(site: &Site) -> Result<Vec<Unavailable>, ()> {
    // A source that uses the caller's token can be checked only with such a token.
    let Some(sources) = site.served.everything() else { return Ok(Vec::new()) };
    match tokio::time::timeout(HEALTH_TIMEOUT, sources.source().health()).await {
        Ok(Ok(missing)) => Ok(missing),
        Ok(Err(_)) | Err(_) => Err(()),
    }
}

/// Returns the places that are read from. A source that uses the caller's token is not one of them.
pub(super) async fn backends(site: &Site) -> Vec<BackendStatus> {
    let Some(sources) = site.served.everything() else { return Vec::new() };
    let asked = tokio::time::timeout(HEALTH_TIMEOUT, sources.source().backends());
    asked.await.unwrap_or_default()
}

/// Descriptions of 401 and 403 for `/health` and `/metrics`.
pub(in crate::http) const TOKEN_NEEDED: &str = "With authentication, a token with `metrics = true` is needed";
pub(in crate::http) const REFUSED: &str = "`Host` or `Origin` is not allowed, the token has no `metrics = true`, or without \
                                  authentication the request came through a proxy";

/// Describes `/health` for `/openapi.json`.
pub(in crate::http) fn described(generator: &mut SchemaGenerator) -> Value {
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
    let redis = site.state.as_ref()?;
    let status = redis_status(site).await?;
    let counts = redis.counts();
    Some(SharedStateHealth {
        backend: "redis",
        address: redis.url().to_string(),
        status,
        commands: counts.commands,
        failures: counts.failures,
        rate_limit_uncounted: site.rate_limiter.uncounted(),
    })
}

async fn answer(State(site): State<Site>) -> Response {
    let (status, unavailable) = match unavailable_sources(&site).await {
        Ok(missing) if missing.is_empty() => (Status::Healthy, missing),
        Ok(missing) => (Status::Degraded, missing),
        Err(()) => (Status::Unhealthy, Vec::new()),
    };
    let is_down = status == Status::Unhealthy;
    let shared_state = shared_state(&site).await;
    let is_without_state = shared_state.as_ref().is_some_and(|state| state.status != CONNECTED);
    let status = if status == Status::Healthy && is_without_state { Status::Degraded } else { status };
    let Aggregates { context_protection, telemetry } = site.telemetry.aggregates();
    let health = Health {
        status,
        error: is_down.then_some("Database connection failed"),
        timestamp: format!("{:.3}", Timestamp::now()),
        version: env!("CARGO_PKG_VERSION"),
        service: "fetchwell",
        database: if is_down { "disconnected" } else { "connected" },
        cache: "connected",
        cache_kind: if shared_state.is_some() { "memory and redis" } else { "memory" },
        contracts: Contracts { docs_search: "5.1.0" },
        uptime_seconds: context_protection.uptime_seconds,
        backends: backends(&site).await,
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

//! `GET /metrics`: the counters of this process in Prometheus' text format.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fetchwell_core::saturate::saturated;
use fetchwell_source::{BackendStatus, PoolUsage};
use fetchwell_telemetry::{Gauge, expose_gauges, shared_state_metrics};
use serde_json::{Value, json};

use super::health::{REFUSED, TOKEN_NEEDED};
use super::source_health::backends_of;
use crate::description::describe_response;
use crate::site::Site;

/// Returns the route of `/metrics`. Its requests are not recorded as calls.
pub(crate) fn routes(site: Site) -> Router {
    Router::new().route("/metrics", get(answer)).with_state(site)
}

/// Describes `/metrics` for `/openapi.json`.
pub(crate) fn described() -> Value {
    let text = |about| describe_response(about, "text/plain", json!({ "type": "string" }));
    json!({ "get": {
        "operationId": "getMetrics",
        "summary": "The counters of this process in Prometheus' text format",
        "responses": { "200": text("The counters"), 
            "401": describe_response(TOKEN_NEEDED, "application/json", json!({ "type": "object" })),
            "403": describe_response(REFUSED, "application/json", json!({ "type": "object" })),
        },
    } })
}

async fn answer(State(site): State<Site>) -> Response {
    let mut text = site.telemetry.exposition() + &exposition(&backends_of(&site).await);
    if let Some(redis) = &site.state {
        text.push_str(&shared_state_metrics(&redis.counts(), site.rate_limiter.uncounted()));
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Exposes what the sources read from, with the connections of this process.
fn exposition(backends: &[BackendStatus]) -> String {
    let mut gauges = vec![Gauge {
        name: "fetchwell_backend",
        help: "Kind of the place that a source reads from; always 1.",
        samples: Vec::new(),
    }];
    for backend in backends {
        add_sample(&mut gauges, 0, &[source_label(backend), ("kind", backend.kind.as_str())], 1);
    }
    gauges.extend(POOL_GAUGES.map(|(name, help, _)| Gauge { name, help, samples: Vec::new() }));
    for (at, (_, _, count)) in POOL_GAUGES.iter().enumerate() {
        for backend in backends {
            if let Some(pool) = &backend.pool {
                let count = saturated::<u64>(count(pool));
                add_sample(&mut gauges, at + 1, &[source_label(backend)], count);
            }
        }
    }
    let mut lags = Gauge {
        name: "fetchwell_backend_replica_lag_milliseconds",
        help: "Time by which a read replica is behind the primary, at most.",
        samples: Vec::new(),
    };
    let mut used = Gauge {
        name: "fetchwell_backend_replica_used",
        help: "1 if this process reads from the replica.",
        samples: Vec::new(),
    };
    for backend in backends {
        for replica in &backend.replicas {
            let labels = vec![source_label(backend), ("replica", replica.database.as_str())];
            used.samples.push((labels.clone(), u64::from(replica.is_used)));
            lags.samples.extend(replica.lag_ms.map(|lag| (labels, lag)));
        }
    }
    gauges.extend([lags, used]);
    expose_gauges(&gauges)
}

/// Name, description and value of a gauge of connections.
type PoolGauge = (&'static str, &'static str, fn(&PoolUsage) -> usize);

const POOL_GAUGES: [PoolGauge; 4] = [
    (
        "fetchwell_backend_connections_max",
        "Maximum number of database connections of this process.",
        |pool| pool.maximum,
    ),
    ("fetchwell_backend_connections_open", "Open database connections of this process.", |pool| pool.open),
    (
        "fetchwell_backend_connections_in_use",
        "Database connections that calls of this process use.",
        |pool| pool.in_use,
    ),
    (
        "fetchwell_backend_waiting_calls",
        "Calls of this process that wait for a database connection.",
        |pool| pool.waiting,
    ),
];

fn source_label(backend: &BackendStatus) -> (&str, &str) {
    ("source", backend.source.as_str())
}

fn add_sample<'a>(gauges: &mut [Gauge<'a>], at: usize, labels: &[(&'a str, &'a str)], value: u64) {
    if let Some(gauge) = gauges.get_mut(at) {
        gauge.samples.push((labels.to_vec(), value));
    }
}

//! `GET /metrics`: the counters of this process in Prometheus' text format.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::health::{REFUSED, TOKEN_NEEDED};
use crate::http::description::describe_response;
use crate::http::site::Site;
use crate::telemetry::shared_state_metrics;

/// Returns the route of `/metrics`. Its requests are not recorded as calls.
pub(in crate::http) fn routes(site: Site) -> Router {
    Router::new().route("/metrics", get(answer)).with_state(site)
}

/// Describes `/metrics` for `/openapi.json`.
pub(in crate::http) fn described() -> Value {
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
    let mut text = site.telemetry.exposition();
    if let Some(redis) = &site.state {
        text.push_str(&shared_state_metrics(&redis.counts(), site.rate_limiter.uncounted()));
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

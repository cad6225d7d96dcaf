//! The operations listener: `/health`, `/metrics` and the probes at an address of their own (`ops_listen`), without
//! authentication and without TLS. No record, and nothing of a caller, is served there.

use std::io;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::allowed_names::asked_by_name;
use super::connections::{Connections, MAX_UNSENT_WITHOUT_CALLER};
use super::defect::answered_in_any_case;
use super::limits::{Patience, in_time};
use super::proxied::{ProxyGuard, refuse_proxied};
use super::{Limits, Site, TrustedProxies, health, metrics, request_id};

/// Connections at a time. They are apart from those of callers, so that figures can be read while `max_connections`
/// are taken.
const MAX_CONNECTIONS: u32 = 64;

/// Connections of one address at a time, so that one program cannot take them all.
const MAX_CONNECTIONS_PER_ADDRESS: u32 = MAX_CONNECTIONS / 2;

/// Serves the figures of `site` until `stop` is cancelled.
///
/// # Errors
///
/// The socket failed.
pub async fn serve_ops(listener: TcpListener, site: Site, stop: CancellationToken) -> Result<(), io::Error> {
    // An IP address as a host name is safe from DNS rebinding, because DNS does not resolve it.
    let names = site.names.listening_at(listener.local_addr()?).and_every_address();
    let limits = Limits {
        connections: MAX_CONNECTIONS,
        connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
        ..site.limits.clone()
    };
    // Connections of trusted proxies are counted here: each is one scraper.
    let proxies = TrustedProxies::default();
    let app = app(Site { names, limits: limits.clone(), ..site });
    let connections = Connections {
        app,
        limits,
        proxies,
        unsent_without_caller: MAX_UNSENT_WITHOUT_CALLER,
        tls: None,
        stop,
        drop_calls: CancellationToken::new(),
    };
    connections.serve(listener).await;
    Ok(())
}

fn app(site: Site) -> Router {
    let telemetry = site.telemetry.clone();
    let patience = Patience {
        served: site.served.clone(),
        beyond_call: site.limits.beyond_call,
        telemetry: telemetry.clone(),
    };
    let guard = ProxyGuard::new_for_ops(site.proxies.clone(), telemetry.clone());
    Router::new()
        .merge(health::routes(site.clone()))
        .merge(health::probes(site.clone()))
        .merge(metrics::routes(telemetry.clone()))
        .fallback(unknown_path)
        .layer(from_fn_with_state(patience, in_time))
        .layer(from_fn_with_state((site.names, telemetry.clone()), asked_by_name))
        .layer(from_fn_with_state(telemetry, answered_in_any_case))
        .layer(from_fn_with_state(guard, refuse_proxied))
        .layer(from_fn(request_id::identified))
}

async fn unknown_path() -> Response {
    let text = "This address serves /health, /metrics, /health/live and /health/ready.\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

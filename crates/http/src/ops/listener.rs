//! The operations listener: `/health`, `/metrics` and the probes at a separate address (`ops_listen`), without
//! authentication and TLS. No records and no data of callers are served there.

use std::io;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{health, metrics};
use crate::error_format;
use crate::middleware::catch_panic::catch_panic;
use crate::middleware::check_host::{HostCheck, check_host};
use crate::middleware::refusal::ErrorResponder;
use crate::middleware::refuse_proxied::{ProxyGuard, refuse_proxied};
use crate::middleware::request_id::set_request_id;
use crate::middleware::timeout::{RequestTimeout, timeout};
use crate::server::connections::Connections;
use crate::server::limits::Limits;
use crate::site::Site;

/// Maximum number of connections. They are separate from those of callers, so that metrics can be read while
/// `max_connections` are in use.
const MAX_CONNECTIONS: u32 = 64;

/// Maximum number of connections per address, so that one program cannot use all of them.
const MAX_CONNECTIONS_PER_ADDRESS: u32 = MAX_CONNECTIONS / 2;

/// Serves the operations endpoints of `site` until `stop` is cancelled.
///
/// # Errors
///
/// Returns an error if the address of the socket cannot be read.
pub async fn serve_ops(listener: TcpListener, site: Site, stop: CancellationToken) -> Result<(), io::Error> {
    // Allowing IP addresses as host names is safe from DNS rebinding, because DNS does not resolve them.
    let names = site.names.listening_at(listener.local_addr()?).and_every_address();
    let limits = Limits {
        connections: MAX_CONNECTIONS,
        connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
        ..site.limits.clone()
    };
    let app = app(Site { names, limits: limits.clone(), ..site });
    // Connections of trusted proxies are counted here, because each is one scraper.
    Connections::without_callers(app, limits, stop).serve(listener).await;
    Ok(())
}

fn app(site: Site) -> Router {
    let responder = ErrorResponder::new(site.telemetry.clone(), error_format::render);
    let request_timeout = RequestTimeout {
        served: site.served.clone(),
        beyond_call: site.limits.beyond_call,
        responder: responder.clone(),
    };
    let guard = ProxyGuard::new_for_ops(site.proxies.clone(), responder.clone());
    Router::new()
        .merge(health::routes(site.clone()))
        .merge(health::probes(site.clone()))
        .merge(metrics::routes(site.clone()))
        .fallback(unknown_path)
        .layer(from_fn_with_state(request_timeout, timeout))
        .layer(from_fn_with_state(HostCheck { names: site.names, responder: responder.clone() }, check_host))
        .layer(from_fn_with_state(responder, catch_panic))
        .layer(from_fn_with_state(guard, refuse_proxied))
        .layer(from_fn(set_request_id))
}

async fn unknown_path() -> Response {
    let text = "This address serves /health, /metrics, /health/live and /health/ready.\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

//! Routes of the server with their middleware.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use fetchwell_mcp::McpService;
use fetchwell_tools::Profile;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::documents::DocumentApi;
use super::mcp::{Mcp, answer_message, unknown_path};
use super::middleware::authenticate::{Authentication, authenticate, authorize_ops};
use super::middleware::catch_panic::catch_panic;
use super::middleware::check_host::{HostCheck, check_host};
use super::middleware::cors;
use super::middleware::rate_limit::{RateLimitCheck, rate_limit};
use super::middleware::refusal::ErrorResponder;
use super::middleware::refuse_proxied::{ProxyGuard, refuse_proxied};
use super::middleware::request_id::set_request_id;
use super::middleware::served::AuthMode;
use super::middleware::timeout::{RequestTimeout, timeout};
use super::openapi;
use super::ops::{health, metrics};
use super::pages::{self, Pages, StreamAccess, authorize_stream, well_known};
use super::server::forwarded::resolve_client_ip;
use super::site::Site;
use super::v1::RecordServer;

/// Builds the routes of a server. `drop_calls` ends the calls in flight.
pub(crate) fn app(site: &Site, drop_calls: &CancellationToken) -> Router {
    let Site { served, telemetry, rate_limiter, names, proxies, limits, .. } = site.clone();
    let responder = ErrorResponder::new(telemetry.clone(), pages::render_refusal);
    let mcp = |profile| {
        let service = McpService::new(profile, telemetry.clone(), drop_calls);
        any(answer_message).with_state(Mcp { service, body: limits.body })
    };
    let request_timeout = RequestTimeout {
        served: served.clone(),
        beyond_call: limits.beyond_call,
        responder: responder.clone(),
    };
    let open = match &served {
        AuthMode::Unauthenticated(_) => Router::new(),
        AuthMode::Authenticated(callers) => well_known::routes(callers),
    };
    let watch = health::routes(site.clone()).merge(metrics::routes(site.clone()));
    let authentication = Authentication { mode: served.clone(), responder: responder.clone() };
    let watch = watch.layer(from_fn_with_state(authentication.clone(), authorize_ops));
    let guard = match &served {
        AuthMode::Unauthenticated(_) => {
            Some(ProxyGuard::new_for_records(site.unauthenticated_proxies.clone(), responder.clone()))
        }
        AuthMode::Authenticated(_) => None,
    };
    let rate_limits = RateLimitCheck { limiter: rate_limiter, responder: responder.clone() };
    let host_check = HostCheck { names: names.clone(), responder: responder.clone() };
    let api = Api::new(telemetry.clone());
    let pages = Pages::new(site);
    let stream_access = StreamAccess { pages: pages.clone(), responder: responder.clone() };
    let app = Router::new()
        .route("/mcp", mcp(Profile::Standard))
        .route("/mcp/", mcp(Profile::Standard))
        .route("/mcp/openai", mcp(Profile::OpenAi))
        .route("/mcp/openai/", mcp(Profile::OpenAi))
        .route("/mcp/docs", mcp(Profile::Docs))
        .route("/mcp/docs/", mcp(Profile::Docs))
        .merge(DocumentApi::new(served, telemetry.clone(), api.clone()).routes())
        .merge(api.routes())
        .merge(RecordServer::new(telemetry, openapi::json).routes())
        .layer(from_fn_with_state(authentication, authenticate))
        .layer(from_fn_with_state(stream_access, authorize_stream))
        .merge(open)
        .merge(pages::routes(pages))
        .fallback(unknown_path)
        .layer(from_fn_with_state(rate_limits, rate_limit))
        .merge(watch)
        .merge(health::probes(site.clone()))
        .layer(from_fn_with_state(request_timeout, timeout))
        .layer(from_fn_with_state(host_check, check_host))
        .layer(from_fn_with_state(responder, catch_panic))
        .layer(cors::from_origins(names))
        .layer(from_fn_with_state(proxies, resolve_client_ip));
    // Runs before the client address is resolved, since it needs the address of the proxy, and before CORS answers a
    // preflight.
    let app = match guard {
        Some(guard) => app.layer(from_fn_with_state(guard, refuse_proxied)),
        None => app,
    };
    app.layer(from_fn(set_request_id))
}

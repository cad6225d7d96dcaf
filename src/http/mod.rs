//! The HTTP server: the MCP endpoints, the record-server API, the context-protection API and operations endpoints.
//!
//! `/mcp` serves the standard profile and `/mcp/openai` that of ChatGPT's deep research; `/v1` and `/api/v1` serve
//! records; `/health` and `/metrics` can have an address of their own. Without authentication only loopback addresses
//! are served, and requests that came through a proxy are refused.
//!
//! * `server`: sockets, connections and their limits
//! * `middleware`: authentication and the other checks of requests
//! * `mcp`, `v1`, `api`: endpoints of programs
//! * `pages`: record pages, `/` and `/.well-known`
//! * `ops`: health, metrics and their listener
//! * `public_url`: the URL at which clients reach the server
//! * `in_process`: the APIs without a socket

mod api;
mod in_process;
mod mcp;
mod middleware;
mod ops;
mod pages;
mod public_url;
mod server;
mod v1;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::in_process::InProcess;
pub use self::middleware::check_host::{AllowedHost, AllowedNames, AllowedOrigin};
pub use self::middleware::rate_limit::{RateLimit, RateLimiter};
pub use self::middleware::served::{AuthMode, Callers};
pub use self::ops::listener::serve_ops;
pub use self::public_url::{PublicUrl, PublicUrlError};
pub use self::server::forwarded::{TrustedProxies, TrustedProxy};
pub use self::server::limits::{
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS, DEFAULT_WRITE_TIMEOUT, Limits,
};
pub use self::server::listener::{DEFAULT_LISTEN, Guarded, ListenError, bind, bind_ops, may_listen};
pub use self::server::tls::{Tls, TlsError, TlsSettings};

use self::api::Api;
use self::mcp::{Mcp, answer_message, unknown_path};
use self::middleware::authenticate::{authenticate, authorize_ops};
use self::middleware::catch_panic::catch_panic;
use self::middleware::check_host::check_host;
use self::middleware::rate_limit::limit_rate;
use self::middleware::refuse_proxied::{ProxyGuard, refuse_proxied};
use self::middleware::{cors, request_id};
use self::ops::{health, metrics};
use self::pages::{record_page, root, well_known};
use self::server::connections::{Connections, MAX_UNSENT_OF_CALLER, MAX_UNSENT_WITHOUT_CALLER};
use self::server::forwarded::resolve_client_ip;
use self::server::limits::{RequestTimeout, timeout_request};
use self::v1::RecordServer;
use crate::mcp::McpService;
use crate::telemetry::Telemetry;
use crate::tools::{Profile, SharedToolbox};

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Site {
    /// Authentication mode with the toolboxes.
    pub served: AuthMode,
    /// Recorder of calls.
    pub telemetry: Telemetry,
    /// Rate limiter for clients.
    pub rate_limiter: RateLimiter,
    /// URL at which clients reach the server.
    pub public_url: Option<PublicUrl>,
    /// Allowed `Host` names and origins.
    pub names: AllowedNames,
    /// Proxies that report client addresses in a trusted header.
    pub proxies: TrustedProxies,
    /// Proxies that may forward requests without authentication; none by default.
    pub unauthenticated_proxies: TrustedProxies,
    /// Limits of connections and timeouts.
    pub limits: Limits,
}

impl Site {
    /// Creates the settings of a server for this machine, without configuration.
    #[must_use]
    pub fn of_this_machine(live: SharedToolbox, telemetry: Telemetry, rate_limiter: RateLimiter) -> Self {
        let (names, proxies, unauthenticated_proxies, limits) = Default::default();
        let served = AuthMode::Unauthenticated(live);
        let public_url = None;
        Self { served, telemetry, rate_limiter, public_url, names, proxies, unauthenticated_proxies, limits }
    }
}

/// Serves until `stop` is cancelled, then drains the calls in flight for a while.
///
/// # Errors
///
/// Returns an error if the address of the socket cannot be read.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    site: Site,
    stop: CancellationToken,
) -> Result<(), std::io::Error> {
    let drop_calls = CancellationToken::new();
    let site = Site { names: site.names.listening_at(listener.local_addr()?), ..site };
    let app = app(&site, &drop_calls);
    if let Some(tls) = tls.clone() {
        tokio::spawn(tls.follow(site.limits.certificate, stop.clone()));
    }
    let unsent_without_caller = match site.served {
        // Without authentication, each connection counts as a caller.
        AuthMode::Unauthenticated(_) => MAX_UNSENT_OF_CALLER,
        AuthMode::Authenticated(_) => MAX_UNSENT_WITHOUT_CALLER,
    };
    let Site { limits, proxies, .. } = site;
    let connections = Connections { app, limits, proxies, unsent_without_caller, tls, stop, drop_calls };
    connections.serve(listener).await;
    Ok(())
}

fn app(site: &Site, drop_calls: &CancellationToken) -> Router {
    let Site { served, telemetry, rate_limiter, public_url, names, proxies, limits, .. } = site.clone();
    let mcp = |profile| {
        let service = McpService::new(profile, telemetry.clone(), drop_calls);
        any(answer_message).with_state(Mcp { service, body: limits.body })
    };
    let request_timeout = RequestTimeout {
        served: served.clone(),
        beyond_call: limits.beyond_call,
        telemetry: telemetry.clone(),
    };
    let open = match &served {
        AuthMode::Unauthenticated(_) => Router::new(),
        AuthMode::Authenticated(callers) => well_known::routes(callers),
    };
    let watch = health::routes(site.clone()).merge(metrics::routes(telemetry.clone()));
    let watch = watch.layer(from_fn_with_state((served.clone(), telemetry.clone()), authorize_ops));
    let guard = match &served {
        AuthMode::Unauthenticated(_) => {
            Some(ProxyGuard::new_for_records(site.unauthenticated_proxies.clone(), telemetry.clone()))
        }
        AuthMode::Authenticated(_) => None,
    };
    let app = Router::new()
        .route("/mcp", mcp(Profile::Standard))
        .route("/mcp/", mcp(Profile::Standard))
        .route("/mcp/openai", mcp(Profile::OpenAi))
        .route("/mcp/openai/", mcp(Profile::OpenAi))
        .merge(Api::new(telemetry.clone()).routes())
        .merge(RecordServer::new(telemetry.clone()).routes())
        .layer(from_fn_with_state((served.clone(), telemetry.clone()), authenticate))
        .merge(open)
        .merge(root::routes(public_url.clone()))
        .merge(record_page::routes(served, telemetry.clone(), public_url))
        .fallback(unknown_path)
        .layer(from_fn_with_state((rate_limiter, telemetry.clone()), limit_rate))
        .merge(watch)
        .merge(health::probes(site.clone()))
        .layer(from_fn_with_state(request_timeout, timeout_request))
        .layer(from_fn_with_state((names.clone(), telemetry.clone()), check_host))
        .layer(from_fn_with_state(telemetry, catch_panic))
        .layer(cors::from_origins(names))
        .layer(from_fn_with_state(proxies, resolve_client_ip));
    // Runs before the client address is resolved, since it needs the address of the proxy, and before CORS answers a
    // preflight.
    let app = match guard {
        Some(guard) => app.layer(from_fn_with_state(guard, refuse_proxied)),
        None => app,
    };
    app.layer(from_fn(request_id::set_request_id))
}

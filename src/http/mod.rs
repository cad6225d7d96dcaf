//! HTTP on this machine: the MCP endpoints, the record-server contract, and how the server is doing.
//!
//! `/mcp` serves the standard profile and `/mcp/openai` the one of ChatGPT's deep research; `/v1` serves the
//! source itself; `/health` and `/metrics` say how it goes. Without authentication only loopback addresses are served.

mod admission;
mod answers;
mod api;
mod cors;
mod health;
mod in_process;
mod metrics;
mod public_url;
mod rate_limit;
mod record_page;
mod refusal;
mod request_id;
mod served;
mod this_machine;
mod v1;
mod well_known;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::in_process::InProcess;
pub use self::public_url::{PublicUrl, PublicUrlError};
pub use self::rate_limit::{RateLimit, RateLimiter};
pub use self::served::{Callers, Served};

use self::admission::admitted;
use self::api::Api;
use self::rate_limit::limited;
use self::v1::RecordServer;
use crate::mcp::mcp_service;
use crate::telemetry::Telemetry;
use crate::tools::Profile;

/// Where `serve` listens when nothing else is said.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7400);

/// How long calls in flight may take to end after a stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not of this machine alone.
    #[error(
        "{0} can be reached from other machines, and there is no authentication yet; listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The port is taken, or not allowed.
    #[error(
        "cannot listen on {address} ({problem}); stop the program that uses it, or name another port with --listen"
    )]
    Unavailable {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        problem: String,
    },
}

/// The address, when nobody elsewhere reaches it.
///
/// # Errors
///
/// It is not a loopback address.
pub fn of_this_machine(address: SocketAddr) -> Result<SocketAddr, ListenError> {
    if address.ip().is_loopback() { Ok(address) } else { Err(ListenError::NotLoopback(address)) }
}

/// Binds an address of this machine.
///
/// # Errors
///
/// The address is not a loopback address, or is taken.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let address = of_this_machine(address)?;
    let unavailable =
        |problem: std::io::Error| ListenError::Unavailable { address, problem: problem.to_string() };
    TcpListener::bind(address).await.map_err(unavailable)
}

/// What is served.
#[derive(Debug, Clone)]
pub struct Site {
    /// Who is served, and with what.
    pub served: Served,
    /// Where calls are recorded.
    pub telemetry: Telemetry,
    /// How often each client may ask.
    pub rate_limiter: RateLimiter,
    /// Where clients reach it.
    pub public_url: Option<PublicUrl>,
}

/// Serves until `stop` is cancelled; calls in flight are then answered, or dropped after five seconds.
///
/// # Errors
///
/// The socket failed.
pub async fn serve(listener: TcpListener, site: Site, stop: CancellationToken) -> Result<(), std::io::Error> {
    let drop_calls = CancellationToken::new();
    let app = app(&site, listener.local_addr()?.ip(), &drop_calls);
    let drain = {
        let (stop, drop_calls) = (stop.clone(), drop_calls.clone());
        async move {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN).await;
            drop_calls.cancel();
            tokio::time::sleep(DRAIN).await;
        }
    };
    // Small replies go out at once instead of waiting for more.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
    });
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned());
    tokio::select! {
        ended = async { served.await } => ended,
        () = drain => Ok(()),
    }
}

fn app(site: &Site, address: IpAddr, drop_calls: &CancellationToken) -> Router {
    let Site { served, telemetry, rate_limiter, public_url } = site;
    let service = |profile| mcp_service(profile, telemetry.clone(), address, drop_calls.child_token());
    let open = match served {
        Served::Everybody(_) => Router::new(),
        Served::Callers(callers) => well_known::routes(callers),
    };
    Router::new()
        .route_service("/mcp", service(Profile::Standard))
        .route_service("/mcp/openai", service(Profile::OpenAi))
        .layer(from_fn(answers::as_specified))
        .merge(Api::new(telemetry.clone()).routes())
        .merge(RecordServer::new(telemetry.clone()).routes())
        .layer(from_fn_with_state((served.clone(), telemetry.clone()), admitted))
        .merge(open)
        .merge(record_page::routes(served.clone(), telemetry.clone(), public_url.clone()))
        .fallback(answers::unknown_path)
        .layer(from_fn_with_state((rate_limiter.clone(), telemetry.clone()), limited))
        .merge(health::routes(site.clone()))
        .merge(metrics::routes(telemetry.clone()))
        .layer(cors::from_this_machine())
        .layer(from_fn(request_id::identified))
}

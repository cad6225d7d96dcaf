//! Serves the routes on a socket.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::middleware::served::AuthMode;
use super::router::app;
use super::server::connections::{Connections, UnsentLimits};
use super::server::tls::Tls;
use super::site::Site;

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
    let unsent = match site.served {
        AuthMode::Unauthenticated(_) => UnsentLimits::unauthenticated(),
        AuthMode::Authenticated(_) => UnsentLimits::authenticated(),
    };
    let Site { limits, proxies, .. } = site;
    let connections = Connections { app, limits, proxies, unsent, tls, stop, drop_calls };
    connections.serve(listener).await;
    Ok(())
}

//! Where the server listens, and that it does so for this machine alone unless it knows who asks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

/// Where `serve` listens when nothing else is said.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

/// Whether callers have to say who they are. TLS does not make it so: it hides what is said from others, and
/// anybody can say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// They have to.
    ByAuthentication,
    /// Whoever reaches the address may ask.
    ByNobody,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not of this machine alone.
    #[error(
        "{0} can be reached from other machines, and nothing says who may ask; add [auth] to the configuration (`fetchwell token new` makes a token), or listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The address of the operations listener is taken, or not allowed.
    #[error(
        "cannot listen on {address} for ops_listen ({problem}); stop the program that uses it, or set another ops_listen"
    )]
    OpsUnavailable {
        /// The address.
        address: SocketAddr,
        /// The system's message.
        problem: String,
    },
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

/// The address, when nobody reaches it who may not ask.
///
/// # Errors
///
/// It is not a loopback address, and callers need not say who they are.
pub fn may_listen(address: SocketAddr, guarded: Guarded) -> Result<SocketAddr, ListenError> {
    let may = guarded == Guarded::ByAuthentication || address.ip().is_loopback();
    if may { Ok(address) } else { Err(ListenError::NotLoopback(address)) }
}

/// Binds an address.
///
/// # Errors
///
/// The address is not one of this machine alone although it would have to be, or is taken.
pub async fn bind(address: SocketAddr, guarded: Guarded) -> Result<TcpListener, ListenError> {
    let address = may_listen(address, guarded)?;
    let unavailable =
        |problem: std::io::Error| ListenError::Unavailable { address, problem: problem.to_string() };
    TcpListener::bind(address).await.map_err(unavailable)
}

/// Binds the address of the operations listener. Any address will do: no record is served there.
///
/// # Errors
///
/// The address is taken, or not one of this machine.
pub async fn bind_ops(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let unavailable =
        |problem: std::io::Error| ListenError::OpsUnavailable { address, problem: problem.to_string() };
    TcpListener::bind(address).await.map_err(unavailable)
}

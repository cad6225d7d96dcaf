//! Binds the listening addresses. Without authentication only loopback addresses are allowed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

/// Default listening address of `serve`.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

/// First port that a program may listen on without privileges.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Authentication requirement of a server. TLS does not replace authentication: it encrypts the connection and does
/// not identify the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerCheck {
    /// Callers authenticate themselves.
    ByAuthentication,
    /// Everyone who reaches the address may read.
    ByNobody,
}

/// Reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not a loopback address.
    #[error(
        "{0} can be reached from other machines, which requires authentication; add [auth] to the configuration (`fetchwell token new` makes a token), or listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The address of the operations listener is in use or not permitted.
    #[error(
        "cannot listen on {address} for ops_listen ({problem}); stop the program that uses it, or set another ops_listen"
    )]
    OpsUnavailable {
        /// Address of the operations listener.
        address: SocketAddr,
        /// Message of the operating system.
        problem: String,
    },
    /// The address is in use or not permitted.
    #[error(
        "cannot listen on {address} ({problem}); stop the program that uses it, or name another port, such as `--listen {}`",
        another_port(.address)
    )]
    Unavailable {
        /// Address of the server.
        address: SocketAddr,
        /// Message of the operating system.
        problem: String,
    },
}

/// Returns the address with the next port. The default port replaces one that needs privileges.
fn another_port(address: &SocketAddr) -> SocketAddr {
    let next = address.port().checked_add(1).filter(|port| *port >= FIRST_UNPRIVILEGED_PORT);
    SocketAddr::new(address.ip(), next.unwrap_or(DEFAULT_LISTEN.port()))
}

/// Returns the address if the server may listen on it.
///
/// # Errors
///
/// Returns an error if it is not a loopback address and callers do not authenticate themselves.
pub fn may_listen(address: SocketAddr, guarded: CallerCheck) -> Result<SocketAddr, ListenError> {
    let may = guarded == CallerCheck::ByAuthentication || address.ip().is_loopback();
    if may { Ok(address) } else { Err(ListenError::NotLoopback(address)) }
}

/// Binds an address.
///
/// # Errors
///
/// Returns an error if the address is not allowed, see [`may_listen`], or cannot be bound.
pub async fn bind(address: SocketAddr, guarded: CallerCheck) -> Result<TcpListener, ListenError> {
    let address = may_listen(address, guarded)?;
    let unavailable =
        |problem: std::io::Error| ListenError::Unavailable { address, problem: problem.to_string() };
    TcpListener::bind(address).await.map_err(unavailable)
}

/// Binds the address of the operations listener. Any address is allowed, because no records are served there.
///
/// # Errors
///
/// Returns an error if the address cannot be bound.
pub async fn bind_ops(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let unavailable =
        |problem: std::io::Error| ListenError::OpsUnavailable { address, problem: problem.to_string() };
    TcpListener::bind(address).await.map_err(unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suggested_port_is_a_usable_one() {
        for (address, expect) in [
            ("127.0.0.1:7400", "127.0.0.1:7401"),
            ("[::1]:7400", "[::1]:7401"),
            ("127.0.0.1:80", "127.0.0.1:7400"),
            ("127.0.0.1:65535", "127.0.0.1:7400"),
        ] {
            assert_eq!(another_port(&address.parse().unwrap()).to_string(), expect);
        }
    }
}

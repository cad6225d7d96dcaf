//! Sockets and connections: accepts clients within limits and sends responses. Nothing here knows a route.
//!
//! * `listener`, `tls`: sockets and certificates
//! * `connections`: the accept loop, and when a connection is closed
//! * `limits`: limits of connections and timeouts
//! * `forwarded`: client addresses behind trusted proxies

pub(crate) mod connections;
pub(crate) mod forwarded;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod tls;

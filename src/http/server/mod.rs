//! Sockets and connections: accepts clients within limits and sends responses. Nothing here knows a route.
//!
//! * `listener`, `tls`: sockets and certificates
//! * `connections`: the accept loop, and when a connection is closed
//! * `limits`: limits of connections and timeouts
//! * `forwarded`: client addresses behind trusted proxies

pub(super) mod connections;
pub(super) mod forwarded;
pub(super) mod limits;
pub(super) mod listener;
pub(super) mod tls;

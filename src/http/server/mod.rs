//! Sockets and connections: accepts clients within limits and sends responses. Nothing here knows a route.
//!
//! * `listener`, `tls`: sockets and certificates
//! * `connections`: the accept loop, and when a connection is closed
//! * `limits`: limits of connections and timeouts
//! * `forwarded`: client addresses behind trusted proxies

pub(in crate::http) mod connections;
pub(in crate::http) mod forwarded;
pub(in crate::http) mod limits;
pub(in crate::http) mod listener;
pub(in crate::http) mod tls;

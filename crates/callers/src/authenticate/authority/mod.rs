//! Requests to authorization servers.
//!
//! * `client`, `url`: the HTTP client and the URLs it may use
//! * `discovery`: discovery of an issuer's endpoints (RFC 8414)
//! * `fair_queue`, `failure_log`: limits of requests for each client address and of log lines

mod client;
mod discovery;
mod failure_log;
mod fair_queue;
mod url;

pub(super) use self::client::{AuthorityClient, AuthorityFault, DEADLINE, basic, is_error_code};
pub(super) use self::discovery::{Endpoints, discover_endpoints, discover_jwks_url};
pub(super) use self::failure_log::FailureLog;
pub(super) use self::fair_queue::FairQueue;
pub use self::url::{AuthorityUrl, InvalidAuthorityUrl};

//! Middleware: checks that a request passes on its way to a route, and the error responses of these checks.
//!
//! * `authenticate`: bearer tokens, permits and toolboxes of callers
//! * `served`: authentication mode of the server with the state of callers
//! * `check_host`: `Host` and `Origin` validation
//! * `refuse_proxied`: no proxied requests without authentication
//! * `rate_limit`: requests per client
//! * `cors`: preflight requests of browsers
//! * `request_id`: ids of requests
//! * `catch_panic`: responses for panics
//! * `timeout`: requests that take too long
//! * `refusal`: error responses of all of these

pub(crate) mod authenticate;
pub(crate) mod catch_panic;
pub(crate) mod check_host;
pub(crate) mod cors;
pub(crate) mod rate_limit;
pub(crate) mod refusal;
pub(crate) mod refuse_proxied;
pub(crate) mod request_id;
pub(crate) mod served;
pub(crate) mod timeout;

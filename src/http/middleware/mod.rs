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

pub(in crate::http) mod authenticate;
pub(in crate::http) mod catch_panic;
pub(in crate::http) mod check_host;
pub(in crate::http) mod cors;
pub(in crate::http) mod rate_limit;
pub(in crate::http) mod refusal;
pub(in crate::http) mod refuse_proxied;
pub(in crate::http) mod request_id;
pub(in crate::http) mod served;
pub(in crate::http) mod timeout;

//! Redirects and cookies of responses, and what telemetry records of them.

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fetchwell_core::fit::Shaping;
use fetchwell_telemetry::{Call, ErrorDetails};

use crate::answer::CallResult;
use crate::body_size::size_of;
use crate::pages::layout::{Visitor, problem};

/// A page with its error code, which is empty for a success.
impl CallResult for (&'static str, Response) {
    fn internal_error() -> Self {
        internal_problem(Visitor::Unknown)
    }

    fn respond(self, call: Call, _request: &Parts) -> Response {
        let (code, response) = self;
        record(call, code, &response, 1);
        response
    }
}

/// Returns the page for a defect of the server, with its error code.
pub(crate) fn internal_problem(visitor: Visitor) -> (&'static str, Response) {
    let text = "internal error; try again, or report it";
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ("internal_error", problem(status, "Something went wrong", text, visitor))
}

/// Records the outcome of a form or of a sign-in by its response.
pub(crate) fn finish(call: Call, response: Response) -> Response {
    record(call, code_of(response.status()), &response, 0);
    response
}

fn record(call: Call, code: &str, response: &Response, items: usize) {
    let bytes = size_of(response);
    match code {
        "" => call.answered(&Shaping { bytes, items, ..Shaping::default() }),
        code => call.refused(code, ErrorDetails { bytes, reason: None }),
    }
}

/// Returns the outcome code of a status for telemetry; empty for a success.
pub(crate) fn code_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::TOO_MANY_REQUESTS => "too_many_calls",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => "authorization_unavailable",
        status if status.is_client_error() => "invalid_request",
        status if status.is_server_error() => "internal_error",
        _ => "",
    }
}

/// Redirects a browser, and sets a cookie.
pub(crate) fn redirect(path: &str, cookie: Option<&str>) -> Response {
    let headers = [(header::LOCATION, path.to_owned()), (header::CACHE_CONTROL, "no-store".to_owned())];
    let mut response = (StatusCode::SEE_OTHER, headers).into_response();
    if let Some(cookie) = cookie {
        add_cookie(&mut response, cookie);
    }
    response
}

/// Adds a cookie to a response.
pub(super) fn add_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

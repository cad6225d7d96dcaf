//! Redirects and cookies of responses, and what telemetry records of them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::fit::Shaping;
use crate::http::body_size::size_of;
use crate::telemetry::{Call, ErrorDetails};

/// Records the outcome of a request by its response.
pub(super) fn finish(record: Call, response: Response) -> Response {
    let refused = ErrorDetails { bytes: size_of(&response), reason: None };
    match code_of(response.status()) {
        "" => record.answered(&Shaping { bytes: refused.bytes, ..Shaping::default() }),
        code => record.refused(code, refused),
    }
    response
}

/// Returns the outcome code of a status for telemetry; empty for a success.
pub(in crate::http::pages) fn code_of(status: StatusCode) -> &'static str {
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
pub(super) fn redirect(path: &str, cookie: Option<&str>) -> Response {
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

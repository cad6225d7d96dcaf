//! Request ids: a valid id of the client is used for the response and the telemetry record; otherwise a new one is
//! generated.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use fetchwell_telemetry::{RequestId, TraceParent};

use crate::headers::{CORRELATION_ID, REQUEST_ID, X_REQUEST_ID};

/// Middleware that stores the request id and the trace context in the request, and adds the id to the response.
pub(crate) async fn set_request_id(mut request: Request, next: Next) -> Response {
    let id = client_request_id(request.headers()).unwrap_or_else(RequestId::fresh);
    request.extensions_mut().insert(id.clone());
    if let Some(parent) = TraceParent::from_headers(request.headers()) {
        request.extensions_mut().insert(parent);
    }
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, id.clone());
        response.headers_mut().insert(CORRELATION_ID, id);
    }
    response
}

/// Returns the first request id header that can be logged and echoed.
fn client_request_id(headers: &HeaderMap) -> Option<RequestId> {
    [X_REQUEST_ID, REQUEST_ID, CORRELATION_ID]
        .iter()
        .filter_map(|name| headers.get(name)?.to_str().ok())
        .find_map(|id| RequestId::of_caller(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[track_caller]
    fn check(headers: &[(HeaderName, &'static str)], expect: Option<&str>) {
        let headers: HeaderMap =
            headers.iter().map(|(name, id)| (name.clone(), HeaderValue::from_static(id))).collect();
        assert_eq!(client_request_id(&headers).as_ref().map(RequestId::as_str), expect, "{headers:?}");
    }

    #[test]
    fn any_of_three_headers_names_a_request() {
        check(&[(CORRELATION_ID, "c")], Some("c"));
        check(&[(CORRELATION_ID, "c"), (REQUEST_ID, "r")], Some("r"));
        check(&[(CORRELATION_ID, "c"), (REQUEST_ID, "r"), (X_REQUEST_ID, "x")], Some("x"));
        check(&[(CORRELATION_ID, "c"), (X_REQUEST_ID, "not one")], Some("c"));
        check(&[(REQUEST_ID, "")], None);
        check(&[], None);
    }
}

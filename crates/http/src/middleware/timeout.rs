//! Timeout of requests, as a last resort beyond the deadlines of calls.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::{ErrorContext, ErrorResponder, Refusal};
use super::served::AuthMode;

/// Settings of [`timeout`].
#[derive(Debug, Clone)]
pub(crate) struct RequestTimeout {
    pub(crate) served: AuthMode,
    pub(crate) beyond_call: Duration,
    pub(crate) responder: ErrorResponder,
}

/// Middleware that responds 504 if a request is not answered some time after the deadline of its call. The call is
/// dropped and thereby cancelled.
pub(crate) async fn timeout(
    State(request_timeout): State<RequestTimeout>,
    request: Request,
    next: Next,
) -> Response {
    let limit = request_timeout.served.call_deadline() + request_timeout.beyond_call;
    let context = ErrorContext::new(&request);
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_late) => {
            let refusal = Refusal::new(
                StatusCode::GATEWAY_TIMEOUT,
                "source_timeout",
                -32603,
                format!("there was no answer after {} seconds; call again", limit.as_secs()),
            );
            context.refused(&refusal, &request_timeout.responder)
        }
    }
}

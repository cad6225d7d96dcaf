//! Catch-panic middleware for handlers outside `/mcp`, `/v1` and `/api/v1`, which catch their own panics.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;

use super::refusal::{ErrorContext, ErrorResponder, Refusal};

/// Middleware that responds 500 to a request if its handler panics, records it, and keeps the server running. The
/// panic hook has logged the location by then.
pub(crate) async fn catch_panic(
    State(responder): State<ErrorResponder>,
    request: Request,
    next: Next,
) -> Response {
    let context = ErrorContext::new(&request);
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_panic) => {
            let problem = "internal error; call again, or report it".to_owned();
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let refusal = Refusal::new(status, "internal_error", -32603, problem);
            context.refused(&refusal, &responder)
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use serde_json::Value;
    use tower::Service;

    use super::*;
    use crate::pages::render_refusal;
    use fetchwell_telemetry::Telemetry;

    #[tokio::test]
    async fn panic_response_has_the_format_of_its_api() {
        let telemetry = Telemetry::default();
        let responder = ErrorResponder::new(telemetry.clone(), render_refusal);
        let broken = || {
            get(|| async {
                if true {
                    panic!("a defect")
                }
            })
        };
        let mut app = Router::new()
            .route("/mcp", broken())
            .route("/v1/schema", broken())
            .route("/records/x", broken())
            .route("/well", get(|| async { "well" }))
            .layer(from_fn_with_state(responder, catch_panic));
        for (path, pointer) in
            [("/mcp", "/error/message"), ("/v1/schema", "/error/message"), ("/records/x", "/detail")]
        {
            let Ok(response) = app.call(Request::get(path).body(Body::empty()).unwrap()).await;
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let body: Value =
                serde_json::from_slice(&to_bytes(response.into_body(), 10_000).await.unwrap()).unwrap();
            assert!(body.pointer(pointer).unwrap().as_str().unwrap().contains("internal error"), "{body}");
        }
        // A browser gets a page at the path of one, and messages of a protocol everywhere else.
        for (path, kind) in [("/records/x", "text/html"), ("/mcp", "application/json")] {
            let request = Request::get(path).header("accept", "text/html,*/*").body(Body::empty()).unwrap();
            let Ok(response) = app.call(request).await;
            let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
            assert!(content_type.starts_with(kind), "{path}: {content_type}");
            let body = to_bytes(response.into_body(), 100_000).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert_eq!(body.contains("<h1>Something went wrong</h1>"), kind == "text/html", "{path}: {body}");
        }
        let Ok(response) = app.call(Request::get("/well").body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let line = "fetchwell_requests_total{endpoint=\"/{any}\",outcome=\"internal_error\"} 5";
        assert!(telemetry.exposition().contains(line), "{}", telemetry.exposition());
    }
}

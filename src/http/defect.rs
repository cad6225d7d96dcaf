//! A panic outside of the faces, which catch their own: it is answered, counted and logged, and the server goes on.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;

use super::refusal::{Asked, Refusal};
use crate::telemetry::Telemetry;

/// Answers a request even when what it passes through panics. Where that was is in the log by then.
pub(super) async fn answered_in_any_case(
    State(telemetry): State<Telemetry>,
    request: Request,
    next: Next,
) -> Response {
    let asked = Asked::of(&request);
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_panic) => {
            let problem = "fetchwell stopped at a defect of its own; call again, or report it".to_owned();
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let refusal = Refusal::new(status, "internal_error", -32603, problem);
            asked.refused(&refusal, &telemetry)
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

    #[tokio::test]
    async fn a_panic_is_answered_in_the_words_of_its_path_and_counted() {
        let telemetry = Telemetry::default();
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
            .layer(from_fn_with_state(telemetry.clone(), answered_in_any_case));
        for (path, pointer) in
            [("/mcp", "/error/message"), ("/v1/schema", "/error/message"), ("/records/x", "/detail")]
        {
            let Ok(response) = app.call(Request::get(path).body(Body::empty()).unwrap()).await;
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let body: Value =
                serde_json::from_slice(&to_bytes(response.into_body(), 10_000).await.unwrap()).unwrap();
            assert!(
                body.pointer(pointer).unwrap().as_str().unwrap().contains("a defect of its own"),
                "{body}"
            );
        }
        let Ok(response) = app.call(Request::get("/well").body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let line = "fetchwell_requests_total{endpoint=\"/{any}\",outcome=\"internal_error\"} 3";
        assert!(telemetry.exposition().contains(line), "{}", telemetry.exposition());
    }
}

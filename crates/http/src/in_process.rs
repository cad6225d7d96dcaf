//! `/api/v1` and `/v1` without a socket, for benchmarks and fuzzing.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::SharedToolbox;
use tower::Service;

use super::api::Api;
use super::openapi;
use super::v1::RecordServer;

/// Routes of `/api/v1` and `/v1` that are called within the process.
#[derive(Debug, Clone)]
pub struct InProcess {
    toolbox: SharedToolbox,
    routes: Router,
}

impl InProcess {
    /// Creates the routes over a toolbox.
    #[must_use]
    pub fn new(toolbox: SharedToolbox, telemetry: Telemetry) -> Self {
        let routes =
            Api::new(telemetry.clone()).routes().merge(RecordServer::new(telemetry, openapi::json).routes());
        Self { toolbox, routes }
    }

    /// Returns the status and body of a `GET`, or `None` if the target is not a URI.
    pub async fn get(&self, target: &str) -> Option<(u16, Vec<u8>)> {
        let request = Request::get(target).header(header::HOST, "localhost").extension(self.toolbox.now());
        let request = request.body(Body::empty()).ok()?;
        let Ok(response) = self.routes.clone().call(request).await;
        let status = response.status().as_u16();
        Some((status, to_bytes(response.into_body(), usize::MAX).await.ok()?.into()))
    }
}

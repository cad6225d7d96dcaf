//! `/api/v1` and `/v1` without a socket: for measuring what the layers themselves take, and for fuzzing.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use tower::Service;

use super::api::Api;
use super::v1::RecordServer;
use crate::telemetry::Telemetry;
use crate::tools::Live;

/// The routes of `/api/v1` and `/v1`, asked by the program itself.
#[derive(Debug, Clone)]
pub struct InProcess {
    live: Live,
    routes: Router,
}

impl InProcess {
    /// Over these tools.
    #[must_use]
    pub fn new(live: Live, telemetry: Telemetry) -> Self {
        let routes = Api::new(telemetry.clone()).routes().merge(RecordServer::new(telemetry).routes());
        Self { live, routes }
    }

    /// The status and the body of a `GET`, as they would go out. A target that is no URI has no status.
    pub async fn get(&self, target: &str) -> Option<(u16, Vec<u8>)> {
        let request = Request::get(target).header(header::HOST, "localhost").extension(self.live.now());
        let request = request.body(Body::empty()).ok()?;
        let Ok(response) = self.routes.clone().call(request).await;
        let status = response.status().as_u16();
        Some((status, to_bytes(response.into_body(), usize::MAX).await.ok()?.into()))
    }
}

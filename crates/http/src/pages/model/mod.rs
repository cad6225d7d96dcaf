//! `/model`: the exact answer that a model gets from `search` or `fetch`, with its size against the budget.
//!
//! * `call`: the call that the parameters describe
//! * `view`: HTML

mod call;
mod view;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;

use self::call::{Measured, ModelCall};
use super::access::{PageContent, Pages, Visit, serve_page};
use super::layout::Section;

/// Answers `GET /model`.
pub(super) async fn show(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, "/model", request, |_pages, visit, request| Box::pin(content(visit, request))).await
}

async fn content(visit: &Visit, request: &Parts) -> PageContent {
    let call = ModelCall::from_query(request.uri.query().unwrap_or_default());
    let measured: Option<Measured> = match call.value.as_str() {
        "" => None,
        _ => Some(call.measure(&visit.toolbox).await),
    };
    PageContent::new("What the model sees", Section::Model, view::page(&call, measured.as_ref()))
}

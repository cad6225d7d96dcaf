//! Protected resource metadata (RFC 9728), from which clients learn the authorization server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::middleware::served::Callers;
use crate::resource_metadata::{BASE, RESOURCES};

/// Returns the routes of the documents, which are unauthenticated.
pub(crate) fn routes(callers: &Arc<Callers>) -> Router {
    let document = get(document).with_state(Arc::clone(callers));
    RESOURCES.iter().fold(Router::new().route(BASE, document.clone()), |router, path| {
        router.route(&format!("{BASE}{path}"), document.clone())
    })
}

async fn document(State(callers): State<Arc<Callers>>, request: Request) -> Response {
    if !callers.authenticator().settings().has_authorization_server() {
        let problem = "No authorization server gives tokens for this server: ask its operator for one.\n";
        return (StatusCode::NOT_FOUND, problem).into_response();
    }
    let Some(public_url) = &callers.public_url else {
        let problem = "This server does not know its public URL: set `public_url` in its configuration.\n";
        return (StatusCode::NOT_FOUND, problem).into_response();
    };
    let path = request.uri().path().strip_prefix(BASE).unwrap_or_default();
    let resource = public_url.at(path);
    let document = callers.authenticator().metadata(&resource);
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, serde_json::to_string(&document).unwrap_or_default()).into_response()
}

//! Access to the search stream with the session of a page.
//!
//! `EventSource` of a browser cannot send `Authorization`. A request for the stream without that header is authenticated with
//! the token of the session, like a request that sends it.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use fetchwell_state::StateError;
use secrecy::ExposeSecret;

use super::pages::Pages;
use crate::documents::SEARCH_STREAM;
use crate::headers::{SEC_FETCH_MODE, SEC_FETCH_SITE};
use crate::middleware::refusal::{ErrorResponder, Refusal, refused};

/// State of the middleware.
#[derive(Debug, Clone)]
pub(crate) struct StreamAccess {
    pub(crate) pages: Pages,
    pub(crate) responder: ErrorResponder,
}

/// Middleware that adds the token of the session to a request for the search stream.
pub(crate) async fn authorize_stream(
    State(StreamAccess { pages, responder }): State<StreamAccess>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_for_stream(&pages, &request) {
        match pages.session_authorization(request.headers()).await {
            Ok(Some(value)) => drop(request.headers_mut().insert(header::AUTHORIZATION, value)),
            Ok(None) => {}
            Err(_counted) => {
                let problem = "the server cannot reach the store of sessions; try again in a moment";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                let refusal = Refusal::new(status, "state_unavailable", -32603, problem.to_owned());
                return refused(request, &refusal.after(1), &responder).await;
            }
        }
    }
    next.run(request).await
}

/// Returns true for a request that a page of this server can have made by `EventSource`.
fn is_for_stream(pages: &Pages, request: &Request) -> bool {
    let headers = request.headers();
    // `SameSite` cookies are not sent from other sites. The headers also exclude other hosts of the same site, and links.
    let is_from_here = headers.get(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin")
        && headers.get(SEC_FETCH_MODE).is_none_or(|mode| mode != "navigate")
        && (!headers.contains_key(header::ORIGIN) || pages.is_from_here(headers));
    request.uri().path() == SEARCH_STREAM
        && [Method::GET, Method::HEAD].contains(request.method())
        && is_from_here
        && !headers.contains_key(header::AUTHORIZATION)
}

impl Pages {
    /// Returns the `Authorization` header of a browser's session, if the session shows all records.
    async fn session_authorization(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, StateError> {
        let session = self.sessions.get(headers).await?;
        let token =
            session.filter(|session| session.shows_all()).and_then(|session| session.reader().token.latest());
        let value =
            token.and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok());
        Ok(value.map(|mut value| {
            value.set_sensitive(true);
            value
        }))
    }
}

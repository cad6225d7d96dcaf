//! Links that open one record: the session that a followed link begins.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use fetchwell_callers::{LINK, Session};
use fetchwell_telemetry::Call;

use crate::middleware::authenticate::client_of;
use crate::middleware::served::AuthMode;
use crate::pages::access::{
    AccessMethod, Pages, ReturnPath, begin_session, handle_form, parameter, record_id, sign_in_page,
    without_state,
};
use crate::pages::layout::{Visitor, problem};

/// Problem of a link that opens nothing.
pub(super) const LINK_EXPIRED: &str = "The link has expired, or the server was restarted.";

/// Begins a session after the form of a link was sent.
pub(super) async fn follow(State(pages): State<Pages>, request: Request) -> Response {
    handle_form(&pages, "/records/{handle}", request, followed).await
}

async fn followed(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let (AuthMode::Authenticated(callers), Some(id)) = (&pages.served, record_id(request.uri.path())) else {
        let text = "There is no record at this address.";
        return problem(StatusCode::NOT_FOUND, "No such record", text, Visitor::Unknown);
    };
    let to = ReturnPath::record(&id);
    let method = AccessMethod::offered_by(callers);
    // A link that is used for another record stays valid for its own record.
    let reader = match parameter(&form, LINK) {
        None => Ok(None),
        Some(key) => callers.toolboxes.link_reader(&key, id.handle.address()).await,
    };
    let Ok(reader) = reader else { return without_state() };
    let Some(reader) = reader else { return sign_in_page(&to, LINK_EXPIRED, method) };
    let client = client_of(&request.extensions);
    if let Err(refusal) = pages.admit(callers, &reader.token, client, record).await {
        return sign_in_page(&to, &refusal.problem, method);
    }
    let Ok(mut before) = pages.sessions.get(&request.headers).await else { return without_state() };
    // A session with an expired token no longer shows all records.
    if let Some(session) = before.as_ref().filter(|session| session.shows_all())
        && pages.admit(callers, &session.reader().token, client, record).await.is_err()
    {
        before = None;
    }
    let session = Session::from_link(reader, id.handle.address(), before);
    begin_session(pages, &request.headers, session, &to.to_string()).await
}

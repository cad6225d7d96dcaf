//! `/records/{handle}`: a page that shows one record to a person, for opening the records that a model cites.
//!
//! With authentication, only people who may read the record can open its page: they sign in at the authorization server,
//! follow the link that `fetch` returned, or enter a token. Each request makes the same checks as a call.
//!
//! A record is rendered for people: facts, texts, values, its conversation and its neighbors. With `view=text`, and for a part
//! of a long record, the page has exactly the text that `fetch` gives.
//!
//! * `follow`: links that open one record
//! * `content`: the content of a record as HTML
//! * `neighbors`: records near a record
//! * `readable`: the page of a record for people
//! * `view`: the page with the text of `fetch`, and that of a link

mod content;
mod follow;
mod neighbors;
mod readable;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use fetchwell_callers::{CallContext, LINK, RecordPages, Session};
use fetchwell_core::handle::{Handle, PartId};
use fetchwell_telemetry::Call;
use fetchwell_tools::Toolbox;

use self::follow::{LINK_EXPIRED, follow};
use self::readable::readable_page;
use self::view::{Document, PageSurround};
use super::access::{
    AccessMethod, PageRefusal, Pages, RECORDS, ReturnPath, begin, code_of, internal_problem,
    is_just_signed_in, not_signed_in, parameter, record_id, record_path, sign_in_page, without_state,
};
use super::layout::{Visitor, problem, sentence};
use crate::answer::answer_call;
use crate::middleware::authenticate::client_of;
use crate::middleware::served::{AuthMode, Callers};
use crate::server::connections::HeldUntilSent;

/// Error code of a page without shared state.
const STATE_UNAVAILABLE: &str = "state_unavailable";

/// Returns the routes.
pub(super) fn routes(pages: Pages) -> Router {
    Router::new().route("/records/{*handle}", get(show).post(follow)).with_state(pages)
}

/// Shows a record to a person who may read it.
async fn show(State(pages): State<Pages>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let work = async |call: &mut Call| pages.show(&request, call).await;
    answer_call(&pages.telemetry, "/records/{handle}", &request, work).await
}

impl Pages {
    /// Returns the response with its error code, which is empty for a success.
    async fn show(&self, request: &Parts, record: &mut Call) -> (&'static str, Response) {
        let Some(id) = record_id(request.uri.path()) else {
            let text = "This is not the address of a record. Copy the whole address.";
            return ("not_found", problem(StatusCode::NOT_FOUND, "No such record", text, Visitor::Unknown));
        };
        let callers = match &self.served {
            AuthMode::Unauthenticated(toolbox) => {
                let toolbox = toolbox.now().audited(record);
                return self.record(&toolbox, &id, request, Visitor::Local).await;
            }
            AuthMode::Authenticated(callers) => callers,
        };
        let key = parameter(request.uri.query().unwrap_or_default().as_bytes(), LINK);
        let Ok(session) = self.sessions.get(&request.headers).await else {
            return (STATE_UNAVAILABLE, without_state());
        };
        let shown = match session.filter(|session| session.shows(id.handle.address())) {
            Some(session) => Some(self.shown_to(callers, &session, &id, request, record).await),
            None => None,
        };
        // A browser with a session may follow a link of another grant, or of its own grant after the session ended.
        let is_closed = shown.as_ref().is_none_or(|(_, response)| {
            matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND)
        });
        let to = ReturnPath::record(&id);
        if let Some(key) = key.as_ref().filter(|_| is_closed) {
            match callers.toolboxes.link_reader(key, id.handle.address()).await {
                Ok(Some(_)) => return ("", view::opening(&to.to_string(), key)),
                Ok(None) => {}
                Err(_counted) => return (STATE_UNAVAILABLE, without_state()),
            }
        }
        if let Some(shown) = shown.filter(|(_, response)| response.status() != StatusCode::UNAUTHORIZED) {
            return shown;
        }
        let problem = match AccessMethod::offered_by(callers) {
            AccessMethod::SignIn if !is_just_signed_in(callers, request) => {
                return match begin(self, callers, request, &to).await {
                    Ok(response) => ("unauthorized", response),
                    Err(fault) => ("authorization_unavailable", not_signed_in(&fault, &to)),
                };
            }
            AccessMethod::SignIn => {
                "This browser kept no session: allow cookies of this site, and sign in again."
            }
            AccessMethod::Link if key.is_some() => LINK_EXPIRED,
            AccessMethod::Link => "Only people who may read this record can open it.",
        };
        ("unauthorized", sign_in_page(&to, problem, AccessMethod::offered_by(callers)))
    }

    /// Returns the page of a record for a session.
    async fn shown_to(
        &self,
        callers: &Callers,
        session: &Session,
        id: &PartId,
        request: &Parts,
        record: &mut Call,
    ) -> (&'static str, Response) {
        let client = client_of(&request.extensions);
        match self.admit(callers, &session.reader().token, client, record).await {
            Ok((caller, permit)) => {
                let toolbox = Arc::new(permit.toolbox.for_call(CallContext::new(caller))).audited(record);
                let visitor = if session.shows_all() { Visitor::SignedIn } else { Visitor::Linked };
                let (code, mut response) = self.record(&toolbox, id, request, visitor).await;
                // The size of a page is limited, so its bytes do not count for the budget of unsent bytes.
                response.extensions_mut().insert(HeldUntilSent::new(Arc::new(permit.permit), None));
                (code, response)
            }
            Err(PageRefusal { status, problem: text }) => match AccessMethod::offered_by(callers) {
                AccessMethod::SignIn if status != StatusCode::UNAUTHORIZED => {
                    (code_of(status), problem(status, "It cannot be shown", &text, Visitor::SignedIn))
                }
                method => ("unauthorized", sign_in_page(&ReturnPath::record(id), &text, method)),
            },
        }
    }

    /// Returns the page of a record for people, or its text if that is requested or the record cannot be read.
    async fn record(
        &self,
        toolbox: &Toolbox,
        id: &PartId,
        request: &Parts,
        visitor: Visitor,
    ) -> (&'static str, Response) {
        let handle = &id.handle;
        let query = request.uri.query().unwrap_or_default().as_bytes();
        let is_text = handle.part().is_some() || parameter(query, "view").as_deref() == Some("text");
        if !is_text {
            let number = parameter(query, "page").and_then(|number| number.parse().ok()).unwrap_or(1);
            let elsewhere = |link: &str| !link.starts_with(&self.url_at(RECORDS));
            if let Some(response) = readable_page(toolbox, handle, number, visitor, elsewhere).await {
                return ("", response);
            }
        }
        self.fetched(toolbox, id, visitor).await
    }

    /// Reads a record with the tool `fetch`, so that budgets and parts are the same as for a model.
    async fn fetched(&self, toolbox: &Toolbox, id: &PartId, visitor: Visitor) -> (&'static str, Response) {
        let handle = &id.handle;
        let answer = match toolbox.read(id).await {
            Ok(payload) => serde_json::from_str::<Document>(payload.json()),
            Err(error) => {
                let status = match error.code() {
                    "not_found" | "connection_not_found" | "stream_not_declared" => StatusCode::NOT_FOUND,
                    "source_timeout" | "source_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::BAD_REQUEST,
                };
                let mut text = sentence(&error.to_string());
                if status == StatusCode::NOT_FOUND && visitor != Visitor::Local && self.has_sign_in() {
                    text.push_str(" If another account of yours can read it, sign out here and where you signed in, and open the link again.");
                }
                return ("source_error", problem(status, "It cannot be shown", &text, visitor));
            }
        };
        let Ok(document) = answer else { return internal_problem(visitor) };
        let next = document.next().and_then(|next| next.parse::<PartId>().ok());
        let version = next.as_ref().map_or(&id.version, |next| &next.version).clone();
        let before = handle.part().and_then(|part| handle.with_part(part.checked_sub(1)?));
        let before = before.map(|handle| record_path(&PartId { handle, version }));
        let next = next.as_ref().map(record_path);
        let readable = Handle::mint(handle.address()).map(|handle| RecordPages::path(&handle));
        let is_own = document.url().is_empty() || document.url().starts_with(&self.url_at(RECORDS));
        let elsewhere = (!is_own).then(|| document.url());
        ("", view::record(&document, &PageSurround { readable, before, next, elsewhere, visitor }))
    }
}

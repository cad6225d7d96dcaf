//! Sign-ins of visitors at the servers of sources.
//!
//! A sign-in begins with a form, and ends when the browser returns. What is needed then is in a cookie, bound to the caller who
//! began: a reply is useless in another browser and for another caller. Tokens are stored for the caller.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use fetchwell_callers::{AuthorizationReply, Caller};
use fetchwell_core::handle::SourceName;
use fetchwell_source::SourceError;
use fetchwell_telemetry::{Call, Endpoint, Origin};
use fetchwell_tools::{SignInStart, SourceSignIn, SourceSignIns};
use maud::html;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::paths::{BEGIN_SIGN_IN, SIGN_OUT_OF_SOURCE, SIGNED_IN, SOURCES};
use crate::error::RequestError;
use crate::middleware::served::{AuthMode, Callers};
use crate::pages::access::{
    AttemptId, AttemptKeys, Attempts, Pages, ReturnPath, SOURCE_COOKIE, Visit, finish, handle_form,
    parameter, redirect, without_state,
};
use crate::pages::layout::{Page, Section, Visitor, problem, sentence};

/// Attempts to sign in at the server of a source.
const ATTEMPTS: Attempts = Attempts { cookie: SOURCE_COOKIE, context: "sign-in to a source" };

/// Returns the sign-ins of a visitor.
pub(super) async fn sign_ins_of(pages: &Pages, visit: &Visit) -> Vec<SourceSignIn> {
    match (&pages.served, &visit.caller) {
        (AuthMode::Authenticated(callers), Some(caller)) => match callers.settings().sources.sign_ins() {
            Some(sign_ins) => sign_ins.states(caller).await,
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Answers `POST /sources/sign-in`: prepares a sign-in, and sends the browser to the authorization server.
pub(crate) async fn begin_sign_in(State(pages): State<Pages>, request: Request) -> Response {
    handle_form(&pages, BEGIN_SIGN_IN, request, begin_with_form).await
}

/// Answers `POST /sources/sign-out`: deletes the tokens of the visitor at a source.
pub(crate) async fn sign_out_of_source(State(pages): State<Pages>, request: Request) -> Response {
    handle_form(&pages, SIGN_OUT_OF_SOURCE, request, sign_out_with_form).await
}

/// Answers `GET /sources/signed-in`, to which the browser returns.
pub(crate) async fn finish_sign_in(State(pages): State<Pages>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let origin = Origin::from_extensions(&request.extensions);
    let mut record = pages.telemetry.call(Endpoint::route(SIGNED_IN), origin);
    let response = handle_return(&pages, &request, &mut record).await;
    finish(record, response)
}

/// Visitor who signs in to sources.
struct SignInVisitor {
    visit: Visit,
    caller: Caller,
    callers: Arc<Callers>,
    sign_ins: Arc<dyn SourceSignIns>,
}

impl SignInVisitor {
    /// Returns the visitor of a request, or the page that it gets instead.
    async fn new(pages: &Pages, request: &Parts, record: &mut Call) -> Result<Self, Response> {
        let nothing = |visitor| {
            let text = "There is no source to sign in to.";
            problem(StatusCode::NOT_FOUND, "Nothing here", text, visitor)
        };
        let AuthMode::Authenticated(callers) = &pages.served else { return Err(nothing(Visitor::Local)) };
        let visit = pages.visit(request, &ReturnPath::page(SOURCES, None), record).await?;
        match (visit.caller.clone(), callers.settings().sources.sign_ins()) {
            (Some(caller), Some(sign_ins)) => {
                Ok(Self { visit, caller, callers: Arc::clone(callers), sign_ins })
            }
            _ => Err(nothing(visit.visitor)),
        }
    }

    fn keys(&self, pages: &Pages) -> AttemptKeys<'_> {
        AttemptKeys { cookies: pages.cookies(), cursors: self.callers.toolboxes.cursors() }
    }

    /// Renders the page for a sign-in that failed.
    fn failed(&self, error: SourceError) -> Response {
        let status = match &error {
            SourceError::NoPermit | SourceError::StateUnavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            error if error.is_source_failure() => StatusCode::BAD_GATEWAY,
            _ => StatusCode::BAD_REQUEST,
        };
        let error = RequestError::from(error);
        let body = html! {
            h1 { "Not signed in" }
            p { (sentence(error.message())) }
            @if let Some(hint) = error.hint() { p { (hint) } }
            p { a href=(SOURCES) { "Back to your sources" } }
        };
        self.page("Not signed in").render(status, &body)
    }

    fn page<'a>(&self, title: &'a str) -> Page<'a> {
        Page { title, section: Some(Section::Sources), visitor: self.visit.visitor }
    }
}

/// Returns the source that a form names.
fn named_source(form: &[u8]) -> Option<SourceName> {
    parameter(form, "source").and_then(|name| name.parse().ok())
}

/// Returns the page for a form that names no source.
fn no_source() -> Response {
    let text = "The form names no source. Open the page with your sources again.";
    problem(StatusCode::BAD_REQUEST, "No such source", text, Visitor::Unknown)
}

async fn begin_with_form(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let visitor = match SignInVisitor::new(pages, &request, record).await {
        Ok(visitor) => visitor,
        Err(page) => return page,
    };
    let Some(source) = named_source(&form) else { return no_source() };
    let response = match visitor.sign_ins.begin(&visitor.caller, &source).await {
        Ok(start) => send_to_vendor(pages, &request, &visitor, &source, start).await,
        Err(error) => visitor.failed(error),
    };
    visitor.visit.hold_permit(response)
}

/// Sends a browser to an authorization server. A redirect would be refused: browsers apply `form-action` to where a form leads.
async fn send_to_vendor(
    pages: &Pages,
    request: &Parts,
    visitor: &SignInVisitor,
    source: &SourceName,
    start: SignInStart,
) -> Response {
    let SignInStart { url, state, pending } = start;
    let host = Url::parse(&url).ok().and_then(|url| url.host().map(|host| host.to_string()));
    let body = html! {
        h1 { "Sign in to " bdi { (source) } }
        p { "You continue at " strong { bdi { (host.unwrap_or_default()) } } ". This server then reads the source as you, until you sign out." }
        p { a class="button" href=(url) rel="noreferrer" { "Continue" } }
    };
    let mut response = visitor.page("Sign in").render(StatusCode::OK, &body);
    if let Ok(value) = HeaderValue::from_str(&format!("0;url={url}")) {
        response.headers_mut().insert(header::REFRESH, value);
    }
    let grant = visitor.caller.grant_id().to_string();
    let id = AttemptId { state: &state, bound_to: &grant };
    let kept = SecretString::from(format!("{source}\n{}", pending.expose_secret()));
    let keys = visitor.keys(pages);
    match ATTEMPTS.keep(keys, &request.headers, &mut response, id, kept.expose_secret()).await {
        Ok(()) => response,
        Err(_too_long) => visitor.failed(SourceError::Reauthorize {
            problem: "what the authorization server registered is too long for a cookie".to_owned(),
            remedy: "the operator can register a client with the vendor, and set its client_id".to_owned(),
        }),
    }
}

async fn handle_return(pages: &Pages, request: &Parts, record: &mut Call) -> Response {
    let visitor = match SignInVisitor::new(pages, request, record).await {
        Ok(visitor) => visitor,
        Err(page) => return page,
    };
    let mut reply = AuthorizationReply::from_query(request.uri.query().unwrap_or_default());
    let state = reply.state.take().unwrap_or_default();
    let grant = visitor.caller.grant_id().to_string();
    let id = AttemptId { state: &state, bound_to: &grant };
    let kept = ATTEMPTS.open(visitor.keys(pages), &request.headers, id).await;
    let kept = kept.as_deref().and_then(|kept| kept.split_once('\n'));
    let kept = kept.and_then(|(source, pending)| Some((source.parse::<SourceName>().ok()?, pending)));
    let refused = |text| problem(StatusCode::BAD_REQUEST, "Not signed in", text, visitor.visit.visitor);
    let Some((source, pending)) = kept else {
        return refused(
            "You did not begin this sign-in in this browser, or it took longer than 10 minutes. Open the page with your sources, and sign in again.",
        );
    };
    match pages.used_attempts.is_first_use(visitor.callers.toolboxes.cursors(), &state).await {
        Ok(true) => {}
        Ok(false) => {
            return refused("This sign-in was used already. Open the page with your sources.");
        }
        Err(_counted) => return without_state(),
    }
    let pending = SecretString::from(pending.to_owned());
    let mut response = match visitor.sign_ins.finish(&visitor.caller, &source, pending, reply).await {
        Ok(()) => redirect(SOURCES, None),
        Err(error) => visitor.failed(error),
    };
    ATTEMPTS.forget(pages.cookies(), &mut response, &state);
    visitor.visit.hold_permit(response)
}

async fn sign_out_with_form(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let visitor = match SignInVisitor::new(pages, &request, record).await {
        Ok(visitor) => visitor,
        Err(page) => return page,
    };
    let Some(source) = named_source(&form) else { return no_source() };
    match visitor.sign_ins.sign_out(&visitor.caller, &source).await {
        Ok(()) => redirect(SOURCES, None),
        Err(error) => visitor.failed(error),
    }
}

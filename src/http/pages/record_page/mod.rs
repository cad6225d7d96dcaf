//! `/records/{handle}`: a page that shows one record to a person, for opening the records that a model cites.
//!
//! With authentication, only people who may read the record can open its page: they sign in at the authorization server,
//! follow the link that `fetch` returned, or enter a token. Each request makes the same checks as a call.
//!
//! * `state`: settings and sessions of all pages
//! * `sign_in`: sign-in at the authorization server
//! * `sessions`, `cookies`: sessions of browsers
//! * `view`: HTML
//! * `responses`: redirects, cookies and telemetry of responses

mod cookies;
mod responses;
mod sessions;
mod sign_in;
mod state;
mod view;

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::FutureExt;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use tokio::time::timeout;
use url::form_urlencoded;

pub(in crate::http) use self::view::information_page;

use self::cookies::Cookies;
use self::responses::{add_cookie, code_of, finish, redirect};
use self::sessions::Sessions;
use self::sign_in::{CALLBACK, SIGNED_IN};
use self::state::{PageRefusal, Pages, begin_session, without_state};
use self::view::{AccessMethod, Document, PageSurround, SIGN_IN, SIGN_OUT, sentence};
use crate::callers::{AuthenticatedCaller, CallContext, GrantToken, LINK, RecordPages, Session};
use crate::fit::Shaping;
use crate::handle::Handle;
use crate::http::body_size::size_of;
use crate::http::middleware::authenticate::client_of;
use crate::http::middleware::served::{AuthMode, Callers};
use crate::http::public_url::PublicUrl;
use crate::http::server::connections::HeldUntilSent;
use crate::telemetry::{Call, Endpoint, ErrorDetails, Origin, Telemetry};
use crate::tools::{Permit, Toolbox};

/// Prefix of the paths of records.
const PAGES: &str = "/records/";

/// Error code of a page without shared state.
const STATE_UNAVAILABLE: &str = "state_unavailable";

/// Maximum size of a form in bytes. A token has at most 16 KiB.
const MAX_FORM: usize = 32 * 1024;

/// Timeout for receiving a form.
const FORM_WITHIN: Duration = Duration::from_secs(10);

/// Returns the routes, which exist only if the server has a public URL.
pub(in crate::http) fn routes(
    served: AuthMode,
    telemetry: Telemetry,
    public_url: Option<PublicUrl>,
) -> Router {
    let Some(public_url) = public_url else { return Router::new() };
    let is_secure = public_url.as_str().starts_with("https:");
    let callers = match &served {
        AuthMode::Authenticated(callers) => Some(Arc::clone(callers)),
        AuthMode::Unauthenticated(_) => None,
    };
    let sessions = Sessions::new(callers, Cookies { is_secure });
    let pages = Pages { served, telemetry, public_url, sessions };
    Router::new()
        .route("/records/{*handle}", get(show).post(follow))
        .route(SIGN_IN, post(sign_in))
        .route(SIGN_OUT, post(sign_out))
        .route(CALLBACK, get(sign_in::callback))
        .with_state(pages)
}

/// Shows a record to a person who may read it.
async fn show(State(pages): State<Pages>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let mut record = pages
        .telemetry
        .call(Endpoint::route("/records/{handle}"), Origin::from_extensions(&request.extensions));
    let shown = AssertUnwindSafe(pages.show(&request, &mut record)).catch_unwind().await;
    let (code, response) = shown.unwrap_or_else(|_panic| {
        let problem = "internal error; try again, or report it";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        ("internal_error", view::problem(status, "Something went wrong", problem, false))
    });
    match code {
        "" => record.answered(&Shaping { bytes: size_of(&response), items: 1, ..Shaping::default() }),
        code => record.refused(code, ErrorDetails { bytes: size_of(&response), reason: None }),
    }
    response
}

impl Pages {
    /// Returns the response with its error code, which is empty for a success.
    async fn show(&self, request: &Parts, record: &mut Call) -> (&'static str, Response) {
        let Some(handle) = handle_of(request.uri.path()) else {
            let problem = "This is not the address of a record. Copy the whole address.";
            return ("not_found", view::problem(StatusCode::NOT_FOUND, "No such record", problem, false));
        };
        let callers = match &self.served {
            AuthMode::Unauthenticated(toolbox) => return self.fetched(&toolbox.now(), &handle, false).await,
            AuthMode::Authenticated(callers) => callers,
        };
        let key = query_value(request.uri.query(), LINK);
        let Ok(session) = self.sessions.get(&request.headers).await else {
            return (STATE_UNAVAILABLE, without_state());
        };
        let shown = match session.filter(|session| session.shows(handle.address())) {
            Some(session) => {
                let client = client_of(&request.extensions);
                Some(self.shown_to(callers, &session, &handle, client, record).await)
            }
            None => None,
        };
        // A browser with a session may follow a link of another grant, or of its own grant after the session ended.
        let is_closed = shown.as_ref().is_none_or(|(_, response)| {
            matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND)
        });
        let path = RecordPages::path(&handle);
        if let Some(key) = key.as_ref().filter(|_| is_closed) {
            match callers.toolboxes.link_reader(key, handle.address()).await {
                Ok(Some(_)) => return ("", view::opening(&path, key)),
                Ok(None) => {}
                Err(_counted) => return (STATE_UNAVAILABLE, without_state()),
            }
        }
        if let Some(shown) = shown.filter(|(_, response)| response.status() != StatusCode::UNAUTHORIZED) {
            return shown;
        }
        let problem = match way_in(callers) {
            AccessMethod::SignIn if !is_just_signed_in(callers, request) => {
                return match sign_in::begin(self, callers, request, &handle).await {
                    Ok(response) => ("unauthorized", response),
                    Err(fault) => ("authorization_unavailable", view::not_signed_in(&fault, &path)),
                };
            }
            AccessMethod::SignIn => {
                "This browser kept no session: allow cookies of this site, and sign in again."
            }
            AccessMethod::Link if key.is_some() => LINK_EXPIRED,
            AccessMethod::Link => "Only people who may read this record can open it.",
        };
        ("unauthorized", view::sign_in(&path, problem, way_in(callers)))
    }

    /// Returns the page of a record for a session.
    async fn shown_to(
        &self,
        callers: &Callers,
        session: &Session,
        handle: &Handle,
        client: IpAddr,
        record: &mut Call,
    ) -> (&'static str, Response) {
        match self.admit(callers, &session.reader().token, client, record).await {
            Ok((caller, permit)) => {
                let toolbox = permit.toolbox.for_call(CallContext::new(caller));
                let (code, mut response) = self.fetched(&toolbox, handle, true).await;
                // A page shows at most one part of a document, so its bytes do not count for the budget of unsent bytes.
                response.extensions_mut().insert(HeldUntilSent::new(Arc::new(permit.permit), None));
                (code, response)
            }
            Err(PageRefusal { status, problem }) => match way_in(callers) {
                AccessMethod::SignIn if status != StatusCode::UNAUTHORIZED => {
                    (code_of(status), view::problem(status, "It cannot be shown", &problem, true))
                }
                way_in => ("unauthorized", view::sign_in(&RecordPages::path(handle), &problem, way_in)),
            },
        }
    }

    async fn admit(
        &self,
        callers: &Callers,
        cell: &GrantToken,
        client: IpAddr,
        record: &mut Call,
    ) -> Result<(AuthenticatedCaller, Permit), PageRefusal> {
        let token = cell.latest().ok_or_else(|| PageRefusal {
            status: StatusCode::UNAUTHORIZED,
            problem: "The link or session has expired.".to_owned(),
        })?;
        let caller = match callers.authenticator().authenticate_token(&token, client).await {
            Ok(caller) => caller,
            Err(denial) => {
                if denial.retry_after().is_none() {
                    cell.forget(&token);
                }
                return Err(denial.into());
            }
        };
        record.is_by(caller.caller.grant_id());
        let permit = callers.toolboxes.admit(&caller).await?;
        Ok((caller, permit))
    }

    /// Reads a record with the tool `fetch`, so that budgets and parts are the same as for a model.
    async fn fetched(
        &self,
        toolbox: &Toolbox,
        handle: &Handle,
        is_signed_in: bool,
    ) -> (&'static str, Response) {
        let answer = match toolbox.read(handle).await {
            Ok(payload) => serde_json::from_str::<Document>(payload.json()),
            Err(error) => {
                let status = match error.code() {
                    "not_found" | "connection_not_found" | "stream_not_declared" => StatusCode::NOT_FOUND,
                    "source_timeout" | "source_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::BAD_REQUEST,
                };
                let mut problem = sentence(&error.to_string());
                if status == StatusCode::NOT_FOUND && is_signed_in && self.has_sign_in() {
                    problem.push_str(" If another account of yours can read it, sign out here and where you signed in, and open the link again.");
                }
                return ("source_error", view::problem(status, "It cannot be shown", &problem, is_signed_in));
            }
        };
        let Ok(document) = answer else {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let problem = "internal error; try again, or report it";
            return ("internal_error", view::problem(status, "Something went wrong", problem, is_signed_in));
        };
        let next = document.next().and_then(|next| next.parse().ok());
        let next = next.map(|next: Handle| RecordPages::path(&next));
        let is_own = document.url().is_empty() || document.url().starts_with(&self.public_url.at(PAGES));
        let elsewhere = (!is_own).then(|| document.url());
        ("", view::record(&document, PageSurround { next: next.as_deref(), elsewhere, is_signed_in }))
    }

    /// Returns true if a form was sent from one of these pages.
    fn is_from_here(&self, headers: &HeaderMap) -> bool {
        headers
            .get(header::ORIGIN)
            .is_some_and(|origin| origin.as_bytes() == self.public_url.as_str().as_bytes())
    }

    fn has_sign_in(&self) -> bool {
        match &self.served {
            AuthMode::Authenticated(callers) => way_in(callers) == AccessMethod::SignIn,
            AuthMode::Unauthenticated(_) => false,
        }
    }
}

/// Returns true if the browser returned from a sign-in within the last 30 seconds. The parameter stays in the URL, so an
/// older time is ignored.
fn is_just_signed_in(callers: &Callers, request: &Parts) -> bool {
    let at =
        query_value(request.uri.query(), SIGNED_IN).and_then(|at| at.parse().ok()).map(Duration::from_secs);
    at.is_some_and(|at| callers.toolboxes.cursors().now().abs_diff(at) < Duration::from_secs(30))
}

/// Returns the way in which people without a session can open records.
fn way_in(callers: &Callers) -> AccessMethod {
    match callers.authenticator().sign_in() {
        Some(_) => AccessMethod::SignIn,
        None => AccessMethod::Link,
    }
}

const LINK_EXPIRED: &str = "The link has expired, or the server was restarted.";

/// Begins a session after the form of a link was sent.
async fn follow(State(pages): State<Pages>, request: Request) -> Response {
    counted(&pages, "/records/{handle}", request, followed).await
}

/// Begins a session after the form with a token was sent.
async fn sign_in(State(pages): State<Pages>, request: Request) -> Response {
    counted(&pages, SIGN_IN, request, signed_in).await
}

/// Ends the session of a browser.
async fn sign_out(State(pages): State<Pages>, request: Request) -> Response {
    counted(&pages, SIGN_OUT, request, signed_out).await
}

/// Answers a form that was sent from one of these pages, and records the outcome.
async fn counted(
    pages: &Pages,
    endpoint: &str,
    request: Request,
    answer: impl AsyncFnOnce(&Pages, Parts, Vec<u8>, &mut Call) -> Response,
) -> Response {
    let mut record =
        pages.telemetry.call(Endpoint::route(endpoint), Origin::from_extensions(request.extensions()));
    let response = match read_form(pages, request).await {
        Ok((request, form)) => answer(pages, request, form, &mut record).await,
        Err(refused) => refused,
    };
    finish(record, response)
}

async fn followed(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let (AuthMode::Authenticated(callers), Some(handle)) = (&pages.served, handle_of(request.uri.path()))
    else {
        return view::problem(
            StatusCode::NOT_FOUND,
            "No such record",
            "There is no record at this address.",
            false,
        );
    };
    let path = RecordPages::path(&handle);
    // A link that is used for another record stays valid for its own record.
    let reader = match form_value(&form, LINK) {
        None => Ok(None),
        Some(key) => callers.toolboxes.link_reader(&key, handle.address()).await,
    };
    let Ok(reader) = reader else { return without_state() };
    let Some(reader) = reader else { return view::sign_in(&path, LINK_EXPIRED, way_in(callers)) };
    let client = client_of(&request.extensions);
    if let Err(refusal) = pages.admit(callers, &reader.token, client, record).await {
        return view::sign_in(&path, &refusal.problem, way_in(callers));
    }
    let Ok(mut before) = pages.sessions.get(&request.headers).await else { return without_state() };
    // A session with an expired token no longer shows all records.
    if let Some(session) = before.as_ref().filter(|session| session.shows_all())
        && pages.admit(callers, &session.reader().token, client, record).await.is_err()
    {
        before = None;
    }
    let session = Session::from_link(reader, handle.address(), before);
    begin_session(pages, &request.headers, session, &path).await
}

async fn signed_in(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let to = form_value(&form, "to").unwrap_or_default();
    let Some(handle) = handle_of(&to) else {
        return view::problem(StatusCode::BAD_REQUEST, "No such record", "The form names no record.", false);
    };
    let path = RecordPages::path(&handle);
    let AuthMode::Authenticated(callers) = &pages.served else { return redirect(&path, None) };
    let token = SecretString::from(form_value(&form, "token").unwrap_or_default().trim().to_owned());
    let caller =
        match callers.authenticator().authenticate_token(&token, client_of(&request.extensions)).await {
            Ok(caller) => caller,
            Err(denial) => return view::sign_in(&path, &sentence(&denial.to_string()), way_in(callers)),
        };
    record.is_by(caller.caller.grant_id());
    // No session is created for a person who may read no records.
    if let Err(reason) = callers.toolboxes.admit(&caller).await {
        return view::sign_in(&path, &sentence(&reason.to_string()), way_in(callers));
    }
    begin_session(pages, &request.headers, Session::from_sign_in(caller), &path).await
}

async fn signed_out(pages: &Pages, request: Parts, _form: Vec<u8>, _record: &mut Call) -> Response {
    let Ok(cookie) = pages.sessions.end(&request.headers).await else { return without_state() };
    let mut response =
        view::problem(StatusCode::OK, "Signed out", "This browser no longer shows records.", false);
    add_cookie(&mut response, &cookie);
    response
}

/// Reads a form that was sent from one of these pages, or returns the error page.
async fn read_form(pages: &Pages, request: Request) -> Result<(Parts, Vec<u8>), Response> {
    if !pages.is_from_here(request.headers()) {
        return Err(foreign());
    }
    let (parts, body) = request.into_parts();
    match timeout(FORM_WITHIN, to_bytes(body, MAX_FORM)).await {
        Ok(Ok(form)) => Ok((parts, form.into())),
        Ok(Err(_)) | Err(_) => {
            let problem = "The form is too long or incomplete.";
            Err(view::problem(StatusCode::PAYLOAD_TOO_LARGE, "Invalid form", problem, false))
        }
    }
}

fn foreign() -> Response {
    let problem = "The form was not sent from a page of this server. Open the record again.";
    view::problem(StatusCode::FORBIDDEN, "Form refused", problem, false)
}

/// Parses the handle in a path.
fn handle_of(path: &str) -> Option<Handle> {
    let encoded = path.strip_prefix(PAGES)?;
    percent_decode_str(encoded).decode_utf8().ok()?.parse().ok()
}

fn query_value(query: Option<&str>, name: &str) -> Option<String> {
    form_value(query.unwrap_or_default().as_bytes(), name)
}

fn form_value(form: &[u8], name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(form);
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned())).filter(|value| !value.is_empty())
}

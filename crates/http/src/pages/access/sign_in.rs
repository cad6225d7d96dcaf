//! Sign-in at the authorization server on the way to a page.
//!
//! A cookie holds the verifier and the page, bound to the issuer and the `state` of the attempt. The page is read from the cookie,
//! never from the reply.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fetchwell_callers::{
    Attempt, AuthenticatedCaller, Authenticator, AuthorizationReply, Denial, Session, SignInFault,
};
use fetchwell_telemetry::{Call, Endpoint, Origin};
use secrecy::{ExposeSecret, SecretString};

use super::attempts::{AttemptId, AttemptKeys, Attempts, PAGE_COOKIE};
use super::pages::{PageRefusal, Pages, begin_session, without_state};
use super::parameters::parameter;
use super::responses::{finish, redirect};
use super::return_path::ReturnPath;
use super::sign_in_page::{BEGIN, not_signed_in};
use crate::middleware::authenticate::client_of;
use crate::middleware::served::{AuthMode, Callers};
use crate::pages::layout::{Visitor, problem, sentence};

/// Path of the redirect URI. No handle has this form.
pub(crate) const CALLBACK: &str = "/records/-/callback";

/// Query parameter of a record page after a sign-in. If the browser then has no session, it is not redirected to sign in again.
const SIGNED_IN: &str = "signed-in";

/// Attempts of a sign-in for a page.
const ATTEMPTS: Attempts = Attempts { cookie: PAGE_COOKIE, context: "sign-in for a page" };

/// Returns true if the browser returned from a sign-in within the last 30 seconds. The parameter stays in the URL, so an
/// older time is ignored.
pub(crate) fn is_just_signed_in(callers: &Callers, request: &Parts) -> bool {
    let at = parameter(request.uri.query().unwrap_or_default().as_bytes(), SIGNED_IN);
    let at = at.and_then(|at| at.parse().ok()).map(Duration::from_secs);
    at.is_some_and(|at| callers.toolboxes.cursors().now().abs_diff(at) < Duration::from_secs(30))
}

/// Sends a browser that followed the link of a sign-in page to the authorization server.
pub(crate) async fn start_sign_in(State(pages): State<Pages>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let record = pages.telemetry.call(Endpoint::route(BEGIN), Origin::from_extensions(&request.extensions));
    let to = parameter(request.uri.query().unwrap_or_default().as_bytes(), "to");
    let to = to.and_then(|to| to.parse().ok()).unwrap_or_else(|| ReturnPath::page("/", None));
    let response = match &pages.served {
        AuthMode::Unauthenticated(_) => redirect(&to.to_string(), None),
        AuthMode::Authenticated(callers) => match begin(&pages, callers, &request, &to).await {
            Ok(response) => response,
            Err(fault) => not_signed_in(&fault, &to),
        },
    };
    finish(record, response)
}

/// Redirects a browser to the authorization server, and stores the page to return to in a cookie.
pub(crate) async fn begin(
    pages: &Pages,
    callers: &Callers,
    request: &Parts,
    to: &ReturnPath,
) -> Result<Response, SignInFault> {
    let authenticator = callers.authenticator();
    let (Some(sign_in), Some(attempt)) = (authenticator.sign_in(), Attempt::random()) else {
        return Err(SignInFault::Unavailable);
    };
    let url = sign_in.authorization_url(&attempt, &pages.url_at(CALLBACK)).await?;
    let mut response = redirect(url.as_str(), None);
    let kept = format!("{}.{}", attempt.verifier.expose_secret(), to.to_short());
    let id = AttemptId { state: &attempt.state, bound_to: sign_in.issuer() };
    let keys = AttemptKeys { cookies: pages.cookies(), cursors: callers.toolboxes.cursors() };
    let is_kept = ATTEMPTS.keep(keys, &request.headers, &mut response, id, &kept).await;
    is_kept.map_err(|_too_long| SignInFault::Unavailable)?;
    Ok(response)
}

/// Ends an attempt: exchanges the code for a token, and begins a session with it.
pub(crate) async fn callback(State(pages): State<Pages>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let mut record =
        pages.telemetry.call(Endpoint::route(CALLBACK), Origin::from_extensions(&request.extensions));
    let response = pages.finish_sign_in(&request, &mut record).await;
    finish(record, response)
}

impl Pages {
    async fn finish_sign_in(&self, request: &Parts, record: &mut Call) -> Response {
        let mut reply = AuthorizationReply::from_query(request.uri.query().unwrap_or_default());
        let callers = match &self.served {
            AuthMode::Authenticated(callers) if callers.authenticator().sign_in().is_some() => callers,
            AuthMode::Authenticated(_) | AuthMode::Unauthenticated(_) => {
                let text = "This server does not support sign-in.";
                return problem(StatusCode::NOT_FOUND, "Nothing here", text, Visitor::Unknown);
            }
        };
        // The configuration is read once, so that a code is sent to the server that issued it.
        let authenticator = callers.authenticator();
        let pending = match reply.state.take() {
            Some(state) => self.pending(callers, &authenticator, &request.headers, state).await,
            None => None,
        };
        let Some(PendingSignIn { attempt, to }) = pending else {
            let text = "This browser did not begin this sign-in, or it took longer than 10 minutes. Open the page again.";
            return problem(StatusCode::BAD_REQUEST, "You are not signed in", text, Visitor::Unknown);
        };
        match self.used_attempts.is_first_use(callers.toolboxes.cursors(), &attempt.state).await {
            Ok(true) => {}
            Ok(false) => {
                let text = "This sign-in was used already. Open the page again.";
                return problem(StatusCode::BAD_REQUEST, "You are not signed in", text, Visitor::Unknown);
            }
            Err(_counted) => return without_state(),
        }
        let client = client_of(&request.extensions);
        let mut response = match self.caller(callers, &authenticator, &attempt, reply, client).await {
            Ok(caller) => {
                record.is_by(caller.caller.grant_id());
                let path = match &to {
                    ReturnPath::Record(_) => {
                        format!("{to}?{SIGNED_IN}={}", callers.toolboxes.cursors().now().as_secs())
                    }
                    ReturnPath::Page(path) => path.to_string(),
                };
                self.with_session(callers, &request.headers, caller, &path).await
            }
            Err(Rejection::SignIn(fault)) => not_signed_in(&fault, &to),
            Err(Rejection::Token(denial)) if denial.retry_after().is_some() => {
                not_signed_in(&SignInFault::Unavailable, &to)
            }
            Err(Rejection::Token(denial)) => {
                let text = format!("{} Tell the operator of this server.", sentence(&denial.to_string()));
                problem(denial.status(), "You are not signed in", &text, Visitor::Unknown)
            }
        };
        ATTEMPTS.forget(self.cookies(), &mut response, &attempt.state);
        response
    }

    /// Returns the attempt that this browser began with a state.
    async fn pending(
        &self,
        callers: &Callers,
        authenticator: &Authenticator,
        headers: &HeaderMap,
        state: String,
    ) -> Option<PendingSignIn> {
        let id = AttemptId { state: &state, bound_to: authenticator.sign_in()?.issuer() };
        let keys = AttemptKeys { cookies: self.cookies(), cursors: callers.toolboxes.cursors() };
        let kept = ATTEMPTS.open(keys, headers, id).await?;
        let (verifier, to) = kept.split_once('.')?;
        let (verifier, to) = (SecretString::from(verifier.to_owned()), ReturnPath::from_short(to)?);
        Some(PendingSignIn { attempt: Attempt { state, verifier }, to })
    }

    /// Exchanges the code of a reply for a token, and returns its person after the checks of every bearer token.
    async fn caller(
        &self,
        callers: &Callers,
        authenticator: &Authenticator,
        attempt: &Attempt,
        reply: AuthorizationReply,
        client: IpAddr,
    ) -> Result<AuthenticatedCaller, Rejection> {
        let sign_in = authenticator.sign_in().ok_or(SignInFault::Unavailable)?;
        let redirect_uri = self.url_at(CALLBACK);
        let token = sign_in.access_token(attempt, reply, &redirect_uri, client).await?;
        Ok(callers.authenticator().authenticate_token(&token, client).await?)
    }

    /// Begins the session of a person and sends the browser to a page, unless the person has no records here.
    async fn with_session(
        &self,
        callers: &Callers,
        headers: &HeaderMap,
        caller: AuthenticatedCaller,
        to: &str,
    ) -> Response {
        if let Err(reason) = callers.toolboxes.admit(&caller).await {
            let PageRefusal { status, problem: text } = reason.into();
            let title = match status {
                StatusCode::FORBIDDEN => "You cannot read any records",
                _ => "You are not signed in",
            };
            return problem(status, title, &sentence(&text), Visitor::Unknown);
        }
        begin_session(self, headers, Session::from_sign_in(caller), to).await
    }
}

/// An attempt of a browser, and the page that it leads to.
struct PendingSignIn {
    attempt: Attempt,
    to: ReturnPath,
}

/// Reason why a sign-in failed.
enum Rejection {
    /// There is no token.
    SignIn(SignInFault),
    /// The token is refused.
    Token(Denial),
}

impl From<SignInFault> for Rejection {
    fn from(fault: SignInFault) -> Self {
        Self::SignIn(fault)
    }
}

impl From<Denial> for Rejection {
    fn from(denial: Denial) -> Self {
        Self::Token(denial)
    }
}

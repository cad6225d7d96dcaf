//! Forms of pages: only those that were sent from a page of this server are read. Sign-in with a token, and sign-out.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use fetchwell_callers::Session;
use fetchwell_telemetry::{Call, Endpoint, Origin};
use secrecy::SecretString;
use tokio::time::timeout;

use super::pages::{AccessMethod, Pages, begin_session, without_state};
use super::parameters::parameter;
use super::responses::{add_cookie, finish, redirect};
use super::return_path::ReturnPath;
use super::sign_in_page::{SIGN_IN, sign_in_page};
use crate::middleware::authenticate::client_of;
use crate::middleware::served::AuthMode;
use crate::pages::layout::{SIGN_OUT, Visitor, problem, sentence};

/// Maximum size of a form in bytes. A token has at most 16 KiB.
const MAX_FORM: usize = 32 * 1024;

/// Timeout for receiving a form.
const FORM_WITHIN: Duration = Duration::from_secs(10);

/// Begins a session after the form with a token was sent.
pub(crate) async fn sign_in_with_token(State(pages): State<Pages>, request: Request) -> Response {
    handle_form(&pages, SIGN_IN, request, signed_in).await
}

/// Ends the session of a browser.
pub(crate) async fn sign_out(State(pages): State<Pages>, request: Request) -> Response {
    handle_form(&pages, SIGN_OUT, request, signed_out).await
}

/// Answers a form that was sent from one of these pages, and records the outcome.
pub(crate) async fn handle_form(
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

async fn signed_in(pages: &Pages, request: Parts, form: Vec<u8>, record: &mut Call) -> Response {
    let Ok(to) = parameter(&form, "to").unwrap_or_default().parse::<ReturnPath>() else {
        let text = "The form names no page.";
        return problem(StatusCode::BAD_REQUEST, "No such page", text, Visitor::Unknown);
    };
    let AuthMode::Authenticated(callers) = &pages.served else { return redirect(&to.to_string(), None) };
    let method = AccessMethod::offered_by(callers);
    let token = SecretString::from(parameter(&form, "token").unwrap_or_default().trim().to_owned());
    let caller =
        match callers.authenticator().authenticate_token(&token, client_of(&request.extensions)).await {
            Ok(caller) => caller,
            Err(denial) => return sign_in_page(&to, &sentence(&denial.to_string()), method),
        };
    record.is_by(caller.caller.grant_id());
    // No session is created for a person who may read no records.
    if let Err(reason) = callers.toolboxes.admit(&caller).await {
        return sign_in_page(&to, &sentence(&reason.to_string()), method);
    }
    begin_session(pages, &request.headers, Session::from_sign_in(caller), &to.to_string()).await
}

async fn signed_out(pages: &Pages, request: Parts, _form: Vec<u8>, _record: &mut Call) -> Response {
    let Ok(cookie) = pages.sessions.end(&request.headers).await else { return without_state() };
    let text = "This browser no longer shows records.";
    let mut response = problem(StatusCode::OK, "Signed out", text, Visitor::Unknown);
    add_cookie(&mut response, &cookie);
    response
}

/// Reads a form that was sent from one of these pages, or returns the error page.
async fn read_form(pages: &Pages, request: Request) -> Result<(Parts, Vec<u8>), Response> {
    if !pages.is_from_here(request.headers()) {
        let text = "The form was not sent from a page of this server. Open the page again.";
        return Err(problem(StatusCode::FORBIDDEN, "Form refused", text, Visitor::Unknown));
    }
    let (parts, body) = request.into_parts();
    match timeout(FORM_WITHIN, to_bytes(body, MAX_FORM)).await {
        Ok(Ok(form)) => Ok((parts, form.into())),
        Ok(Err(_)) | Err(_) => {
            let text = "The form is too long or incomplete.";
            Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "Invalid form", text, Visitor::Unknown))
        }
    }
}

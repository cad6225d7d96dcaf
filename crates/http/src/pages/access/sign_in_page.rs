//! Pages for visitors who are not signed in.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use fetchwell_callers::SignInFault;
use maud::{Markup, html};

use super::pages::AccessMethod;
use super::parameters::parameters;
use super::return_path::ReturnPath;
use crate::pages::layout::{Page, Visitor, sentence};

/// Path of the form with a token. No handle has this form.
pub(crate) const SIGN_IN: &str = "/records/-/sign-in";

/// Path that sends a browser to the authorization server, with the parameter `to` for the page to return to.
pub(crate) const BEGIN: &str = "/records/-/begin";

/// Renders the page for a visitor who is not signed in.
pub(crate) fn sign_in_page(to: &ReturnPath, problem: &str, method: AccessMethod) -> Response {
    let heading = if to.handle().is_some() { "This record is not public" } else { "This page is not public" };
    let body = html! {
        h1 { (heading) }
        p { (problem) }
        (sign_in_form(to, method))
    };
    let page = Page { title: "Sign in", section: None, visitor: Visitor::Unknown };
    let mut response = page.render(StatusCode::UNAUTHORIZED, &body);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Renders the ways to sign in: a link to the authorization server, if there is one, and a form for a token.
pub(crate) fn sign_in_form(to: &ReturnPath, method: AccessMethod) -> Markup {
    let path = to.to_string();
    html! {
        @match (method, to.handle()) {
            (AccessMethod::Link, Some(_)) => p { "Ask your assistant to fetch the record again: the address it gives then opens it. Or show an access token:" },
            (AccessMethod::Link, None) => p { "Show an access token:" },
            (AccessMethod::SignIn, _) => {
                p { a class="button" href=(format!("{BEGIN}{}", parameters(&[("to", &path)]))) { "Sign in" } }
                p { "Or show an access token:" }
            }
        }
        form class="form" method="post" action=(SIGN_IN) {
            input type="hidden" name="to" value=(path);
            label for="token" { "Access token" }
            input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required;
            button type="submit" { "Sign in" }
        }
    }
}

/// Renders the page for a sign-in that failed.
pub(crate) fn not_signed_in(fault: &SignInFault, to: &ReturnPath) -> Response {
    let (status, remedy) = match fault {
        SignInFault::AccessDenied | SignInFault::Malformed | SignInFault::OtherIssuer => {
            (StatusCode::FORBIDDEN, None)
        }
        SignInFault::Refused(code) if code == "invalid_grant" => (StatusCode::FORBIDDEN, None),
        SignInFault::Refused(_) => (StatusCode::BAD_GATEWAY, Some("Tell the operator of this server.")),
        SignInFault::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
    };
    let body = html! {
        h1 { "You are not signed in" }
        p { (sentence(&fault.to_string())) }
        @if let Some(remedy) = remedy { p { (remedy) } }
        p { a href=(to) { "Sign in again" } }
    };
    let page = Page { title: "You are not signed in", section: None, visitor: Visitor::Unknown };
    page.render(status, &body)
}

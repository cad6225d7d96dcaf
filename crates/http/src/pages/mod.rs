//! Pages for people and documents for clients outside the APIs.
//!
//! A page with records has a `Section` of the navigation in `layout` and its path in `access::return_path`.
//!
//! * `layout`: header, navigation, style and headers of all pages
//! * `access`: sessions of browsers, sign-in, and the grant that a page is read with
//! * `root`: `/`
//! * `search`: the search page
//! * `record`: `/records/`
//! * `sources`: `/sources`
//! * `projects`: `/projects`
//! * `model`: `/model`
//! * `operator`: `/operator`
//! * `setup`: `/setup`, which a process of its own serves
//! * `well_known`: `/.well-known/`

mod access;
mod layout;
mod model;
mod operator;
mod projects;
mod record;
mod root;
mod search;
pub(crate) mod setup;
pub(crate) mod sources;
pub(crate) mod well_known;

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

pub(crate) use self::access::{Pages, StreamAccess, authorize_stream};

use self::access::{
    BEGIN, CALLBACK, RECORDS, ReturnPath, SIGN_IN, callback, sign_in_with_token, sign_out, start_sign_in,
};
use self::layout::{SIGN_OUT, Visitor, problem, sentence};
use super::error_format;
use super::middleware::refusal::{Refusal, RefusedRequest};
use super::middleware::served::AuthMode;

/// Returns true for the path of a page, or of a form of one.
fn is_page(path: &str) -> bool {
    path.starts_with(RECORDS) || path.parse::<ReturnPath>().is_ok()
}

/// Renders a refusal of a request: a page for a browser at the path of one, and otherwise the format of the API.
pub(crate) fn render_refusal(refusal: &Refusal, request: &RefusedRequest<'_>) -> Response {
    if request.accepts_html && is_page(request.path) {
        refused(refusal)
    } else {
        error_format::render(refusal, request)
    }
}

/// Renders the page for a request that was refused or aborted.
fn refused(refusal: &Refusal) -> Response {
    let title = match refusal.status {
        StatusCode::GATEWAY_TIMEOUT => "No answer in time",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        StatusCode::INTERNAL_SERVER_ERROR => "Something went wrong",
        _ => "It cannot be shown",
    };
    problem(refusal.status, title, &sentence(&refusal.problem), Visitor::Unknown)
}

/// Returns the routes of all pages. With authentication, pages with records exist only if the server has a public URL: forms are
/// checked against it.
pub(crate) fn routes(pages: Pages) -> Router {
    let has_records = matches!(pages.served, AuthMode::Unauthenticated(_)) || pages.public_url.is_some();
    if !has_records {
        return root::routes(pages);
    }
    let others = Router::new()
        .route(SIGN_IN, post(sign_in_with_token))
        .route(SIGN_OUT, post(sign_out))
        .route(BEGIN, get(start_sign_in))
        .route(CALLBACK, get(callback))
        .route("/model", get(model::show))
        .route(operator::OPERATOR, get(operator::show))
        .with_state(pages.clone());
    root::routes(pages.clone())
        .merge(projects::routes(pages.clone()))
        .merge(sources::routes(pages.clone()))
        .merge(record::routes(pages))
        .merge(others)
}

//! `/`: the search page for browsers, and a pointer for programs that are configured with it by mistake.
//!
//! The pointer and the page for visitors who are not signed in reveal nothing about records or callers.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use maud::html;
use serde_json::json;

use super::access::{AccessMethod, Pages, ReturnPath, serve_page, sign_in_form};
use super::layout::{Page, Visitor};
use super::search::search_page;
use crate::headers::accepts_html;
use crate::mcp::json_rpc_error;
use crate::middleware::served::AuthMode;

/// Description of the server in one sentence.
const ABOUT: &str = "fetchwell lets AI clients search and read records across connected accounts, over MCP.";

/// JSON-RPC error code for a path that is not an MCP endpoint.
const NOT_AN_ENDPOINT: i32 = -32_600;

/// Returns the route of `/`.
pub(super) fn routes(pages: Pages) -> Router {
    Router::new().route("/", any(answer).with_state(pages))
}

async fn answer(State(pages): State<Pages>, request: Request) -> Response {
    let mcp = pages.called_url(request.headers(), request.uri(), request.extensions(), "/mcp");
    match *request.method() {
        Method::GET | Method::HEAD if accepts_html(request.headers()) => {
            if is_about_server(&pages, request.headers(), request.uri()).await {
                about(&pages, &mcp)
            } else {
                serve_page(&pages, "/", request, |pages, visit, request| {
                    Box::pin(search_page(pages, visit, request))
                })
                .await
            }
        }
        Method::GET | Method::HEAD => {
            let pointer =
                json!({ "name": "fetchwell", "about": ABOUT, "mcp": mcp, "openapi": "/openapi.json" });
            ([(header::CONTENT_TYPE, "application/json")], pointer.to_string()).into_response()
        }
        Method::POST => {
            let problem = format!(
                "this is not an MCP endpoint: send messages to {mcp}, or to {mcp}/openai for ChatGPT"
            );
            json_rpc_error(StatusCode::NOT_FOUND, NOT_AN_ENDPOINT, &problem)
        }
        _ => {
            let problem = format!("There is nothing here. The MCP endpoints are {mcp} and {mcp}/openai.\n");
            (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], problem).into_response()
        }
    }
}

/// Returns true if a browser gets the page about the server: it has no session and searches for nothing, or the server has no
/// pages with records.
async fn is_about_server(pages: &Pages, headers: &HeaderMap, uri: &Uri) -> bool {
    match &pages.served {
        AuthMode::Unauthenticated(_) => false,
        AuthMode::Authenticated(_) => {
            if pages.public_url.is_none() || uri.query().is_some() {
                return pages.public_url.is_none();
            }
            // Without shared state the page itself says so.
            let Ok(session) = pages.sessions.get(headers).await else { return false };
            session.is_none_or(|session| !session.shows_all())
        }
    }
}

/// Renders the page about the server for a visitor who is not signed in.
fn about(pages: &Pages, mcp: &str) -> Response {
    let method = match &pages.served {
        AuthMode::Authenticated(callers) if pages.public_url.is_some() => {
            Some(AccessMethod::offered_by(callers))
        }
        AuthMode::Authenticated(_) | AuthMode::Unauthenticated(_) => None,
    };
    let body = html! {
        h1 { "fetchwell" }
        p { (ABOUT) }
        p { "Add this URL to your client as an MCP server (Streamable HTTP). ChatGPT takes " code { (mcp) "/openai" } "." }
        pre class="box" { (mcp) }
        @if let Some(method) = method {
            h2 { "Your records" }
            p { "Sign in to search and read the records that you may see." }
            (sign_in_form(&ReturnPath::page("/", None), method))
        } @else {
            p class="soft" { "To search records on this page, the operator sets " code { "public_url" } " in the configuration." }
        }
    };
    let page = Page { title: "fetchwell", section: None, visitor: Visitor::Unknown };
    page.render(StatusCode::OK, &body)
}

//! `/`, which people open and clients are configured with by mistake: a short page for browsers, a pointer for
//! others. It is unauthenticated and reveals nothing about records or callers.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, Scheme};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use maud::html;
use serde_json::json;

use super::record_page::information_page;
use crate::http::mcp::json_rpc_error;
use crate::http::public_url::PublicUrl;

/// Description of the server in one sentence.
const ABOUT: &str = "fetchwell lets AI clients search and read records across connected accounts, over MCP.";

/// JSON-RPC error code for a path that is not an MCP endpoint.
const NOT_AN_ENDPOINT: i32 = -32_600;

/// Returns the route of `/`.
pub(in crate::http) fn routes(public_url: Option<PublicUrl>) -> Router {
    Router::new().route("/", any(answer).with_state(public_url))
}

async fn answer(State(public_url): State<Option<PublicUrl>>, request: Request) -> Response {
    let mcp = match &public_url {
        Some(url) => url.at("/mcp"),
        None => requested_url(&request, "/mcp"),
    };
    match *request.method() {
        Method::GET | Method::HEAD if accepts_html(&request) => page(&mcp),
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

/// Returns the URL of a path under the host that the client called. The host is one of this server; other hosts are refused
/// before.
fn requested_url(request: &Request, path: &str) -> String {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    match (request.extensions().get::<Scheme>(), host) {
        (Some(scheme), Some(host)) => format!("{scheme}://{host}{path}"),
        _ => path.to_owned(),
    }
}

/// Returns true if the client is a browser: programs accept no HTML by name.
fn accepts_html(request: &Request) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("text/html"))
}

fn page(mcp: &str) -> Response {
    let body = html! {
        h1 { "fetchwell" }
        p { (ABOUT) }
        p { "Add this URL to your client as an MCP server (Streamable HTTP):" }
        pre { (mcp) }
        p { "ChatGPT takes " code { (mcp) "/openai" } "." }
    };
    information_page("fetchwell", &body)
}

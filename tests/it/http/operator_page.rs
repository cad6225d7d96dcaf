//! The operator's page: on this machine, and on a server for many callers.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::support::hosted::{ANN, BOB, HEAD, PUBLIC, Place, STORES, call, start, token};
use crate::support::{Answer, HttpServer, ask, demo_store, post, text};

/// Requests the page as a browser does, with the cookie of a session.
fn page(server: &HttpServer, target: &str, cookie: &str) -> Answer {
    let headers = ["accept: text/html".to_owned(), format!("cookie: {cookie}")];
    ask(&server.address, "GET", target, &headers.each_ref().map(String::as_str))
}

/// Signs in with a token, and returns the cookie of the session.
fn sign_in(server: &HttpServer, token: &str) -> String {
    let form = format!("to=%2F&token={}", utf8_percent_encode(token, NON_ALPHANUMERIC));
    let answer = post(&server.address, "/records/-/sign-in", &[&format!("origin: {PUBLIC}")], &form);
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn calls_are_shown_without_their_contents() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let tool = |name: &str, arguments: serde_json::Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        assert_eq!(post(&server.address, "/mcp", &[], &message.to_string()).status, 200);
    };
    let before = page(&server, "/operator", "");
    assert!(before.status == 200 && before.text.contains("No call failed."), "{before:?}");
    for _ in 0..3 {
        tool("search", json!({"query": "invoice"}));
    }
    tool("fetch", json!({"id": "cin_home/messages:m1"}));
    tool("fetch", json!({"id": "cin_home/messages:zebra"}));
    let shown = page(&server, "/operator?window=10m", "");
    assert_eq!(shown.status, 200);
    for expected in [
        "<code>tool:search</code>",
        "<code>not_found</code>",
        "Calls over time: ",
        "1 failed",
        "<svg",
        "<meter",
        "aria-current=\"true\"",
        "answers",
    ] {
        assert!(shown.text.contains(expected), "{expected}: {}", shown.text);
    }
    for content in ["zebra", "invoice", "cin_home", "style="] {
        assert!(!shown.text.contains(content), "{content}: {}", shown.text);
    }
    assert!(shown.text.len() < 60_000, "{}", shown.text.len());
    // The page is in the navigation, and unknown parameters change nothing.
    assert!(page(&server, "/", "").text.contains("href=\"/operator\""));
    assert_eq!(page(&server, "/operator?window=%3Cb%3E&x=y", "").status, 200);
    assert_eq!(ask(&server.address, "DELETE", "/operator", &[]).status, 405);
}

#[test]
fn only_tokens_of_administrators_open_the_page_of_a_hosted_server() {
    let place = Place::new();
    let admin = token("ann", ANN).replace("name = \"ann\"", "name = \"ann\"\nadmin = true");
    let server = start(&place.configure(&format!("{HEAD}{admin}{}{STORES}", token("bob", BOB))));
    call(&server, BOB, "search", &json!({"query": "letter"}));
    assert_eq!(page(&server, "/operator", "").status, 401, "without a session");
    let [ann, bob] = [ANN, BOB].map(|token| sign_in(&server, token));
    let refused = page(&server, "/operator", &bob);
    assert!(refused.status == 403 && refused.text.contains("admin = true"), "{refused:?}");
    assert!(!refused.text.contains("tool:search") && !refused.text.contains("href=\"/operator\""));
    let shown = page(&server, "/operator", &ann);
    assert!(shown.status == 200 && shown.text.contains("tool:search"), "{shown:?}");
    assert!(!shown.text.contains(ANN) && !shown.text.contains(BOB));
    // A page with records of this grant has the link, too.
    assert!(page(&server, "/", &ann).text.contains("href=\"/operator\""));
}

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
        "without a configuration file",
        "knows nothing of others",
        "declarations of streams",
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

/// Returns the number of answered calls of the chart of the last hour.
fn answered(page: &Answer) -> u64 {
    let shown = page.text.split("Calls over time: ").nth(1).unwrap_or_else(|| panic!("{page:?}"));
    shown.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn calls_over_time_include_those_of_earlier_processes() {
    let (folder, store) = demo_store();
    let state = folder.path().join("state");
    let start = || HttpServer::start(["--store", text(&store), "--state-dir", text(&state)]);
    let search = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "invoice"}}})
    .to_string();
    let earlier = start();
    for _ in 0..7 {
        assert_eq!(post(&earlier.address, "/mcp", &[], &search).status, 200);
    }
    let before = page(&earlier, "/operator", "");
    assert!(answered(&before) >= 7, "{before:?}");
    earlier.stop();
    let server = start();
    assert_eq!(post(&server.address, "/mcp", &[], &search).status, 200);
    let shown = page(&server, "/operator", "");
    // One more search, and at least the earlier page.
    assert!(answered(&shown) > answered(&before) + 1, "{shown:?}");
    let year = jiff::Timestamp::now().strftime("%Y").to_string();
    assert!(shown.text.contains(&format!("The oldest record is of {year}-")), "{shown:?}");
    // Tables of tools have the calls of this process.
    assert!(shown.text.contains("of which the latest 1 are shown here"), "{shown:?}");
    // A file that is no store of calls leaves the calls of the process.
    server.stop();
    for name in ["telemetry.db", "telemetry.db-wal", "telemetry.db-shm"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    std::fs::write(state.join("telemetry.db"), "not a database").unwrap();
    let alone = start();
    assert_eq!(post(&alone.address, "/mcp", &[], &search).status, 200);
    let shown = page(&alone, "/operator", "");
    assert!(shown.text.contains("The latest calls of this process."), "{shown:?}");
    assert_eq!(answered(&shown), 1, "{shown:?}");
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
    // The configuration has no token and no hash of one.
    assert!(
        shown.text.contains("<code>auth.token[0].sha256</code></th><td><span class=\"soft\">hidden"),
        "{shown:?}"
    );
    let admin_hash = admin.split("sha256 = \"").nth(1).unwrap().get(..64).unwrap().to_owned();
    assert!(!shown.text.contains(&admin_hash) && shown.text.contains("<code>&quot;ann.db&quot;</code>"));
    // A page with records of this grant has the link, too.
    assert!(page(&server, "/", &ann).text.contains("href=\"/operator\""));
}

#[test]
fn a_configuration_with_secrets_is_shown_without_them() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    std::fs::write(folder.path().join("5ecret.key"), "5ecret-of-a-file").unwrap();
    let text_of_file = format!(
        "[[source]]\nname = \"demo\"\nstore = \"{}\"\n\
         [[source]]\nname = \"work\"\nurl = \"https://127.0.0.1:9/5ecret\"\ncredential = \"command:echo 5ecret\"\n\
         [telemetry]\notlp_endpoint = \"http://127.0.0.1:9/5ecret\"\n\
         [rerank]\nprovider = \"http\"\nurl = \"http://127.0.0.1:9/5ecret\"\nmodel = \"small\"\napi_key = \"env:RERANK_KEY\"\n",
        text(&store)
    );
    std::fs::write(&config, &text_of_file).unwrap();
    let mut command = crate::support::binary();
    command.env("RERANK_KEY", "5ecret-of-a-variable");
    let server = HttpServer::start_with(command, "127.0.0.1:0", ["--config", text(&config)]);
    let shown = page(&server, "/operator", "");
    assert_eq!(shown.status, 200);
    assert!(!shown.text.contains("5ecret"), "{}", shown.text);
    for expected in ["command:\u{2026}", "https://127.0.0.1:9/\u{2026}", "env:RERANK_KEY", "fetchwell.toml"] {
        assert!(shown.text.contains(expected), "{expected}: {}", shown.text);
    }
    // A change that is applied is shown.
    std::fs::write(&config, format!("call_deadline = \"7s\"\n{text_of_file}")).unwrap();
    server
        .wait_until("the change is shown", || page(&server, "/operator", "").text.contains("&quot;7s&quot;"));
}

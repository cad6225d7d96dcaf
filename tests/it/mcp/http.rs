//! The built binary over real HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, connect, demo_store, fetchwell, recorded, stderr, text,
};

/// Sends a request unchanged, and returns the status, the head and the body.
fn exchange(address: &str, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "{head}\r\n{length}connection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

const BOTH: &str = "accept: application/json, text/event-stream";

fn post(server: &HttpServer, headers: &str, body: &str) -> (u16, Value) {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{headers}",
        server.address
    );
    let (status, _, body) = exchange(&server.address, head.trim_end(), body);
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#;

#[tokio::test]
async fn a_model_searches_and_fetches_over_http_in_every_revision() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let modern = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        let model = Model::over_http(server.url("/mcp"), lifecycle).await;
        assert_eq!(model.tools().await.len(), 6);
        let found = model.call("search", json!({"query": "invoice"})).await;
        let id = found["results"][0]["id"].as_str().unwrap();
        assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
        let refused = model.refusal("fetch", json!({"id": "messages:m1"})).await;
        assert_eq!(refused["code"], "ambiguous_connection");
        assert_eq!(refused["available_connections"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_trailing_slash_and_the_root_path_are_answered() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for (path, tools) in [("/mcp/", 6), ("/mcp/openai/", 2)] {
        let model = Model::over_http(server.url(path), ClientLifecycleMode::Initialize).await;
        assert_eq!(model.tools().await.len(), tools, "{path}");
    }
    let root = |method: &str, headers: &str, body: &str| {
        let head = format!("{method} / HTTP/1.1\r\nhost: {}{headers}", server.address);
        exchange(&server.address, &head, body)
    };
    let (status, head, page) = root("GET", "\r\naccept: text/html,application/xhtml+xml", "");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html") && head.contains("default-src 'none'"), "{head}");
    let url = format!("http://{}/mcp", server.address);
    assert!(page.contains(&url) && page.contains("/openai") && page.len() < 60_000, "{page}");
    let (status, _, pointer) = root("GET", "", "");
    let pointer: Value = serde_json::from_str(&pointer).unwrap();
    assert_eq!((status, pointer["mcp"].as_str()), (200, Some(url.as_str())));
    let (status, _, refused) = root("POST", &format!("\r\ncontent-type: application/json\r\n{BOTH}"), SEARCH);
    let refused: Value = serde_json::from_str(&refused).unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("/mcp"), "{refused}");
    assert_eq!((status, root("DELETE", "", "").0), (404, 405));
}

#[tokio::test]
async fn the_path_selects_the_profile() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let model = Model::over_http(server.url("/mcp/openai"), ClientLifecycleMode::Initialize).await;
    let tools = model.tools().await;
    let properties: Vec<&String> = tools[0].input_schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["query"]);
    let found = model.call("search", json!({"query": "invoice"})).await;
    model.call("fetch", json!({"id": found["results"][0]["id"]})).await;
}

#[tokio::test]
async fn a_cursor_continues_over_http_without_sessions() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let model = Model::over_http(server.url("/mcp"), ClientLifecycleMode::Initialize).await;
        let mut arguments = json!({"query": "invoice", "limit": 2});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = model.call("search", arguments).await;
        seen.extend(
            page["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()),
        );
        cursor = page.get("next_cursor").cloned().unwrap_or(Value::Null);
        if cursor.is_null() {
            break;
        }
    }
    let whole = Model::over_http(server.url("/mcp"), ClientLifecycleMode::Initialize).await;
    let whole = whole.call("search", json!({"query": "invoice", "limit": 50})).await;
    let whole: Vec<&str> =
        whole["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(seen, whole);
    assert!(seen.len() >= 6);
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for (host, origin, expect) in [
        (server.address.as_str(), "", 200),
        ("localhost", "", 200),
        ("[::1]:80", "", 200),
        ("evil.example", "", 403),
        (&server.address, "http://localhost:6274", 200),
        (&server.address, "https://evil.example", 403),
        (&server.address, "http://localhost.evil.example", 403),
        (&server.address, "null", 403),
    ] {
        let origin = if origin.is_empty() { String::new() } else { format!("\r\norigin: {origin}") };
        let head =
            format!("POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{BOTH}{origin}");
        assert_eq!(exchange(&server.address, &head, SEARCH).0, expect, "{head}");
    }
    // An allowed origin gets CORS headers, another one does not.
    for (origin, allowed) in [("http://localhost:6274", true), ("https://evil.example", false)] {
        let head = format!(
            "OPTIONS /mcp HTTP/1.1\r\nhost: {}\r\norigin: {origin}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type",
            server.address
        );
        let (status, head, _) = exchange(&server.address, &head, "");
        assert_eq!((status, head.contains("access-control-allow-origin")), (200, allowed), "{head}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn any_loopback_address_can_be_bound() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start_at("127.0.0.2:0", ["--store", text(&store)]);
    assert!(server.address.starts_with("127.0.0.2:"), "{}", server.address);
    assert_eq!(post(&server, BOTH, SEARCH).0, 200);
}

#[test]
fn requests_are_answered_as_the_specification_says() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let (status, answer) = post(&server, BOTH, SEARCH);
    assert_eq!(status, 200);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("cin_"));
    // The header `Accept` may be missing.
    for accept in ["accept: */*", "accept: application/json", "", "accept: application/*;q=0.8"] {
        assert_eq!(post(&server, accept, SEARCH).0, 200, "{accept}");
    }
    assert_eq!(post(&server, "accept: text/html", SEARCH).0, 406);
    let (status, answer) = post(&server, BOTH, "{\"jsonrpc\":");
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32700)));
    let (status, answer) = post(&server, BOTH, r#"{"foo":"bar"}"#);
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)));
    let (status, answer) = post(&server, BOTH, &format!("[{SEARCH}]"));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)));
    let (_, answer) = post(&server, BOTH, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}"#);
    assert_eq!(answer["error"]["code"], -32602);
    for (method, params, part) in [
        ("tools/call", r#"{"name":"search","arguments":"invoice"}"#, "params.arguments"),
        ("tools/call", r#"{"name":7}"#, "params.name"),
        ("initialize", "{}", "params.protocolVersion"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{method}","params":{params}}}"#);
        let (_, answer) = post(&server, BOTH, &body);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    let (_, answer) = post(&server, BOTH, r#"{"jsonrpc":"2.0","id":3,"method":"initialize"}"#);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let (status, answer) = post(&server, BOTH, &format!("\"{}\"", "x".repeat(5 * 1024 * 1024)));
    assert_eq!((status, &answer["error"]["code"]), (413, &json!(-32600)));
    for method in ["GET", "DELETE", "PUT"] {
        let head = format!("{method} /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream", server.address);
        let (status, head, _) = exchange(&server.address, &head, "");
        assert!(status == 405 && head.contains("allow: post"), "{head}");
    }
    let head = format!("GET /nowhere HTTP/1.1\r\nhost: {}", server.address);
    let (status, _, body) = exchange(&server.address, &head, "");
    assert!(status == 404 && body.contains("/mcp"), "{body}");
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: text/plain\r\n{BOTH}", server.address);
    assert_eq!(exchange(&server.address, &head, SEARCH).0, 415);
}

#[test]
fn calls_with_and_without_a_session_have_the_same_answer() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json", server.address);
    // The field `session` is unknown, so such a message is left to the session of `rmcp`.
    let answer = |headers: &str, id: &str, params: &str, more: &str| {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}{more}}}"#);
        let (status, head, body) = exchange(&server.address, &format!("{head}{headers}"), &message);
        let mut head: Vec<&str> = head.lines().filter(|line| !line.starts_with("date:")).collect();
        head.sort_unstable();
        // Calls differ in the id of their request alone.
        let without_ids = |text: &str| {
            let mut parts = text.split("req_");
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |text, part| text + part.get(16..).unwrap())
        };
        (status, without_ids(&head.join("\n")), without_ids(&body))
    };
    let meta = r#"{"name":"search","arguments":{"query":"invoice"},"_meta":{"progressToken":7}}"#;
    for (id, params) in [
        ("1", r#"{"name":"search","arguments":{"query":"invoice"}}"#),
        ("\"a b\"", r#"{"name":"list_streams"}"#),
        ("0", r#"{"name":"list_streams","arguments":null}"#),
        ("-7", r#"{"name":"fetch","arguments":{"id":"messages:m1"}}"#),
        ("9007199254740993", r#"{"name":"no_such_tool","arguments":{}}"#),
        ("2", meta),
        ("3", r#"{"name":"search","arguments":"invoice"}"#),
        ("4", r#"{"name":"search","arguments":{"query":""}}"#),
        ("5.5", r#"{"name":"list_streams"}"#),
    ] {
        for headers in ["", "\r\nmcp-protocol-version: 2025-06-18", "\r\nmcp-protocol-version: 1999-01-01"] {
            let direct = answer(headers, id, params, "");
            assert_eq!(direct, answer(headers, id, params, ",\"session\":1"), "{id} {params} {headers}");
            assert!(direct.2.len() > 20, "{direct:?}");
        }
    }
}

#[test]
fn a_disconnected_client_cancels_the_request_to_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|_| Reply::Hang);
    connect(folder.path(), &source.url, CREDENTIAL);
    let server = HttpServer::start(["--provider-url", &source.url, "--cache-root", text(folder.path())]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{BOTH}", server.address);
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{SEARCH}", SEARCH.len()).unwrap();
    source.wait_for_request();
    drop(stream);
    source.wait_until_abandoned();
}

#[cfg(unix)]
#[test]
fn a_shutdown_lets_calls_in_flight_end() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(500));
        recorded("search-lexical")
    });
    connect(folder.path(), &source.url, CREDENTIAL);
    let mut server = HttpServer::start(["--provider-url", &source.url, "--cache-root", text(folder.path())]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{BOTH}", server.address);
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{SEARCH}", SEARCH.len()).unwrap();
    source.wait_for_request();
    server.ask_to_stop();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("cin_work/messages:shared-1"), "{answer}");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn without_authentication_only_loopback_is_served() {
    let (_folder, store) = demo_store();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = fetchwell(["serve", "--store", text(&store), "--listen", address]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("listen on 127.0.0.1"), "{output:?}");
    }
    let server = HttpServer::start(["--store", text(&store)]);
    let output = fetchwell(["serve", "--store", text(&store), "--listen", &server.address]);
    assert!(!output.status.success() && stderr(&output).contains("--listen"), "{output:?}");
}

#[test]
fn each_call_is_one_line_of_the_log() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    post(&server, BOTH, SEARCH);
    post(&server, BOTH, SEARCH);
    let log = server.end();
    assert_eq!(log.lines().filter(|line| line.contains("outcome=\"ok\"")).count(), 2, "{log}");
    assert!(!log.contains("invoice"), "{log}");
}

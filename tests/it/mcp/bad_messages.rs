//! Invalid messages and unknown methods: both transports answer them with the same errors, and continue.

use serde_json::{Value, json};

use crate::support::{HttpServer, StdioServer, ask, demo_store, post, post_bytes, text};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Returns messages with the code and the id of their errors.
fn bad_messages() -> Vec<(String, i32, Value)> {
    let mut bad: Vec<(String, i32, Value)> = [
        ("{\"jsonrpc\":", -32700),
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}}", -32700),
        ("{'jsonrpc':'2.0'}", -32700),
        ("[]", -32600),
        (&format!("[{PING}]"), -32600),
        (&format!("[{PING},{PING}]"), -32600),
        ("\"ping\"", -32600),
        ("7", -32600),
        ("null", -32600),
        ("true", -32600),
        ("{}", -32600),
        ("{\"foo\":\"bar\"}", -32600),
    ]
    .into_iter()
    .map(|(message, code)| (message.to_owned(), code, Value::Null))
    .collect();
    for id in ["null", "1.5", "{}", "[1]", "true", "18446744073709551616"] {
        bad.push((format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), -32600, Value::Null));
    }
    for (message, code, id) in [
        (r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#, -32600, json!(5)),
        (r#"{"jsonrpc":2,"id":5,"method":"ping"}"#, -32600, json!(5)),
        (r#"{"id":"five","method":"ping"}"#, -32600, json!("five")),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#, -32601, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, -32602, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"nope"}}"#, -32602, json!(5)),
    ] {
        bad.push((message.to_owned(), code, id));
    }
    // JSON nested deeper than any reader accepts.
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"search","arguments":"#;
    bad.push((format!("{call}{deep}}}}}"), -32600, json!(5)));
    bad
}

#[test]
fn invalid_messages_over_http_are_answered() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for (message, code, id) in bad_messages() {
        let shown: String = message.chars().take(100).collect();
        for path in ["/mcp", "/mcp/openai"] {
            let answer = post(&server.address, path, &[], &message);
            let error = answer.json();
            assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &id), "{shown}\n{answer:?}");
            assert_eq!(error["jsonrpc"], "2.0");
            assert_eq!(error.as_object().unwrap().len(), 3, "{error}");
            // An invalid message has status 400; a valid message with a failing request does not.
            assert_eq!(answer.status == 400, [-32700, -32600].contains(&code), "{shown}\n{answer:?}");
        }
    }
    for broken in [&b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}"[..], b"", b"\x00"] {
        let answer = post_bytes(&server.address, "/mcp", broken);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32700)), "{broken:?}");
    }
    assert_eq!(post(&server.address, "/mcp", &[], PING).json()["id"], 1);
}

#[test]
fn invalid_messages_over_stdio_are_answered() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store)]);
    let bad = bad_messages();
    // Before the handshake, the errors are the same.
    for (message, code, id) in bad.iter().filter(|(_, code, _)| [-32700, -32600].contains(code)) {
        server.send(message);
        let error = server.receive();
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), id), "{message:.100}\n{error}");
    }
    server.initialize("2025-11-25");
    for (message, code, id) in &bad {
        server.send(message);
        let error = server.receive();
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), id), "{message:.100}\n{error}");
    }
    // Notifications have no response.
    for silent in [
        r#"{"jsonrpc":"1.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
    ] {
        server.send(silent);
    }
    server.send(PING);
    assert_eq!(server.receive()["id"], 1);
    let (rest, status, _) = server.end();
    assert!(rest.is_empty() && status.success(), "{rest:?}");
}

#[test]
fn headers_that_contradict_the_message_are_refused() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"search","arguments":{{"query":"invoice"}},{meta}}}}}"#
    );
    let asked = |lines: &[&str]| {
        let answer = post(&server.address, "/mcp", lines, &call);
        (answer.status, answer.json()["error"]["code"].as_i64())
    };
    let version = "mcp-protocol-version: 2026-07-28";
    let (method, name) = ("mcp-method: tools/call", "mcp-name: search");
    assert_eq!(asked(&[version, method, name]), (200, None));
    const MISMATCH: (u16, Option<i64>) = (400, Some(-32020));
    assert_eq!(asked(&[version, "mcp-method: tools/list", name]), MISMATCH);
    assert_eq!(asked(&[version, method, "mcp-name: fetch"]), MISMATCH);
    assert_eq!(asked(&[version, name]), MISMATCH);
    assert_eq!(asked(&[version, method]), MISMATCH);
    assert_eq!(asked(&["mcp-protocol-version: 2025-11-25", method, name]), MISMATCH);
    // Unknown revisions of the protocol.
    for unknown in ["mcp-protocol-version: 1999-01-01", "mcp-protocol-version: x"] {
        let answer = post(&server.address, "/mcp", &[unknown], PING);
        assert_eq!((answer.status, &answer.json()["id"]), (400, &json!(1)), "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], -32600);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(post(&server.address, "/mcp", &["mcp-protocol-version: 2025-06-18"], PING).status, 200);
}

#[test]
fn clients_that_accept_only_events_get_events() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let asked = |accept: &str, body: &str| {
        let length = format!("content-length: {}\r\n\r\n{body}", body.len());
        ask(&server.address, "POST", "/mcp", &["content-type: application/json", accept, &length])
    };
    let search = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#;
    let json = asked("accept: application/json", search);
    assert_eq!((json.status, json.header("content-type")), (200, Some("application/json")));
    let events = asked("accept: text/event-stream", search);
    assert_eq!((events.status, events.header("content-type")), (200, Some("text/event-stream")));
    // The event contains the same message.
    let data = events.text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(data).unwrap()["result"]["content"],
        json.json()["result"]["content"]
    );
    for refused in ["{", "[]"] {
        assert_eq!(asked("accept: text/event-stream", refused).status, 400);
    }
    assert_eq!(asked("accept: text/html", search).status, 406);
}

#[test]
fn other_http_methods_get_the_allowed_one() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for method in ["GET", "DELETE", "PUT", "PATCH", "HEAD"] {
        for path in ["/mcp", "/mcp/openai"] {
            let answer = ask(&server.address, method, path, &["accept: text/event-stream"]);
            assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method} {path}");
            assert_eq!(answer.text.is_empty(), method == "HEAD", "{method} {path}");
        }
    }
    for content_type in ["text/plain", "application/xml", "application/jsonp", ""] {
        let own = format!("content-type: {content_type}");
        let length = format!("content-length: {}\r\n\r\n{PING}", PING.len());
        let answer = ask(&server.address, "POST", "/mcp", &[&own, &length]);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (415, &json!(-32600)), "{content_type}");
    }
    let with_charset = ask(
        &server.address,
        "POST",
        "/mcp",
        &[
            "content-type: application/json; charset=utf-8",
            &format!("content-length: {}\r\n\r\n{PING}", PING.len()),
        ],
    );
    assert_eq!(with_charset.status, 200);
}

//! Methods of the protocol that fetchwell does not offer are refused as unknown methods in every revision, as the
//! conformance suite requires; clients call only methods that exist.

use serde_json::{Value, json};

use crate::support::{HttpServer, StdioServer, demo_store, post, text};

/// Sends a request over HTTP in the form of a revision, and returns the status and the body.
fn asked(server: &HttpServer, revision: &str, method: &str, mut params: Value) -> (u16, Value) {
    let version = format!("mcp-protocol-version: {revision}");
    let header = format!("mcp-method: {method}");
    let name =
        params["name"].as_str().or_else(|| params["uri"].as_str()).map(|name| format!("mcp-name: {name}"));
    if revision == "2026-07-28" {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let mut headers = vec![version.as_str()];
    if revision == "2026-07-28" {
        headers.push(&header);
        headers.extend(name.as_deref());
    }
    let answer = post(&server.address, "/mcp", &headers, &body);
    (answer.status, answer.json())
}

#[test]
fn methods_that_are_not_offered_are_unknown() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let reference = json!({"type": "ref/prompt", "name": "p"});
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "p"})),
        ("completion/complete", json!({"ref": reference, "argument": {"name": "a", "value": ""}})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "pdpp://record/x"})),
    ] {
        for (revision, status) in [("2025-11-25", 200), ("2026-07-28", 404)] {
            let (got, body) = asked(&server, revision, method, params.clone());
            assert_eq!(
                (got, &body["error"]["code"]),
                (status, &json!(-32601)),
                "{revision} {method}: {body}"
            );
            assert_eq!(body["id"], 7);
        }
    }
    let mut server = StdioServer::start(["--store", text(&store)]);
    let said = server.initialize("2025-11-25");
    let capabilities = said["result"]["capabilities"].as_object().unwrap();
    assert_eq!(capabilities.keys().collect::<Vec<_>>(), ["resources", "tools"]);
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#);
    assert_eq!(server.receive()["error"]["code"], -32601);
}

#[test]
fn the_handshake_is_unknown_in_revisions_without_one() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let (status, body) = asked(&server, "2026-07-28", "initialize", json!({}));
    assert_eq!((status, &body["error"]["code"]), (404, &json!(-32601)), "{body}");
    // A revision with a handshake names the missing parameter.
    let (_, body) = asked(&server, "2025-11-25", "initialize", json!({}));
    assert_eq!(body["error"]["code"], -32602, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("params.protocolVersion"), "{body}");
}

#[test]
fn a_missing_resource_is_named() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for uri in ["test://nowhere", "pdpp://record/cin_home%2Fmessages%3Anobody"] {
        for revision in ["2025-11-25", "2026-07-28"] {
            let (_, body) = asked(&server, revision, "resources/read", json!({"uri": uri}));
            assert_eq!(body["error"]["data"], json!({"uri": uri}), "{revision}: {body}");
        }
    }
    let long = format!("test://{}", "x".repeat(5_000));
    let (_, body) = asked(&server, "2025-11-25", "resources/read", json!({"uri": long}));
    assert_eq!(body["error"].get("data"), None, "{body}");
}

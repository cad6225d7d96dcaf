//! The built binary over real stdio, as a model uses it.

use rmcp::ClientLifecycleMode;
use rmcp::model::{ClientRequest, ProtocolVersion};
use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, StdioServer, connect, demo_store, recorded, text,
};

#[tokio::test]
async fn a_model_searches_and_fetches_by_printed_handles() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let found = model.call("search", json!({"query": "invoice"})).await;
    let id = found["results"][0]["id"].as_str().unwrap();
    let fetched = model.call("fetch", json!({"id": id})).await;
    assert_eq!(fetched["id"], id);
    assert!(fetched["text"].as_str().unwrap().to_lowercase().contains("invoice"));
}

#[tokio::test]
async fn two_accounts_with_the_same_record_id_are_distinguished() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    // The read without a connection is ambiguous, and the error suffices to correct it.
    let refused = model.refusal("fetch", json!({"id": "messages:m1"})).await;
    assert_eq!(refused["code"], "ambiguous_connection");
    assert!(refused["hint"].as_str().unwrap().contains("`id` of one of available_connections"), "{refused}");
    let choices = refused["available_connections"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    // A client with `fetch(id)` only continues by the same error.
    let openai = Model::over_stdio(["--store", text(&store), "--profile", "openai"]).await;
    assert_eq!(openai.refusal("fetch", json!({"id": "messages:m1"})).await, refused);
    let mut subjects = Vec::new();
    for choice in choices {
        let connection = &choice["connection_id"];
        let fetched = model.call("fetch", json!({"id": "messages:m1", "connection_id": connection})).await;
        assert_eq!(fetched["metadata"]["connection_id"], *connection);
        // The answer prints a handle that gives the same record. Only the profile `openai` always has a link.
        let mut again = openai.call("fetch", json!({"id": choice["id"]})).await;
        let url = again["url"].take();
        again["url"] = json!("");
        assert_eq!(again, fetched);
        assert_eq!(url, format!("pdpp://record/{}", choice["id"].as_str().unwrap()));
        subjects.push(fetched["title"].as_str().unwrap().to_owned());
    }
    assert_ne!(subjects[0], subjects[1]);
    // Each account is found by its own search only.
    for connection in ["cin_work", "cin_home"] {
        let found = model.call("search", json!({"query": "invoice", "connection_id": connection})).await;
        let results = found["results"].as_array().unwrap();
        assert!(!results.is_empty());
        assert!(
            results.iter().all(|result| result["id"].as_str().unwrap().starts_with(connection)),
            "{found}"
        );
    }
}

#[tokio::test]
async fn a_connection_is_never_chosen_silently() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let arguments = json!({"id": "cin_work/messages:m1", "connection_id": "cin_home"});
    assert_eq!(model.refusal("fetch", arguments).await["code"], "conflicting_connection_id");
    // An argument that agrees with the handle is accepted.
    let fetched =
        model.call("fetch", json!({"id": "cin_work/messages:m1", "connection_id": "cin_work"})).await;
    assert_eq!(fetched["id"], "cin_work/messages:m1");
    let refused = model.refusal("fetch", json!({"id": "nope/messages:m1"})).await;
    assert_eq!(refused["code"], "connection_not_found");
    assert_eq!(refused["available_connections"].as_array().unwrap().len(), 2);
    assert!(refused["hint"].as_str().unwrap().contains("before the first `/`"), "{refused}");
    let refused = model.refusal("search", json!({"query": "invoice", "connection_id": "nope"})).await;
    assert_eq!(refused["code"], "connection_not_found");
    assert!(refused["hint"].as_str().unwrap().contains("leave it out"), "{refused}");
    let refused = model.refusal("search", json!({"query": "invoice", "streams": ["male"]})).await;
    assert_eq!(refused["code"], "stream_not_declared");
    assert!(refused["hint"].as_str().unwrap().contains("daily_stats"), "{refused}");
    let refused = model.refusal("fetch", json!({"id": "cin_work/messages:none"})).await;
    assert_eq!(refused["code"], "not_found");
    let refused = model.refusal("fetch", json!({"id": "cin_work/nothing:m1"})).await;
    assert!(refused["hint"].as_str().unwrap().contains("daily_stats"), "{refused}");
}

#[tokio::test]
async fn malformed_arguments_are_named() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for (tool, arguments, code, param) in [
        ("search", json!({}), "invalid_argument", "query"),
        ("search", json!({"query": ""}), "invalid_argument", "query"),
        ("search", json!({"query": " \n"}), "invalid_argument", "query"),
        ("search", json!({"query": 7}), "invalid_argument", "query"),
        ("search", json!({"query": "x", "querry": "y"}), "invalid_argument", "querry"),
        ("search", json!({"query": "x", "limit": "ten"}), "invalid_argument", "limit"),
        ("search", json!({"query": "x", "limit": 2.5}), "invalid_argument", "limit"),
        ("search", json!({"query": "x", "streams": 7}), "invalid_argument", "streams"),
        ("search", json!({"query": "x", "connection_id": "a/../b"}), "invalid_argument", "connection_id"),
        ("fetch", json!({}), "invalid_argument", "id"),
        ("fetch", json!({"id": ["a:b"]}), "invalid_argument", "id"),
        (
            "fetch",
            json!({"id": "cin_work/messages:m1", "fields": {"subject": true}}),
            "invalid_argument",
            "fields",
        ),
        ("fetch", json!({"id": "cin_work/messages:m1", "fields": [""]}), "invalid_argument", "fields"),
    ] {
        let refused = model.refusal(tool, arguments.clone()).await;
        assert_eq!(
            (&refused["code"], &refused["param"]),
            (&json!(code), &json!(param)),
            "{arguments}: {refused}"
        );
        assert!(refused["hint"].as_str().unwrap().contains(tool), "{refused}");
        assert!(!refused["message"].as_str().unwrap().contains("usize"), "{refused}");
        // The hint shows the correct form of the argument where there is one.
        if ["limit", "streams", "fields"].contains(&param) {
            assert!(refused["hint"].as_str().unwrap().contains(&format!("\"{param}\":")), "{refused}");
        }
    }
    // Empty arguments, and numbers as clients write them.
    let empty = json!({"query": "invoice", "connection_id": "", "cursor": "", "limit": 2.0});
    assert_eq!(model.call("search", empty).await["results"].as_array().unwrap().len(), 2);
    model.call("fetch", json!({"id": "cin_work/messages:m1", "connection_id": ""})).await;
    for id in
        ["", "orders", "cin_work/../messages:m1", "../../etc/passwd", "cin_work/files/%2E%2E", "messages:.."]
    {
        let refused = model.refusal("fetch", json!({"id": id})).await;
        assert_eq!(refused["code"], "invalid_handle", "{refused}");
    }
    let refused = model.refusal("fetch", json!({"id": "cin_work/files:handbook/expenses/invoices.md"})).await;
    assert!(refused["hint"].as_str().unwrap().contains("cin_work/files/handbook%2Fexpenses%2Finvoices.md"));
    // `q` is accepted although it is not in the schema.
    assert!(!model.call("search", json!({"q": "invoice"})).await["results"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn the_openai_profile_has_exactly_two_tools_of_one_argument() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store), "--profile", "openai"]).await;
    let tools = model.tools().await;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["search", "fetch"]);
    for (tool, argument) in tools.iter().zip(["query", "id"]) {
        let properties: Vec<&String> = tool.input_schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(properties, [argument]);
    }
    let found = model.call("search", json!({"query": "invoice"})).await;
    assert!(found.get("next_cursor").is_none());
    model.call("fetch", json!({"id": found["results"][0]["id"]})).await;
    assert_eq!(model.refusal("search", json!({"query": "x", "limit": 3})).await["param"], "limit");
}

#[tokio::test]
async fn every_revision_that_rmcp_speaks_is_answered() {
    let (_folder, store) = demo_store();
    for version in ProtocolVersion::KNOWN_VERSIONS {
        if *version >= ProtocolVersion::V_2026_07_28 {
            let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] };
            let model = Model::over_stdio_with(["--store", text(&store)], lifecycle).await;
            assert_eq!(model.tools().await.len(), 6);
            model.call("search", json!({"query": "invoice"})).await;
            continue;
        }
        let mut server = StdioServer::start(["--store", text(&store)]);
        let answer = server.initialize(version.as_str());
        assert_eq!(answer["result"]["protocolVersion"], version.as_str());
        server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#);
        assert!(server.receive()["result"]["content"][0]["text"].as_str().unwrap().contains("cin_"));
        assert!(server.end().1.success());
    }
}

#[test]
fn invalid_lines_are_answered_and_the_server_continues() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store)]);
    server.send("this is no JSON");
    assert_eq!(server.receive()["error"]["code"], -32700);
    server.send(r#"{"foo":"bar"}"#);
    assert_eq!(server.receive()["error"]["code"], -32600);
    // A notification before the handshake has no effect, and does not end the session.
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    server.initialize("2025-11-25");
    server.send(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(5_000_000)
    ));
    assert_eq!(server.receive()["error"]["code"], -32600);
    server.send(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
    assert_eq!(server.receive()["error"]["code"], -32600);
    server.send(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"arguments":{}}}"#);
    let answer = server.receive();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!("a")));
    server
        .send(r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"nope","arguments":{}}}"#);
    let answer = server.receive();
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("search, fetch"));
    server.send(
        r#"{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"search","arguments":["x"]}}"#,
    );
    let answer = server.receive();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!("e")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("params.arguments"), "{answer}");
    server.send(r#"{"jsonrpc":"2.0","id":"c","method":"no/such/method"}"#);
    assert_eq!(server.receive()["error"]["code"], -32601);
    server.send("");
    server.send(r#"{"jsonrpc":"2.0","id":"d","method":"ping"}"#);
    assert_eq!(server.receive()["id"], "d");
    let (rest, status, _) = server.end();
    assert!(rest.is_empty() && status.success());
}

#[test]
fn the_server_ends_with_its_input_after_answering_calls() {
    let folder = tempfile::tempdir().unwrap();
    let slow = FakeServer::start(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        recorded("search-lexical")
    });
    connect(folder.path(), &slow.url, CREDENTIAL);
    let mut server = StdioServer::start(["--provider-url", &slow.url, "--cache-root", text(folder.path())]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#);
    slow.wait_for_request();
    let (rest, status, _) = server.end();
    assert_eq!(rest.len(), 1);
    assert!(rest[0]["result"]["content"][0]["text"].as_str().unwrap().contains("cin_work/messages:shared-1"));
    assert!(status.success());
}

#[test]
fn the_server_ends_with_its_input_while_a_source_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|_| Reply::Hang);
    connect(folder.path(), &source.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    // The call would last longer than the timeout of this test.
    let toml = format!(
        "call_deadline = \"60s\"\n[[source]]\nname = \"far\"\nurl = \"{}\"\ncache_root = \".\"\ndeadline = \"40s\"\n",
        source.url
    );
    std::fs::write(&config, toml).unwrap();
    let mut server = StdioServer::start(["--config", text(&config)]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#);
    source.wait_for_request();
    let started = std::time::Instant::now();
    let (rest, status, _) = server.end();
    // The call may be answered as cancelled.
    assert!(rest.len() <= 1 && rest.iter().all(|answer| answer["error"]["code"] == -32603), "{rest:?}");
    assert!(status.success());
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn standard_error_is_quiet_at_the_default_level() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store)]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#);
    server.receive();
    let (_, _, log) = server.end();
    assert_eq!(log, "");
}

#[cfg(unix)]
#[test]
fn signals_end_the_server_cleanly() {
    let (_folder, store) = demo_store();
    for signal in ["TERM", "INT"] {
        let mut server = StdioServer::start(["--store", text(&store)]);
        server.initialize("2025-06-18");
        let id = server.process.id().to_string();
        assert!(
            std::process::Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success()
        );
        assert!(server.process.wait().unwrap().success(), "SIG{signal}");
    }
}

#[tokio::test]
async fn a_cancelled_call_drops_its_request_to_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|_| Reply::Hang);
    connect(folder.path(), &source.url, CREDENTIAL);
    let mut server = StdioServer::start(["--provider-url", &source.url, "--cache-root", text(folder.path())]);
    server.initialize("2025-06-18");
    server.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#);
    source.wait_for_request();
    assert_eq!(source.abandoned(), 0);
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    source.wait_until_abandoned();
    // The server continues to answer.
    server.send(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
    assert_eq!(server.receive()["id"], 8);
}

#[test]
fn queries_and_records_are_not_logged() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store), "--log", "trace"]);
    server.initialize("2025-06-18");
    for (id, call) in [
        json!({"name": "search", "arguments": {"query": "Kraków overdue"}}),
        json!({"name": "search", "arguments": {"query": "invoice"}}),
        json!({"name": "fetch", "arguments": {"id": "cin_work/messages:m3"}}),
        json!({"name": "fetch", "arguments": {"id": "cin_work/messages:sekretkey"}}),
    ]
    .into_iter()
    .enumerate()
    {
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string());
        server.receive();
    }
    let (_, _, log) = server.end();
    assert_eq!(log.matches("outcome=\"ok\"").count(), 3, "{log}");
    assert_eq!(log.matches("outcome=\"not_found\"").count(), 1, "{log}");
    for secret in ["Krak", "overdue", "invoice", "Paperworks", "Offsite", "sekretkey"] {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn annotations_and_schemas_of_tools_hold() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let tools = model.tools().await;
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        let said =
            [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint];
        assert_eq!(said, [Some(true), Some(false), Some(true), Some(false)]);
        let output = Value::Object(tool.output_schema.as_deref().unwrap().clone());
        let id = "cin_work/messages:m1";
        let (name, arguments) = match &*tool.name {
            "search" => ("search", json!({"query": "invoice"})),
            "fetch" => ("fetch", json!({"id": id})),
            "schema" => ("schema", json!({})),
            "query_records" => ("query_records", json!({"stream": "messages", "count": "exact"})),
            "aggregate" => {
                ("aggregate", json!({"stream": "messages", "metric": "count", "group_by": "from"}))
            }
            _ => ("read_record_field", json!({"id": id, "field": "body"})),
        };
        let answer = model.call(name, arguments).await;
        jsonschema::validate(&output, &answer).unwrap();
    }
    // A second list of the tools is the same.
    assert_eq!(tools, model.tools().await);
    let info = model.client().peer_info().unwrap();
    assert!(info.instructions.as_ref().unwrap().contains("search(query)"));
    // A change of the request type in rmcp breaks the build here.
    assert!(matches!(ClientRequest::PingRequest(Default::default()), ClientRequest::PingRequest(_)));
}

#[tokio::test]
async fn instructions_name_existing_tools_only() {
    let (_folder, store) = demo_store();
    let http = HttpServer::start(["--store", text(&store)]);
    let all = ["search", "fetch", "schema", "query_records", "aggregate", "read_record_field"];
    for model in [
        Model::over_stdio(["--store", text(&store)]).await,
        Model::over_stdio(["--store", text(&store), "--profile", "openai"]).await,
        Model::over_http(http.url("/mcp/openai"), ClientLifecycleMode::Initialize).await,
    ] {
        let tools: Vec<String> = model.tools().await.iter().map(|tool| tool.name.to_string()).collect();
        let instructions = model.client().peer_info().unwrap().instructions.clone().unwrap();
        for tool in all {
            let calls =
                instructions.contains(&format!("{tool}(")) || instructions.contains(&format!("then {tool}"));
            assert!(!calls || tools.iter().any(|name| name == tool), "{tool}: {instructions}");
        }
        for argument in ["next_cursor", "connection_id"] {
            assert!(tools.len() > 2 || !instructions.contains(argument), "{instructions}");
        }
        assert!(instructions.len() <= 1_024 && instructions.contains("never instructions"));
    }
}

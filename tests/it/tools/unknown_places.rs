//! A connection or a stream that does not exist: the same error from every tool, over a record server and over a store.

use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Model, Reply, Request, connect, demo_store, recorded, text};

/// Refuses unknown places as the reference server does, each route in its own way.
fn reference(request: &Request) -> Reply {
    let line = request.line.trim_start_matches("GET ");
    if line.starts_with("/v1/schema") {
        return if line.contains("stream=nope") || line.contains("connection_id=nope") {
            recorded("schema-unknown-stream")
        } else {
            recorded("schema-compact-global")
        };
    }
    let refusal = |status: u16, code: &str| {
        let error = json!({"code": code, "message": "Token introspection failed closed", "type": "authentication_error"});
        Reply::Json(status, json!({ "error": error }).to_string())
    };
    match line {
        "/v1/streams" => recorded("streams"),
        line if line.starts_with("/v1/search") && line.contains("streams=nope") => {
            recorded("search-stream-not-granted")
        }
        line if line.starts_with("/v1/search") => refusal(404, "connection_not_found"),
        line if line.starts_with("/v1/streams/nope") => refusal(401, "context.stream_not_allowed"),
        _ => refusal(401, "context.instance_mismatch"),
    }
}

/// Returns a call of each tool with a connection that does not exist.
fn unknown_connection() -> Vec<(&'static str, Value)> {
    vec![
        ("search", json!({"query": "x", "connection_id": "nope"})),
        ("fetch", json!({"id": "nope/messages:m1"})),
        ("schema", json!({"connection_id": "nope"})),
        ("schema", json!({"stream": "messages", "connection_id": "nope"})),
        ("query_records", json!({"stream": "messages", "connection_id": "nope"})),
        (
            "query_records",
            json!({"stream": "messages", "connection_id": "nope", "changes_since": "beginning"}),
        ),
        ("aggregate", json!({"stream": "messages", "metric": "count", "connection_id": "nope"})),
        ("read_record_field", json!({"id": "nope/messages:m1", "field": "body"})),
    ]
}

/// Returns a call of each tool with a stream that does not exist, in all connections or in one.
fn unknown_stream(connection: Option<&str>) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("search", json!({"query": "x", "streams": ["nope"]})),
        ("schema", json!({"stream": "nope"})),
        ("query_records", json!({"stream": "nope"})),
        ("aggregate", json!({"stream": "nope", "metric": "count"})),
    ];
    if let Some(connection) = connection {
        calls.iter_mut().for_each(|(_, arguments)| arguments["connection_id"] = json!(connection));
        calls.push(("fetch", json!({"id": format!("{connection}/nope:m1")})));
        calls.push(("read_record_field", json!({"id": format!("{connection}/nope:m1"), "field": "body"})));
    }
    calls
}

/// Makes every call and returns the members that all of their errors share: all but the hint.
async fn common(model: &Model, calls: Vec<(&'static str, Value)>, compared: &[&str]) -> Value {
    let mut common: Option<Value> = None;
    for (tool, arguments) in calls {
        let refused = model.refusal(tool, arguments.clone()).await;
        assert!(!refused.to_string().contains("introspection"), "{tool} {arguments}: {refused}");
        let kept: Value = compared.iter().map(|name| ((*name).to_owned(), refused[*name].clone())).collect();
        assert_eq!(*common.get_or_insert_with(|| kept.clone()), kept, "{tool} {arguments}: {refused}");
    }
    common.unwrap()
}

async fn check(model: &Model, source: &str, streams: &str) {
    let connections = json!([
        {"connection_id": "cin_work", "display_name": "Work mail"},
        {"connection_id": "cin_home", "display_name": "Home mail"},
    ]);
    let told = common(model, unknown_connection(), &["code", "message", "available_connections"]).await;
    assert_eq!(told["code"], "connection_not_found");
    assert_eq!(told["message"], format!("source `{source}`: there is no connection `nope`"));
    let ids = |list: &Value| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|choice| choice["connection_id"].clone()).collect()
    };
    assert_eq!(ids(&told["available_connections"]), ids(&connections));
    for (connection, place) in [
        (None, "there is no stream `nope`"),
        (Some("cin_work"), "connection `cin_work` has no stream `nope`"),
    ] {
        let told = common(model, unknown_stream(connection), &["code", "message", "hint"]).await;
        assert_eq!(told["code"], "stream_not_declared");
        assert_eq!(told["message"], format!("source `{source}`: {place}"));
        assert_eq!(told["hint"], format!("Existing streams: {streams}."));
    }
}

#[tokio::test]
async fn every_tool_over_a_record_server_gives_the_same_choices() {
    let server = FakeServer::start(reference);
    let cache = tempfile::tempdir().unwrap();
    connect(cache.path(), &server.url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(cache.path())]).await;
    check(&model, "provider", "attachments, daily_stats, labels, messages").await;
}

#[tokio::test]
async fn every_tool_over_a_store_gives_the_same_choices() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    check(&model, "store", "daily_stats, files, messages").await;
}

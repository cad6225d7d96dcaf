//! Ids of connections with characters that have a meaning in paths, and ids of the maximum length.

use serde_json::{Value, json};
use url::Url;

use crate::support::{
    Api, CREDENTIAL, FakeServer, Model, Reply, Request, binary, connect, import_records, stderr, text,
};

/// Answers about the record `o1` of the stream `orders` in any connection.
fn server_of_any_connection(request: &Request) -> Reply {
    let url = Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
    let named =
        url.query_pairs().find(|(name, _)| name == "connection_id").map(|(_, value)| value.into_owned());
    let connection = named.clone().unwrap_or_else(|| "c".to_owned());
    let all = named.map_or_else(
        || vec!["c".to_owned(), "a/b".to_owned(), "a\\b".to_owned(), "x..y".to_owned()],
        |named| vec![named],
    );
    let connections: Vec<Value> = all.iter().map(|id| json!({"connection_id": id})).collect();
    let record = json!({"object": "record", "stream": "orders", "id": "o1", "connection_id": connection,
        "data": {"body": "one order"}});
    let body = match url.path() {
        "/v1/search" => json!({"data": [
            {"stream": "orders", "id": "o1", "connection_id": connection, "title": "Order"}]}),
        "/v1/streams/orders/records" => json!({"object": "list", "data": [record], "has_more": false}),
        "/v1/streams/orders/records/o1" => record,
        "/v1/streams/orders/records/o1/field-window" => json!({"window": {"text": "one order"}}),
        "/v1/schema" => json!({"connectors": [{"connector_key": "acme",
            "granted_connections": connections,
            "streams": [{"name": "orders", "field_capabilities": {"body": "t=string,lex"}}]}]}),
        "/v1/streams/orders/aggregate" => json!({"metric": "count", "value": 1}),
        _ => return Reply::Json(404, json!({"error": {"code": "not_found", "message": "No"}}).to_string()),
    };
    Reply::Json(200, body.to_string())
}

async fn remote() -> (Model, FakeServer, tempfile::TempDir) {
    let server = FakeServer::start(server_of_any_connection);
    let cache = tempfile::tempdir().unwrap();
    connect(cache.path(), &server.url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(cache.path())]).await;
    (model, server, cache)
}

/// Returns calls that name a record and a connection as an argument.
fn reads(connection: &str) -> [(&'static str, Value); 4] {
    [
        ("fetch", json!({"id": "orders:o1", "connection_id": connection})),
        ("fetch", json!({"id": "c/orders:o1", "connection_id": connection})),
        ("read_record_field", json!({"id": "orders:o1", "field": "body", "connection_id": connection})),
        (
            "read_record_field",
            json!({"stream": "orders", "record_id": "o1", "field": "body", "connection_id": connection}),
        ),
    ]
}

/// Returns calls of the other tools, which filter by a connection.
fn filters(connection: &str) -> [(&'static str, Value); 5] {
    [
        ("search", json!({"query": "order", "connection_id": connection})),
        ("schema", json!({"connection_id": connection})),
        ("schema", json!({"stream": "orders", "connection_id": connection})),
        ("query_records", json!({"stream": "orders", "connection_id": connection})),
        ("aggregate", json!({"stream": "orders", "metric": "count", "connection_id": connection})),
    ]
}

#[tokio::test]
async fn a_connection_argument_with_path_characters_is_refused_before_any_request() {
    let (model, server, _cache) = remote().await;
    let before = server.requests().len();
    for bad in ["a/b", "a\\b", "x..y", "..", ".", "/", "a//b", "/a", "a/", "a/../b", "..\\b", "c/orders"] {
        for (tool, arguments) in reads(bad) {
            let refused = model.refusal(tool, arguments).await;
            assert_eq!(
                (&refused["code"], &refused["param"]),
                (&json!("invalid_argument"), &json!("connection_id")),
                "{tool} {bad}: {refused}"
            );
            assert!(refused["hint"].as_str().unwrap().contains("\"connection_id\": "), "{refused}");
        }
    }
    assert_eq!(server.requests().len(), before);
    // A connection that has none of them is forwarded.
    for (tool, arguments) in reads("c") {
        model.call(tool, arguments).await;
        let asked = server.requests().last().unwrap().line.clone();
        assert!(asked.contains("connection_id=c"), "{tool}: {asked}");
    }
}

#[tokio::test]
async fn other_tools_filter_by_connections_with_path_characters() {
    let (model, server, _cache) = remote().await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let line = json!({"stream": "orders", "key": "o1", "data": {"body": "one order"}}).to_string();
    for (connection, encoded, id) in [
        ("a/b", "a%2Fb", "a%2Fb/orders/o1"),
        ("a\\b", "a%5Cb", "a%5Cb/orders/o1"),
        ("x..y", "x..y", "x..y/orders/o1"),
    ] {
        import_records(&store, connection, &line);
        let stored = Model::over_stdio(["--store", text(&store)]).await;
        for (tool, arguments) in filters(connection) {
            let before = server.requests().len();
            for model in [&model, &stored] {
                let answer = model.call(tool, arguments.clone()).await;
                let shown = answer.pointer("/results/0/id").or_else(|| answer.pointer("/records/0/id"));
                assert!(shown.is_none_or(|shown| shown == id), "{tool}: {answer}");
            }
            let asked = server.requests().split_off(before);
            let parameter = format!("connection_id={encoded}");
            let is_filtered = asked.iter().any(|request| request.line.contains(&parameter));
            assert!(is_filtered || tool == "schema", "{tool} {connection}: {asked:?}");
        }
        // The printed id names the connection.
        for model in [&model, &stored] {
            assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
            let window = model.call("read_record_field", json!({"id": id, "field": "body"})).await;
            assert_eq!((&window["id"], &window["text"]), (&json!(id), &json!("one order")));
        }
        let refused = stored.refusal("fetch", json!({"id": id, "connection_id": connection})).await;
        assert_eq!(refused["code"], "invalid_argument");
    }
}

#[tokio::test]
async fn connection_ids_of_the_maximum_length_are_read_or_refused_with_a_code() {
    let (model, server, _cache) = remote().await;
    for long in ["%".repeat(2_048), "%2F".repeat(682), "%00".repeat(682), "%E0".repeat(682)] {
        // No handle has room for it, so hits and rows have no id that could be fetched.
        let found = model.call("search", json!({"query": "order", "connection_id": long})).await;
        assert_eq!((&found["results"], &found["omitted"]), (&json!([]), &json!(1)));
        let said = found["warnings"][0].as_str().unwrap();
        assert!(said.starts_with("all are omitted: none has an id that can be fetched"), "{found}");
        for (tool, arguments) in filters(&long).into_iter().skip(1) {
            model.call_raw(tool, arguments).await;
        }
        for (tool, arguments) in reads(&long) {
            let is_conflict = arguments["id"] == "c/orders:o1";
            let before = server.requests().len();
            if is_conflict {
                assert_eq!(model.refusal(tool, arguments).await["code"], "conflicting_connection_id");
                assert_eq!(server.requests().len(), before);
            } else {
                let read = model.call(tool, arguments).await;
                assert_eq!(read["text"], "one order");
                let asked = server.requests().last().unwrap().line.clone();
                let url = Url::parse(&format!("http://x{}", asked.trim_start_matches("GET "))).unwrap();
                assert!(url.query_pairs().any(|(name, value)| name == "connection_id" && value == long));
            }
        }
        let longer = format!("{long}%%%");
        let before = server.requests().len();
        for (tool, arguments) in reads(&longer).into_iter().chain(filters(&longer)) {
            let refused = model.refusal(tool, arguments).await;
            assert_eq!(
                (&refused["code"], &refused["param"]),
                (&json!("invalid_argument"), &json!("connection_id"))
            );
        }
        let exact = format!("{}/orders/o1", long.replace('%', "%25"));
        assert_eq!(model.refusal("fetch", json!({"id": exact})).await["code"], "invalid_handle");
        assert_eq!(server.requests().len(), before);
    }
}

#[tokio::test]
async fn imports_refuse_connection_ids_that_no_handle_could_carry() {
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("orders.ndjson"), folder.path().join("store.db"));
    let line = json!({"stream": "orders", "key": "o1", "data": {"body": "one order"}}).to_string();
    std::fs::write(&file, &line).unwrap();
    for (connection, problem) in [
        ("%".repeat(2_048), "its connection, stream and key are too long together"),
        ("%".repeat(2_049), "it is 2049 bytes long, more than the 2048 a handle can carry"),
        ("%2F".repeat(682), "its connection, stream and key are too long together"),
    ] {
        let mut import = binary();
        import.args(["import", "records", text(&file), "--store", text(&store), "--connection", &connection]);
        let output = import.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(problem), "{output:?}");
    }
    // With room for a handle, such an id is one like any other.
    let connection = "%".repeat(600);
    import_records(&store, &connection, &line);
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let found = model.call("search", json!({"query": "order", "connection_id": connection})).await;
    let fetched = model.call("fetch", json!({"id": found["results"][0]["id"]})).await;
    assert_eq!(fetched["metadata"]["connection_id"], connection);
}

#[test]
fn ids_that_no_connection_can_have_get_one_answer_from_every_route() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    import_records(
        &store,
        "c",
        &json!({"stream": "orders", "key": "o1", "data": {"body": "one order"}}).to_string(),
    );
    let api = Api::of(&store, "");
    for connection in
        ["x".repeat(2_049), "%25".repeat(2_049), "..".to_owned(), "a/../b".to_owned(), "%00".to_owned()]
    {
        for route in [
            "/v1/streams/orders?",
            "/v1/streams/orders/records?",
            "/v1/streams/orders/records/o1?",
            "/v1/streams/orders/records/o1/field-window?field=body&",
            "/v1/streams/orders/aggregate?metric=count&",
            "/v1/search?q=order&",
            "/v1/schema?",
            "/api/v1/orders?",
            "/api/v1/orders?summary=true&",
            "/api/v1/orders/o1?",
        ] {
            let answer = api.get(&format!("{route}connection_id={connection}"));
            let body = answer.json();
            let error = if body["error"].is_object() { &body["error"] } else { &body };
            let code = error["code"].as_str().unwrap().to_lowercase();
            assert_eq!(
                (answer.status, code.as_str()),
                (404, "connection_not_found"),
                "{route} {connection}: {body}"
            );
            assert_eq!(error["param"], "connection_id", "{route}: {body}");
        }
    }
}

#[tokio::test]
async fn the_hint_for_an_unknown_connection_names_what_the_call_can_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    import_records(
        &store,
        "c",
        &json!({"stream": "orders", "key": "o1", "data": {"body": "one order"}}).to_string(),
    );
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let chunk = json!({"id": "orders:o1", "field": "body", "connection_id": "none", "unit": "chunk"});
    for (tool, arguments) in reads("none").into_iter().chain([("read_record_field", chunk)]) {
        if arguments["id"] == "c/orders:o1" {
            continue;
        }
        let refused = model.refusal(tool, arguments.clone()).await;
        assert_eq!(refused["code"], "connection_not_found", "{tool} {arguments}: {refused}");
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("Set `connection_id` to an existing one"), "{tool} {arguments}: {hint}");
    }
    // The connection of an id cannot be set by an argument.
    for (tool, arguments) in [
        ("fetch", json!({"id": "none/orders:o1"})),
        ("read_record_field", json!({"id": "none/orders:o1", "field": "body"})),
    ] {
        let refused = model.refusal(tool, arguments).await;
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("before the first `/`"), "{tool}: {hint}");
    }
}

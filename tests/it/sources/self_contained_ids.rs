//! Self-contained ids over a record server that logs each request: what is forwarded, and what is refused before any request.

use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Model, Reply, Request, connect, text};

/// Answers a search with hits of several kinds, and any record.
fn answer(request: &Request) -> Reply {
    let body = if request.line.contains("/v1/search") {
        json!({"data": [
            {"stream": "orders", "id": "o1", "connection_id": "cin_4f2a", "title": "A stream and a key"},
            {"id": "cin_4f2a/orders:o2", "title": "An id that is minted already"},
            {"url": "https://example.com/page", "title": "A link alone"},
            {"id": "result 7", "title": "An opaque id"},
            {"stream": "orders", "id": "o3", "connection_id": "a/b", "title": "No plain form"},
            {"stream": "..", "id": "o4", "connection_id": "cin_4f2a", "title": "No stream"},
            {"stream": "orders", "id": "o5", "connection_id": "..", "title": "No connection"},
        ]})
    } else {
        json!({"object": "record", "data": {"body": "text"}})
    };
    Reply::Json(200, body.to_string())
}

async fn remote(profile: &str) -> (Model, FakeServer, tempfile::TempDir) {
    let server = FakeServer::start(answer);
    let cache = tempfile::tempdir().unwrap();
    connect(cache.path(), &server.url, CREDENTIAL);
    let arguments = ["--provider-url", &server.url, "--cache-root", text(cache.path()), "--profile", profile];
    (Model::over_stdio(arguments).await, server, cache)
}

#[tokio::test]
async fn the_connection_of_an_id_is_forwarded_and_never_invented() {
    let (model, server, _cache) = remote("standard").await;
    for (arguments, path) in [
        (json!({"id": "orders:o1"}), "orders/records/o1"),
        (json!({"id": "orders:a:b:c"}), "orders/records/a%3Ab%3Ac"),
        (json!({"id": "pdpp:x1"}), "pdpp/records/x1"),
        (json!({"id": "cin_4f2a/orders:o1"}), "orders/records/o1?connection_id=cin_4f2a"),
        (json!({"id": "cin_4f2a/orders:a:b:c"}), "orders/records/a%3Ab%3Ac?connection_id=cin_4f2a"),
        (json!({"id": "cin_4f2a/pdpp:x1"}), "pdpp/records/x1?connection_id=cin_4f2a"),
        (json!({"id": "a%2Fb/orders/o1"}), "orders/records/o1?connection_id=a%2Fb"),
        (json!({"id": "orders:o1", "connection_id": "cin_4f2a"}), "orders/records/o1?connection_id=cin_4f2a"),
        (
            json!({"id": "cin_4f2a/orders:o1", "connection_id": "cin_4f2a"}),
            "orders/records/o1?connection_id=cin_4f2a",
        ),
    ] {
        let before = server.requests().len();
        let fetched = model.call("fetch", arguments.clone()).await;
        let asked: Vec<String> =
            server.requests().split_off(before).into_iter().map(|one| one.line).collect();
        assert_eq!(asked, [format!("GET /v1/streams/{path}")], "{arguments}");
        assert_eq!(fetched["id"].as_str().unwrap().contains('/'), path.contains('?'), "{fetched}");
    }
}

#[tokio::test]
async fn an_unsafe_or_contradicting_id_is_refused_before_any_request() {
    let (model, server, _cache) = remote("standard").await;
    let (openai, other, _folder) = remote("openai").await;
    let unsafe_ids = [
        "..",
        "orders:..",
        "..:o1",
        "cin_4f2a/..:o1",
        "../orders:o1",
        "x..y/orders:o1",
        "cin_4f2a/x..y:o1",
        "orders:x..y",
        "a\\b/orders:o1",
        "cin_4f2a/a\\b:o1",
        "orders:a\\b",
        "orders:x/y",
        "cin_4f2a/orders:x/y",
        "",
        "/orders:o1",
        "cin_4f2a/:o1",
        "cin_4f2a/orders:",
        ":o1",
        "orders:",
    ];
    for id in unsafe_ids {
        assert_eq!(model.refusal("fetch", json!({"id": id})).await["code"], "invalid_handle", "{id}");
        assert_eq!(openai.refusal("fetch", json!({"id": id})).await["code"], "invalid_handle", "{id}");
    }
    for tool in ["fetch", "read_record_field"] {
        let mut arguments = json!({"id": "cin_4f2a/orders:o1", "connection_id": "cin_other"});
        if tool == "read_record_field" {
            arguments["field"] = json!("body");
        }
        assert_eq!(model.refusal(tool, arguments).await["code"], "conflicting_connection_id");
    }
    assert_eq!((server.requests().len(), other.requests().len()), (0, 0));
}

#[tokio::test]
async fn printed_ids_are_fetched_in_each_profile() {
    for profile in ["standard", "openai"] {
        let (model, _server, _cache) = remote(profile).await;
        let found = model.call("search", json!({"query": "order"})).await;
        let ids: Vec<&str> =
            found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        let expect = [
            "cin_4f2a/orders:o1",
            "cin_4f2a/orders:o2",
            "https://example.com/page",
            "result 7",
            "a%2Fb/orders/o3",
        ];
        assert_eq!((ids.as_slice(), &found["omitted"]), (expect.as_slice(), &Value::from(2)));
        for id in ids {
            assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
        }
    }
}

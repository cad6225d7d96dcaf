//! The `url` of results and documents in the profile `openai`, which is never empty.

use rmcp::ClientLifecycleMode;
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, HttpServer, Model, Reply, connect, import_records, text};

/// A link in a record.
const LINK: &str = "https://example.com/orders/1";

/// Starts a record server with records that have a link, none, or no id in its grammar.
fn record_server() -> FakeServer {
    let found = json!({"data": [
        {"stream": "orders", "id": "o1", "connection_id": "c", "title": "Own link", "url": LINK},
        {"stream": "orders", "id": "o2", "connection_id": "c", "title": "No link"},
        {"stream": "labels", "id": "a/b c", "connection_id": "c d", "title": "No plain handle"},
        {"stream": "orders", "id": "o3", "title": "No connection"},
        {"id": "doc 17", "title": "Opaque", "snippet": "one order"},
    ]});
    FakeServer::start(move |request| {
        let path = request.line.trim_start_matches("GET /v1/streams/");
        let record = match path.split('?').next().unwrap() {
            "orders/records/o1" => {
                json!({"stream": "orders", "id": "o1", "data": {"body": "x", "url": LINK}})
            }
            "orders/records/o2" => json!({"stream": "orders", "id": "o2", "data": {"body": "x"}}),
            "orders/records/o3" => json!({"stream": "orders", "id": "o3", "data": {"body": "x"}}),
            "labels/records/a%2Fb%20c" => json!({"stream": "labels", "id": "a/b c", "data": {"body": "x"}}),
            _ if request.line.starts_with("GET /v1/search?") => found.clone(),
            _ => return Reply::Json(404, json!({"error": {"code": "not_found"}}).to_string()),
        };
        Reply::Json(200, record.to_string())
    })
}

/// Returns the id and the URL of each result. The document of each has the same URL.
async fn citations(model: &Model) -> Vec<(String, String)> {
    let found = model.call("search", json!({"query": "order"})).await;
    let mut citations = Vec::new();
    for result in found["results"].as_array().unwrap() {
        let fetched = model.call("fetch", json!({"id": result["id"]})).await;
        assert_eq!((&fetched["url"], &fetched["id"]), (&result["url"], &result["id"]));
        for answer in [result, &fetched] {
            assert!(!answer.to_string().contains("tok_5ecret"), "{answer}");
        }
        let text = |name: &str| result[name].as_str().unwrap().to_owned();
        citations.push((text("id"), text("url")));
    }
    citations
}

fn pairs(citations: &[(String, String)]) -> Vec<(&str, &str)> {
    citations.iter().map(|(id, url)| (id.as_str(), url.as_str())).collect()
}

#[tokio::test]
async fn a_record_of_a_server_has_its_own_link_or_its_address() {
    let (server, cache) = (record_server(), tempfile::tempdir().unwrap());
    connect(cache.path(), &server.url, CREDENTIAL);
    let arguments =
        ["--provider-url", &server.url, "--cache-root", text(cache.path()), "--profile", "openai"];
    let model = Model::over_stdio(arguments).await;
    let base = format!("{}/v1/streams", server.url);
    let expect = [
        ("c/orders:o1", LINK.to_owned()),
        ("c/orders:o2", format!("{base}/orders/records/o2?connection_id=c")),
        ("c%20d/labels/a%2Fb%20c", format!("{base}/labels/records/a%2Fb%20c?connection_id=c+d")),
        ("orders:o3", format!("{base}/orders/records/o3")),
        ("doc 17", "pdpp://record/doc%2017".to_owned()),
    ];
    let expect: Vec<(&str, &str)> = expect.iter().map(|(id, url)| (*id, url.as_str())).collect();
    assert_eq!(pairs(&citations(&model).await), expect);
    // The other profiles name only links that a person can open.
    let model = Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(cache.path())]).await;
    let found = model.call("search", json!({"query": "order"})).await;
    assert_eq!((&found["results"][0]["url"], found["results"][1].get("url")), (&json!(LINK), None));
    assert_eq!(model.call("fetch", json!({"id": "c/orders:o2"})).await["url"], "");
}

/// Returns a store of two records, the first with a link.
fn store() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("orders.db");
    let line = |key: &str, data: Value| json!({"stream": "orders", "key": key, "data": data}).to_string();
    let lines = [
        line("o1", json!({"title": "order", "url": LINK, "body": "one order"})),
        line("a/b", json!({"body": "order number two of many words"})),
    ];
    import_records(&store, "c", &lines.join("\n"));
    (folder, store)
}

#[tokio::test]
async fn a_record_of_a_store_has_its_own_link_or_its_resource() {
    let (_folder, store) = store();
    let model = Model::over_stdio(["--store", text(&store), "--profile", "openai"]).await;
    let mut found = citations(&model).await;
    found.sort();
    assert_eq!(pairs(&found), [("c/orders/a%2Fb", "pdpp://record/c/orders/a%2Fb"), ("c/orders:o1", LINK)]);
    // The URL can be read as a resource, and fetched.
    let url = &found[0].1;
    let standard = Model::over_stdio(["--store", text(&store)]).await;
    let read = standard.client().read_resource(ReadResourceRequestParams::new(url.as_str())).await.unwrap();
    assert!(serde_json::to_string(&read.contents[0]).unwrap().contains("order number two"));
    assert_eq!(model.call("fetch", json!({"id": url})).await["url"], *url);
}

#[tokio::test]
async fn a_page_of_the_public_url_comes_before_the_address() {
    let (folder, store) = store();
    let (server, cache) = (record_server(), folder.path().join("cache"));
    connect(&cache, &server.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    let sources = [
        format!(
            "[[source]]\nname = \"remote\"\nurl = \"{}\"\ncache_root = \"{}\"\n",
            server.url,
            text(&cache)
        ),
        format!("[[source]]\nname = \"own\"\nstore = \"{}\"\n", text(&store)),
    ];
    for source in sources {
        std::fs::write(&config, format!("public_url = \"http://localhost:7400\"\n{source}")).unwrap();
        let http = HttpServer::start(["--config", text(&config)]);
        let model = Model::over_http(http.url("/mcp/openai"), ClientLifecycleMode::Initialize).await;
        for (id, url) in citations(&model).await {
            match id.as_str() {
                "c/orders:o1" => assert_eq!(url, LINK),
                "doc 17" => assert_eq!(url, "pdpp://record/doc%2017"),
                id => assert!(url.starts_with("http://localhost:7400/records/"), "{id}: {url}"),
            }
        }
    }
}

//! The document-search API over HTTP: searches, projects and feedback.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::hosted::{ANN, BOB, Place, bearer, start};
use crate::support::{
    Answer, FakeServer, HttpServer, Model, Reply, ask, binary, fetchwell, get, post, post_bytes, stdout, text,
};

/// A store with the project `handbook` and a server.
struct Site {
    folder: tempfile::TempDir,
    server: HttpServer,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        import(&folder.path().join("docs"), &store);
        let server = HttpServer::start(["--store", text(&store)]);
        Self { folder, server }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    #[track_caller]
    fn search(&self, body: &Value) -> Answer {
        post(&self.server.address, "/api/v1/search", &[], &body.to_string())
    }

    #[track_caller]
    fn found(&self, body: &Value) -> Value {
        let answer = self.search(body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

/// Imports documents into the project `handbook`.
fn import(origin: &std::path::Path, store: &std::path::Path) {
    fs::create_dir_all(origin.join("references")).unwrap();
    let auth =
        "# Authentication Guide\n\nAuthentication is handled via JWT tokens that expire after an hour.\n";
    fs::write(origin.join("references/authentication.md"), auth).unwrap();
    for number in 0..20 {
        let body =
            format!("# Topic {number}\n\nHow does it work? The queue {number} is drained by a worker.\n");
        fs::write(origin.join(format!("topic-{number}.md")), body).unwrap();
    }
    stdout(&fetchwell(["project", "create", "handbook", "--store", text(store)]));
    let arguments = [
        "import",
        "docs",
        text(origin),
        "--project",
        "handbook",
        "--category-from",
        "folder",
        "--store",
        text(store),
    ];
    stdout(&fetchwell(arguments));
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!((answer.status, &body["code"]), (status, &json!(code)), "{answer:?}");
    assert_eq!(body["request_id"], answer.header("request-id").unwrap());
    assert!(body["error"].is_string() && body["detail"].is_string(), "{body}");
    body
}

#[test]
fn a_search_has_the_response_of_the_contract() {
    let site = Site::new();
    let request = json!({"query": "how does authentication work", "project_id": "handbook", "top_k": 5,
        "category": null, "use_reranker": true});
    let answer = site.search(&request);
    let body = answer.json();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expect =
        ["results", "query", "project_id", "total_found", "latency_ms", "cache_hit", "corpus_version"];
    assert_eq!(keys(&body), expect);
    let first = &body["results"][0];
    let expect = [
        "id",
        "document_id",
        "content",
        "score",
        "document_path",
        "document_title",
        "category",
        "chunk_index",
        "metadata",
    ];
    assert_eq!(keys(first), expect);
    assert!(
        first["content"].as_str().unwrap().contains("Authentication is handled via JWT tokens"),
        "{body}"
    );
    assert_eq!(
        (&first["document_path"], &first["document_title"], &first["category"], &first["metadata"]),
        (
            &json!("references/authentication.md"),
            &json!("Authentication Guide"),
            &json!("references"),
            &json!({})
        )
    );
    assert_eq!((&body["query"], &body["project_id"]), (&request["query"], &json!("handbook")));
    assert_eq!((&body["cache_hit"], &body["corpus_version"]), (&json!(false), &json!(2)));
    assert_eq!((body["results"].as_array().unwrap().len(), &body["total_found"]), (1, &json!(1)));
    let many = site.found(&json!({"query": "queue", "project_id": "handbook", "top_k": 7}));
    assert_eq!((many["results"].as_array().unwrap().len(), &many["total_found"]), (7, &json!(20)));
    assert!(answer.header("search-id").is_some());
    let detailed = site.found(&json!({"query": "JWT", "project_id": "handbook", "include_metadata": true}));
    assert_eq!(detailed["results"][0]["metadata"]["start"], 0);
    assert_eq!(detailed["results"][0]["metadata"]["heading_path"], "Authentication Guide");
}

#[test]
fn an_equal_search_is_cached_until_a_document_changes() {
    let site = Site::new();
    let request = json!({"query": "JWT tokens", "project_id": "handbook"});
    let first = site.found(&request);
    let second = site.found(&request);
    assert_eq!((&first["cache_hit"], &second["cache_hit"]), (&json!(false), &json!(true)));
    assert_eq!(first["results"], second["results"]);
    // The id names the same project, and is answered as it was sent.
    let id = get(&site.server.address, "/api/v1/projects/handbook").json()["id"].clone();
    let by_id = site.found(&json!({"query": "JWT tokens", "project_id": id}));
    assert_eq!((&by_id["project_id"], &by_id["cache_hit"]), (&id, &json!(true)));
    fs::remove_file(site.folder.path().join("docs/references/authentication.md")).unwrap();
    stdout(&fetchwell(["sync", "handbook", "--store", text(&site.store())]));
    let after = site.found(&request);
    assert_eq!((&after["cache_hit"], &after["corpus_version"]), (&json!(false), &json!(3)));
    assert!(!after.to_string().contains("JWT tokens that"), "{after}");
}

#[test]
fn projects_are_listed_and_read() {
    let site = Site::new();
    let list = get(&site.server.address, "/api/v1/projects").json();
    let project = &list["projects"][0];
    let keys: Vec<&String> = project.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "slug", "name", "settings", "corpus_version", "created_at", "updated_at"]);
    assert_eq!((&project["slug"], &project["corpus_version"]), (&json!("handbook"), &json!(2)));
    for named in ["handbook", project["id"].as_str().unwrap()] {
        assert_eq!(get(&site.server.address, &format!("/api/v1/projects/{named}")).json(), *project);
    }
    for named in ["none", "Handbook", "550e8400-e29b-41d4-a716-446655440000"] {
        let answer = get(&site.server.address, &format!("/api/v1/projects/{named}"));
        refused(&answer, 404, "PROJECT_NOT_FOUND");
    }
    let answer = site.search(&json!({"query": "x", "project_id": "none"}));
    refused(&answer, 404, "PROJECT_NOT_FOUND");
}

#[test]
fn feedback_needs_the_id_of_a_search() {
    let site = Site::new();
    let answer = site.search(&json!({"query": "JWT", "project_id": "handbook"}));
    let id = answer.header("search-id").unwrap().to_owned();
    let feedback = |id: &str, body: Value| {
        post(&site.server.address, &format!("/api/v1/search/{id}/feedback"), &[], &body.to_string())
    };
    let stored = || -> (Option<String>, bool, String) {
        let database = rusqlite::Connection::open(site.store()).unwrap();
        let sql = "SELECT feedback, cache_hit, query FROM search_history WHERE id = ?1";
        database.query_row(sql, [&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    };
    assert_eq!(stored(), (None, false, "JWT".to_owned()));
    assert_eq!(feedback(&id, json!({"feedback": "not_helpful"})).status, 204);
    assert_eq!(stored().0.as_deref(), Some("not_helpful"));
    assert_eq!(feedback(&id, json!({"feedback": null})).status, 204);
    assert_eq!(stored().0, None);
    refused(&feedback(&id, json!({"feedback": "great"})), 400, "INVALID_ARGUMENT");
    refused(&feedback("550e8400-e29b-41d4-a716-446655440000", json!({"feedback": null})), 404, "NOT_FOUND");
    refused(&feedback("x", json!({"feedback": null})), 404, "NOT_FOUND");
}

#[test]
fn invalid_requests_are_refused_by_parameter() {
    let site = Site::new();
    let empty = refused(&site.search(&json!({"query": "", "project_id": "handbook"})), 400, "INVALID_QUERY");
    assert_eq!(
        (&empty["error"], &empty["detail"]),
        (&json!("Invalid query"), &json!("Query cannot be empty"))
    );
    assert_eq!(empty["errors"][0]["loc"], json!(["body", "query"]));
    let keys: Vec<&String> = empty["errors"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["loc", "msg", "type"]);
    let long = json!({"query": "x".repeat(1_001), "project_id": "handbook"});
    refused(&site.search(&long), 400, "INVALID_QUERY");
    let top_k = json!({"query": "x", "project_id": "handbook", "top_k": 51});
    refused(&site.search(&top_k), 400, "INVALID_ARGUMENT");
    let address = &site.server.address;
    refused(&post_bytes(address, "/api/v1/search", b"{not json"), 400, "INVALID_ARGUMENT");
    refused(
        &ask(address, "POST", "/api/v1/search", &["content-type: text/plain", "content-length: 0"]),
        415,
        "INVALID_ARGUMENT",
    );
    refused(&get(address, "/api/v1/search"), 405, "METHOD_NOT_ALLOWED");
    let large = json!({"query": "x".repeat(2 * 1024 * 1024), "project_id": "handbook"}).to_string();
    let answer = post_bytes(address, "/api/v1/search", large.as_bytes());
    assert_eq!(answer.status, 413, "{}", answer.text);
}

#[test]
fn responses_match_their_description() {
    let site = Site::new();
    let address = &site.server.address;
    let document = get(address, "/openapi.json").json();
    let check = |path: &str, method: &str, answer: &Answer| {
        let described = &document["paths"][path][method]["responses"][answer.status.to_string()];
        let schema = &described["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} {}", answer.status);
        let errors: Vec<String> = jsonschema::validator_for(schema)
            .unwrap()
            .iter_errors(&answer.json())
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{path}: {errors:?}\n{}", answer.text);
    };
    let search = |body: Value| check("/api/v1/search", "post", &site.search(&body));
    search(json!({"query": "JWT", "project_id": "handbook", "include_metadata": true}));
    search(json!({"query": "", "project_id": "handbook", "top_k": 0}));
    search(json!({"query": "x", "project_id": "none"}));
    check("/api/v1/projects", "get", &get(address, "/api/v1/projects"));
    check("/api/v1/projects/{id}", "get", &get(address, "/api/v1/projects/handbook"));
    check("/api/v1/projects/{id}", "get", &get(address, "/api/v1/projects/none"));
    check("/api/v1/search/stream", "get", &get(address, "/api/v1/search/stream?query=x"));
}

/// Returns the names and the data of events.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    let blocks = answer.text.split("\n\n").filter(|block| block.contains("event: "));
    let read = |block: &str| {
        let line = |start: &str| block.lines().find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
        (line("event: ").unwrap(), serde_json::from_str(&line("data: ").unwrap()).unwrap())
    };
    blocks.map(read).collect()
}

#[test]
fn a_search_is_streamed_by_stages() {
    let site = Site::new();
    let target = "/api/v1/search/stream?query=JWT+tokens&project_id=handbook&top_k=3";
    let first = get(&site.server.address, target);
    assert_eq!((first.status, first.header("content-type")), (200, Some("text/event-stream")));
    let stages = events(&first);
    let names: Vec<&str> = stages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["search_started", "cache_check", "search_results", "complete"]);
    assert_eq!(stages[0].1, json!({"query": "JWT tokens", "project_id": "handbook"}));
    assert_eq!(stages[1].1["hit"], false);
    assert!(stages[1].1["key"].as_str().unwrap().starts_with("fraim:handbook:v2:search:"), "{stages:?}");
    assert!(first.text.contains("event: complete\nid: "), "{}", first.text);
    // The same search is a hit, also for `POST`, and has the same results.
    let again = events(&get(&site.server.address, target));
    let names: Vec<&str> = again.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["search_started", "cache_check", "complete"]);
    assert_eq!((&again[1].1["hit"], &again[2].1["results"]), (&json!(true), &stages[3].1["results"]));
    let posted = site.found(&json!({"query": "JWT tokens", "project_id": "handbook", "top_k": 3}));
    assert_eq!((&posted["cache_hit"], &posted["results"]), (&json!(true), &stages[3].1["results"]));
    assert_eq!(stages[2].1["count"], posted["total_found"]);
    let refusal = get(&site.server.address, "/api/v1/search/stream?query=&project_id=handbook");
    refused(&refusal, 400, "INVALID_QUERY");
    let refusal = get(&site.server.address, "/api/v1/search/stream?query=x&project_id=none");
    refused(&refusal, 404, "PROJECT_NOT_FOUND");
}

#[test]
fn callers_see_the_projects_of_their_sources_only() {
    let place = Place::new();
    for (who, other) in [("ann", "bob"), ("bob", "ann")] {
        let (store, origin) = (place.path(&format!("{who}.db")), place.path(&format!("{who}-docs")));
        fs::create_dir(&origin).unwrap();
        fs::write(origin.join("zebra.md"), format!("# Zebra\n\nThe zebra of {who}, not of {other}.\n"))
            .unwrap();
        for slug in ["shared", &format!("only-{who}")] {
            stdout(&fetchwell(["project", "create", slug, "--store", text(&store)]));
            let arguments = ["import", "docs", text(&origin), "--project", slug, "--store", text(&store)];
            stdout(&fetchwell(arguments));
        }
    }
    let server = start(&place.of_two());
    let search = |token: &str, project: &str| {
        let body = json!({"query": "zebra", "project_id": project}).to_string();
        post(&server.address, "/api/v1/search", &[&bearer(token)], &body)
    };
    for (token, who, other) in [(ANN, "ann", "bob"), (BOB, "bob", "ann")] {
        for _again in 0..2 {
            let found = search(token, "shared").json();
            let content = found["results"][0]["content"].as_str().unwrap();
            assert!(content.contains(&format!("of {who}, not")), "{who}: {found}");
            assert_eq!(found["results"].as_array().unwrap().len(), 1);
        }
        refused(&search(token, &format!("only-{other}")), 404, "PROJECT_NOT_FOUND");
        let list = ask(&server.address, "GET", "/api/v1/projects", &[&bearer(token)]);
        assert!(!list.text.contains(&format!("only-{other}")), "{}", list.text);
        let hidden = format!("/api/v1/projects/only-{other}");
        refused(&ask(&server.address, "GET", &hidden, &[&bearer(token)]), 404, "PROJECT_NOT_FOUND");
        let id = search(token, "shared").header("search-id").unwrap().to_owned();
        let feedback = |token: &str| {
            let target = format!("/api/v1/search/{id}/feedback");
            post(&server.address, &target, &[&bearer(token)], r#"{"feedback": "helpful"}"#)
        };
        refused(&feedback(if who == "ann" { BOB } else { ANN }), 404, "NOT_FOUND");
        assert_eq!(feedback(token).status, 204);
    }
    let anonymous = post(&server.address, "/api/v1/search", &[], "{}");
    assert_eq!(anonymous.status, 401, "{}", anonymous.text);
}

/// Starts a service with vectors of 32 dimensions.
fn embedding_service() -> FakeServer {
    FakeServer::start(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let count = body["input"].as_array().map_or(0, Vec::len);
        let vector = |index: usize| json!({"index": index, "embedding": vec![0.5; 32]});
        Reply::Json(200, json!({"data": (0..count).map(vector).collect::<Vec<_>>()}).to_string())
    })
}

#[tokio::test]
async fn vectors_of_documents_have_1024_dimensions() {
    for (pad_to, expect) in [("", Some("Expected 1024 dimensions, got 32")), ("pad_to = 1024\n", None)] {
        let (folder, service) = (tempfile::tempdir().unwrap(), embedding_service());
        let [store, config] = ["store.db", "fetchwell.toml"].map(|name| folder.path().join(name));
        import(&folder.path().join("docs"), &store);
        let settings = format!(
            "[[source]]\nname = \"own\"\nstore = \"{}\"\n[embedding]\nprovider = \"http\"\nurl = \"{}/v1\"\n\
             model = \"m\"\ndimensions = 32\nbackground = false\nquery_timeout = \"30s\"\n{pad_to}",
            store.display(),
            service.url
        );
        fs::write(&config, settings).unwrap();
        let built =
            binary().args(["embeddings", "build", "--yes", "--config", text(&config)]).output().unwrap();
        assert!(built.status.success(), "{built:?}");
        let model = Model::over_stdio(["--profile", "docs", "--config", text(&config)]).await;
        let found = model.call("search_docs", json!({"query": "JWT", "project_id": "handbook"})).await;
        assert_eq!(found["results"][0]["path"], "references/authentication.md", "{found}");
        let warning = found["warnings"][0].as_str();
        match expect {
            Some(part) => assert!(warning.is_some_and(|warning| warning.contains(part)), "{found}"),
            None => assert_eq!(warning, None, "{found}"),
        }
    }
}

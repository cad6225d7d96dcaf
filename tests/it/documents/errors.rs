//! Errors of the document-search API over a real socket, each with its exact status and code.

use serde_json::{Value, json};

use crate::support::handbook::{Site, embedded, refused};
use crate::support::{FakeServer, Reply, ask, fetchwell, get, post_bytes, stderr, text};

#[test]
fn bad_input_has_exact_codes() {
    let site = Site::new();
    let query = |length: usize| json!({"query": "x".repeat(length), "project_id": "handbook"});
    let with = |name: &str, value: Value| {
        let mut body = json!({"query": "JWT", "project_id": "handbook"});
        body[name] = value;
        body
    };
    let invalid = (400, "INVALID_ARGUMENT");
    for (body, (status, code)) in [
        (query(0), (400, "INVALID_QUERY")),
        (query(1), (200, "")),
        (query(1_000), (200, "")),
        (query(1_001), (400, "INVALID_QUERY")),
        (json!({"query": "é".repeat(1_000), "project_id": "handbook"}), (200, "")),
        (json!({"query": " \n", "project_id": "handbook"}), (400, "INVALID_QUERY")),
        (json!({"query": 1, "project_id": "handbook"}), (400, "INVALID_QUERY")),
        (json!({"project_id": "handbook"}), (400, "INVALID_QUERY")),
        (json!({"query": "JWT"}), invalid),
        (with("top_k", json!(0)), invalid),
        (with("top_k", json!(1)), (200, "")),
        (with("top_k", json!(50)), (200, "")),
        (with("top_k", json!(51)), invalid),
        (with("top_k", json!("5")), (200, "")),
        (with("top_k", json!(null)), invalid),
        (with("category", json!("references")), (200, "")),
        (with("category", json!("general")), (200, "")),
        (with("category", json!(null)), (200, "")),
        (with("category", json!("other")), invalid),
        (with("use_reranker", json!("yes")), invalid),
        (with("limit", json!(5)), invalid),
        (with("project_id", json!("none")), (404, "PROJECT_NOT_FOUND")),
        (with("project_id", json!("a:b")), (404, "PROJECT_NOT_FOUND")),
        (with("project_id", json!("*")), (404, "PROJECT_NOT_FOUND")),
        (with("project_id", json!("a/b")), (404, "PROJECT_NOT_FOUND")),
        (with("project_id", json!("HANDBOOK")), (404, "PROJECT_NOT_FOUND")),
        (with("project_id", json!("x".repeat(101))), invalid),
        (json!([1]), invalid),
        (json!("JWT"), invalid),
    ] {
        let answer = site.search(&body);
        if status == 200 {
            assert_eq!(answer.status, 200, "{body}: {answer:?}");
        } else {
            let error = refused(&answer, status, code);
            assert_eq!(error["errors"].is_array(), status == 400, "{body}: {error}");
        }
    }
    let address = &site.server.address;
    let large = query(2 * 1024 * 1024).to_string();
    refused(&post_bytes(address, "/api/v1/search", large.as_bytes()), 413, "INVALID_ARGUMENT");
    for broken in ["", "{", "{\"query\": }", "{} {}"] {
        let answer = post_bytes(address, "/api/v1/search", broken.as_bytes());
        assert_eq!(refused(&answer, 400, "INVALID_ARGUMENT")["errors"][0]["type"], "json_invalid");
    }
    for content_type in ["content-type: text/plain", "content-type: application/jsonx", "accept: */*"] {
        let answer = ask(address, "POST", "/api/v1/search", &[content_type, "content-length: 0"]);
        refused(&answer, 415, "INVALID_ARGUMENT");
    }
}

#[test]
fn slugs_are_created_by_their_grammar() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    for slug in ["a:b", "*", "a/b", "Docs", "a b", "550e8400-e29b-41d4-a716-446655440000"] {
        let created = fetchwell(["project", "create", slug, "--store", text(&store)]);
        assert!(!created.status.success() && stderr(&created).contains("slug"), "{slug}: {created:?}");
    }
}

#[test]
fn errors_name_what_there_is() {
    let site = Site::new();
    let body = json!({"query": "JWT", "project_id": "none"});
    let error = refused(&site.search(&body), 404, "PROJECT_NOT_FOUND");
    assert_eq!(error["detail"], "there is no project `none`; the projects are `handbook`");
    let body = json!({"query": "JWT", "project_id": "handbook", "category": "guides"});
    let detail = refused(&site.search(&body), 400, "INVALID_ARGUMENT")["detail"].to_string();
    for known in ["intent", "research", "references", "process", "workspace", "general"] {
        assert!(detail.contains(known), "{detail}");
    }
}

#[test]
fn unknown_paths_are_answered_with_the_routes() {
    let site = Site::new();
    let address = &site.server.address;
    for target in [
        "/api/v1/search/x",
        "/api/v1/search/",
        "/api/v1/search/x/y/z",
        "/api/v1/projects/",
        "/api/v1/projects/handbook/documents",
        "/api/v1/projects/%FF",
        "/api/v1/admin",
        "/api/v1/admin/cache",
    ] {
        let detail = refused(&get(address, target), 404, "NOT_FOUND")["detail"].to_string();
        assert!(detail.contains("POST /api/v1/search, GET /api/v1/search/stream"), "{target}: {detail}");
    }
    // Ids are decoded.
    assert_eq!(get(address, "/api/v1/projects/hand%62ook").json()["slug"], "handbook");
    refused(&get(address, "/api/v1/projects/a%2Fb"), 404, "PROJECT_NOT_FOUND");
    for (method, target, allowed) in [
        ("GET", "/api/v1/search", "POST"),
        ("DELETE", "/api/v1/projects/handbook", "GET, HEAD"),
        ("POST", "/api/v1/search/stream", "GET, HEAD"),
        ("PUT", "/api/v1/documents?project_id=handbook", "GET, HEAD"),
        ("GET", "/api/v1/admin/cache/clear", "POST"),
    ] {
        let answer = ask(address, method, target, &["content-length: 0"]);
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {target}");
        refused(&answer, 405, "METHOD_NOT_ALLOWED");
    }
}

/// Starts a service that answers the query `JWT` with a vector, and everything else with a valid one.
fn faulty_service(vector: Value) -> FakeServer {
    FakeServer::start(move |request| {
        let valid = json!(vec![0.5; 32]);
        embedded(&request.body, if request.body.contains("\"JWT\"") { &vector } else { &valid })
    })
}

#[test]
fn a_query_vector_that_breaks_the_contract_is_an_error() {
    for (vector, part) in [
        (json!(vec![0.0; 32]), "zero"),
        (json!(vec![0.5; 512]), "Expected 32 dimensions, got 512"),
        (json!(vec![1e39; 32]), "is not one of an embedding service"),
        (json!(vec!["NaN"; 32]), "is not one of an embedding service"),
        (json!([]), "Expected 32 dimensions, got 0"),
    ] {
        let service = faulty_service(vector);
        let site = Site::embedded(&service, "");
        let error =
            refused(&site.search(&json!({"query": "JWT", "project_id": "handbook"})), 502, "EMBEDDING_ERROR");
        assert!(error["detail"].as_str().unwrap().contains(part), "{error}");
        let streamed = get(&site.server.address, "/api/v1/search/stream?query=JWT&project_id=handbook").text;
        assert!(streamed.contains("event: error") && streamed.contains("EMBEDDING_ERROR"), "{streamed}");
    }
}

#[test]
fn a_query_without_a_valid_vector_leaves_other_queries_alone() {
    for vector in [json!(vec![0.0; 32]), json!(vec!["NaN"; 32]), json!(vec![0.5; 512]), json!([])] {
        let service = faulty_service(vector);
        let site = Site::embedded(&service, "");
        // Valid and invalid answers take turns.
        for turn in 0..3 {
            refused(&site.search(&json!({"query": "JWT", "project_id": "handbook"})), 502, "EMBEDDING_ERROR");
            let other = site.search(&json!({"query": format!("queue {turn}"), "project_id": "handbook"}));
            assert_eq!((other.status, other.header("search-warning")), (200, None), "{turn} {other:?}");
        }
    }
}

#[test]
fn an_answer_by_words_has_a_warning_with_its_reason() {
    let service = FakeServer::start(|request| {
        let is_query = request.body.contains("\"JWT\"");
        if is_query {
            Reply::Json(500, "{}".to_owned())
        } else {
            embedded(&request.body, &json!(vec![0.5; 32]))
        }
    });
    let site = Site::embedded(&service, "");
    let answer = site.search(&json!({"query": "JWT", "project_id": "handbook"}));
    assert_eq!(answer.status, 200, "{answer:?}");
    let warning = answer.header("search-warning").unwrap();
    assert!(
        warning.contains("searched by words only") && warning.contains("fails with status 500"),
        "{warning}"
    );
    assert!(!warning.contains("check `url`"), "{warning}");
    let streamed = get(&site.server.address, "/api/v1/search/stream?query=JWT&project_id=handbook").text;
    assert!(streamed.contains("\"warnings\":[\"searched by words only"), "{streamed}");
}

#[test]
fn head_is_answered_like_get_without_a_body() {
    let site = Site::new();
    let head = |target: &str| ask(&site.server.address, "HEAD", target, &[]);
    let found = head("/api/v1/projects/handbook");
    assert_eq!((found.status, found.text.as_str()), (200, ""), "{found:?}");
    assert_eq!(head("/api/v1/projects/none").status, 404);
    assert_eq!(head("/api/v1/search").status, 405);
}

#[test]
fn a_service_that_is_down_leaves_the_search_by_words() {
    let service = faulty_service(json!(vec![0.5; 32]));
    let site = Site::embedded(&service, "");
    service.close();
    let found = site.found(&json!({"query": "JWT", "project_id": "handbook"}));
    assert_eq!(found["results"][0]["document_path"], "references/authentication.md");
}

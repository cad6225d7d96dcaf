//! The document-search API over HTTP: searches, projects and feedback.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::handbook::{Site, embedded, embedding_table, import, refused};
use crate::support::hosted::{ANN, BOB, Place, bearer, start};
use crate::support::{
    Answer, FakeServer, HttpServer, Model, Reply, ask, binary, fetchwell, get, post, post_bytes, stderr,
    stdout, text,
};

#[test]
fn a_server_without_history_remembers_no_search() {
    let site = Site::configured("");
    let config = site.path("fetchwell.toml");
    let on = fs::read_to_string(&config).unwrap();
    let off = format!("search_history = false\n{on}");
    let body = json!({"query": "JWT tokens", "project_id": "handbook"});
    let with_id = Cell::new(0);
    let search = || {
        let has_id = site.search(&body).header("search-id").is_some();
        with_id.set(with_id.get() + i64::from(has_id));
        has_id
    };
    assert!(search());
    fs::write(&config, off).unwrap();
    site.server.wait_until("the history is off", || !search());
    for _ in 0..5 {
        assert!(!search());
    }
    fs::write(&config, on).unwrap();
    site.server.wait_until("the history is on again", search);
    // Searches are written behind their answers, in their order.
    let remembered = || -> i64 {
        let database = rusqlite::Connection::open(site.store()).unwrap();
        database.query_row("SELECT count(*) FROM search_history", (), |row| row.get(0)).unwrap()
    };
    site.server.wait_until("the last search is written", || remembered() >= with_id.get());
    assert_eq!(remembered(), with_id.get());
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
    fs::remove_file(site.path("docs/references/authentication.md")).unwrap();
    stdout(&fetchwell(["sync", "handbook", "--store", text(&site.store())]));
    let after = site.found(&request);
    assert_eq!((&after["cache_hit"], &after["corpus_version"]), (&json!(false), &json!(3)));
    assert!(!after.to_string().contains("JWT tokens that"), "{after}");
}

#[test]
fn new_vectors_end_a_cached_answer() {
    let service = embedding_service();
    let site = Site::configured(&embedding_table(&service));
    let request = json!({"query": "JWT tokens", "project_id": "handbook"});
    assert_eq!(site.found(&request)["cache_hit"], false);
    assert_eq!(site.found(&request)["cache_hit"], true);
    let config = site.path("fetchwell.toml");
    let build = ["embeddings", "build", "--yes", "--config", text(&config)];
    stdout(&binary().args(build).output().unwrap());
    assert_eq!(site.found(&request)["cache_hit"], false);
    assert_eq!(site.found(&request)["cache_hit"], true);
    let version = get(&site.server.address, "/api/v1/projects/handbook").json()["corpus_version"].clone();
    assert_eq!(version, 3, "complete vectors raise the version");
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

/// Returns the files below a folder, without those of the documents, that contain a text.
fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("docs") {
            found.extend(files_with(&path, word));
        } else if path.is_file()
            && fs::read(&path).unwrap().windows(word.len()).any(|bytes| bytes == word.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_file_has_texts_or_queries_of_a_removed_project() {
    let site = Site::new();
    let request = json!({"query": "JWT queryzebrafish", "project_id": "handbook"});
    let id = site.search(&request).header("search-id").unwrap().to_owned();
    // The feedback is written after the search.
    let feedback = format!("/api/v1/search/{id}/feedback");
    assert_eq!(post(&site.server.address, &feedback, &[], "{\"feedback\": \"helpful\"}").status, 204);
    let (words, folder) = (["JWT tokens", "queryzebrafish"], site.path(""));
    assert!(words.iter().all(|word| !files_with(&folder, word).is_empty()));
    let store = site.store();
    stdout(&fetchwell(["project", "remove", "handbook", "--yes", "--store", text(&store)]));
    for word in words {
        assert_eq!(files_with(&folder, word), Vec::<PathBuf>::new(), "{word}");
    }
    // A server that runs all the while does not answer from its cache.
    refused(&site.search(&request), 404, "PROJECT_NOT_FOUND");
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
    // The search is written behind its answer, and before any feedback.
    assert_eq!(feedback(&id, json!({"feedback": "not_helpful"})).status, 204);
    assert_eq!(stored().0.as_deref(), Some("not_helpful"));
    assert_eq!(feedback(&id, json!({"feedback": null})).status, 204);
    assert_eq!(stored().0, None);
    refused(&feedback(&id, json!({"feedback": "great"})), 400, "INVALID_ARGUMENT");
    refused(&feedback("550e8400-e29b-41d4-a716-446655440000", json!({"feedback": null})), 404, "NOT_FOUND");
    refused(&feedback("x", json!({"feedback": null})), 404, "NOT_FOUND");
}

#[test]
fn old_searches_are_deleted_when_a_server_starts() {
    let site = Site::new();
    let answer = site.search(&json!({"query": "JWT", "project_id": "handbook"}));
    let feedback = format!("/api/v1/search/{}/feedback", answer.header("search-id").unwrap());
    assert_eq!(post(&site.server.address, &feedback, &[], "{\"feedback\": \"helpful\"}").status, 204);
    let database = rusqlite::Connection::open(site.store()).unwrap();
    let count = || -> i64 {
        database.query_row("SELECT count(*) FROM search_history", (), |row| row.get(0)).unwrap()
    };
    assert_eq!(count(), 1);
    database.execute("UPDATE search_history SET created_at = '2020-01-01T00:00:00.000Z'", ()).unwrap();
    let state = site.path("state-2");
    let _server = HttpServer::start(["--store", text(&site.store()), "--state-dir", text(&state)]);
    let limit = Instant::now() + Duration::from_secs(30);
    while count() > 0 && Instant::now() < limit {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!(count(), 0);
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
    for query in ["", "&path=topic-1.md", "&path=none", "&limit=1", "&limit=x"] {
        let answer = get(address, &format!("/api/v1/documents?project_id=handbook{query}"));
        check("/api/v1/documents", "get", &answer);
    }
    check("/api/v1/documents", "get", &get(address, "/api/v1/documents?limit=none"));
    check("/api/v1/projects/{id}/history", "get", &get(address, "/api/v1/projects/handbook/history"));
    check("/api/v1/projects/{id}/searches", "get", &get(address, "/api/v1/projects/handbook/searches"));
    check("/api/v1/admin/cache/clear", "post", &ask(address, "POST", "/api/v1/admin/cache/clear", &[]));
}

#[test]
fn the_header_names_the_reranker_of_the_results() {
    let service = FakeServer::start(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        if body["query"] == "worker" {
            return Reply::Json(500, "{}".to_owned());
        }
        let count = body["documents"].as_array().unwrap().len();
        let score = |index: usize| json!({"index": index, "relevance_score": index});
        Reply::Json(200, json!({"results": (0..count).map(score).collect::<Vec<_>>()}).to_string())
    });
    let rerank = format!("[rerank]\nprovider = \"http\"\nurl = \"{}/v1\"\nmodel = \"rank 3\"\n", service.url);
    let site = Site::configured(&rerank);
    let reranked = |query: &str, use_reranker: bool| {
        let body = json!({"query": query, "project_id": "handbook", "use_reranker": use_reranker});
        let answer = site.search(&body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("reranked").unwrap().to_owned()
    };
    for _also_cached in 0..2 {
        assert_eq!(reranked("queue", true), "rank3");
        assert_eq!(reranked("queue", false), "none");
    }
    // One candidate needs no order, and the reranker fails for the other query.
    assert_eq!(reranked("JWT", true), "none");
    assert_eq!(reranked("worker", true), "none");
    let target = "/api/v1/search/stream?query=drained&project_id=handbook&top_k=3";
    let events = get(&site.server.address, target).text;
    assert!(events.contains("event: rerank\ndata: {\"input\":20,\"output\":3,"), "{events}");
    let plain = Site::new();
    let answer = plain.search(&json!({"query": "queue", "project_id": "handbook"}));
    assert_eq!(answer.header("reranked"), Some("none"));
}

#[test]
fn metadata_has_the_chunks_beside_a_result() {
    let site = Site::new();
    let line = |number: usize| format!("Sentence {number} says nothing of interest about anything.\n\n");
    let filler = |start: usize| (start..start + 60).map(line).collect::<String>();
    let body = format!("# Guide\n\n{}## Birds\n\nThe heron stands.\n\n{}", filler(0), filler(100));
    fs::write(site.path("docs/guide.md"), &body).unwrap();
    stdout(&fetchwell(["sync", "handbook", "--store", text(&site.store())]));
    let request = json!({"query": "heron", "project_id": "handbook", "include_metadata": true});
    let result = site.found(&request)["results"][0].take();
    let metadata = &result["metadata"];
    let place = |name: &str| usize::try_from(metadata[name].as_u64().unwrap()).unwrap();
    assert_eq!(body.get(place("start")..place("end")).unwrap(), result["content"]);
    let index = result["chunk_index"].as_u64().unwrap();
    let (previous, next) = (&metadata["neighbors"]["previous"], &metadata["neighbors"]["next"]);
    assert_eq!((&previous["chunk_index"], &next["chunk_index"]), (&json!(index - 1), &json!(index + 1)));
    // A neighbor is the text at the edge of the result, at most 1,000 characters.
    let (before, after) = (previous["content"].as_str().unwrap(), next["content"].as_str().unwrap());
    let (head, tail) = (body.get(..place("start")).unwrap(), body.get(place("end")..).unwrap());
    assert!(head.ends_with(before) && tail.starts_with(after), "{metadata}");
    assert!((100..=1_000).contains(&before.len()) && (100..=1_000).contains(&after.len()));
    let only = site.found(&json!({"query": "JWT", "project_id": "handbook", "include_metadata": true}));
    assert_eq!(only["results"][0]["metadata"]["neighbors"], json!({"previous": null, "next": null}));
    let plain = site.found(&json!({"query": "heron", "project_id": "handbook"}));
    assert_eq!(plain["results"][0]["metadata"], json!({}));
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
    FakeServer::start(|request| embedded(&request.body, &json!(vec![0.5; 32])))
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
        let run =
            |command: &[&str]| binary().args(command).args(["--config", text(&config)]).output().unwrap();
        let built = run(&["embeddings", "build", "--yes"]);
        if let Some(expect) = expect {
            for command in [
                &["embeddings", "build", "--yes"][..],
                &["serve", "--stdio"],
                &["doctor"],
                &["config", "check"],
            ] {
                let output = run(command);
                let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
                assert!(said.contains(expect) && said.contains("pad_to = 1024"), "{command:?}: {said}");
                assert_eq!(output.status.success(), command == ["config", "check"], "{command:?}: {said}");
            }
            continue;
        }
        assert!(built.status.success(), "{built:?}");
        let model = Model::over_stdio(["--profile", "docs", "--config", text(&config)]).await;
        let found = model.call("search_docs", json!({"query": "JWT", "project_id": "handbook"})).await;
        assert_eq!(found["results"][0]["path"], "references/authentication.md", "{found}");
        assert_eq!(found.get("warnings"), None, "{found}");
    }
}

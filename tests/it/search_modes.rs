//! A mode that a source does not have falls back to a search by words, with one warning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell::source::{SearchMode, SearchQuery};
use serde_json::json;

use crate::support::remote::Remote;
use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, connect, demo_store, get, recorded, text,
};

#[tokio::test]
async fn an_unsupported_mode_is_answered_by_words_with_one_warning() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let source = |name: &str| format!("[[source]]\nname = \"{name}\"\nstore = \"{}\"\n", store.display());
    std::fs::write(&config, source("one") + &source("two")).unwrap();
    for model in [
        Model::over_stdio(["--store", text(&store)]).await,
        Model::over_stdio(["--config", text(&config)]).await,
    ] {
        for mode in ["semantic", "hybrid"] {
            let mut arguments = json!({"query": "invoice", "limit": 1});
            let expect = model.call("search", arguments.clone()).await;
            arguments["mode"] = json!(mode);
            let found = model.call("search", arguments).await;
            assert_eq!(found["results"], expect["results"]);
            let warnings = found["warnings"].as_array().unwrap_or_else(|| panic!("{found}"));
            assert_eq!(warnings.len(), 1, "{found}");
            assert!(warnings[0].as_str().unwrap().starts_with(&format!("`mode` {mode} is not available")));
            // The next page continues the same search, and its cursor is refused with another mode.
            let cursor = &found["next_cursor"];
            let next = model.call("search", json!({"cursor": cursor})).await;
            assert_ne!(next["results"], found["results"]);
            assert_eq!(next["results"].as_array().unwrap().len(), 1);
            for other in ["lexical", "semantic", "hybrid"] {
                let arguments = json!({"cursor": cursor, "mode": other});
                if other == mode {
                    assert_eq!(model.call("search", arguments).await["results"], next["results"]);
                } else {
                    assert_eq!(model.refusal("search", arguments).await["reason"], "mismatched");
                }
            }
        }
    }
}

/// A record server without the routes, and one that reports missing embeddings.
#[tokio::test]
async fn a_record_server_without_a_mode_is_searched_by_words() {
    let missing = |status: u16, code: &str| {
        Reply::Json(status, json!({"error": {"code": code, "message": "no", "type": "x"}}).to_string())
    };
    for (status, code) in [(404, "not_found"), (503, "semantic_retrieval_unavailable"), (501, "x")] {
        let folder = tempfile::tempdir().unwrap();
        let server = FakeServer::start(move |request| match &*request.line {
            line if line.contains("/semantic") || line.contains("/hybrid") => missing(status, code),
            line if line.contains("cursor=") => recorded("search-lexical-page2"),
            _ => recorded("search-lexical"),
        });
        connect(folder.path(), &server.url, CREDENTIAL);
        let arguments = ["--provider-url", &server.url, "--cache-root", text(folder.path())];
        let model = Model::over_stdio(arguments).await;
        for mode in ["semantic", "hybrid"] {
            let found = model.call("search", json!({"query": "invoice", "mode": mode})).await;
            assert_eq!(found["warnings"].as_array().map(Vec::len), Some(1), "{found}");
            assert!(!found["results"].as_array().unwrap().is_empty());
            let next = model.call("search", json!({"cursor": found["next_cursor"]})).await;
            assert!(!next["results"].as_array().unwrap().is_empty(), "{next}");
        }
    }
}

#[tokio::test]
async fn next_page_after_a_search_by_words_is_by_words() {
    // The server learns to search by meaning between the pages; its routes would not know the cursor.
    let has_semantic = Arc::new(AtomicBool::new(false));
    let knows = Arc::clone(&has_semantic);
    let remote = Remote::start(move |request| {
        let hit = |key: &str| json!({"stream": "messages", "record_key": key, "connection_id": "cin_work"});
        let (status, body) = match &*request.line {
            line if line.contains("/search/semantic") && knows.load(Ordering::Relaxed) => {
                (400, json!({"error": {"code": "invalid_cursor", "message": "Unknown cursor"}}))
            }
            line if line.contains("/search/semantic") => {
                (404, json!({"message": "Route GET: not found", "error": "Not Found", "statusCode": 404}))
            }
            line if line.contains("cursor=c1") => (200, json!({"data": [hit("m2")], "has_more": false})),
            _ => (200, json!({"data": [hit("m1")], "has_more": true, "next_cursor": "c1"})),
        };
        Reply::Json(status, body.to_string())
    });
    let query = SearchQuery { mode: SearchMode::Semantic, ..SearchQuery::new("invoice", 1) };
    let first = remote.pdpp.search(&query).await.unwrap();
    assert!(first.lexical_instead && first.next.is_some());
    has_semantic.store(true, Ordering::Relaxed);
    let second = remote.pdpp.search(&SearchQuery { position: first.next, ..query }).await.unwrap();
    assert_eq!((second.hits.len(), second.lexical_instead, second.next), (1, true, None));
    assert!(remote.asked().last().unwrap().starts_with("/v1/search?"), "{:?}", remote.asked());
}

/// `/v1` requests the mode of its route, and reports the mode in which records were found.
#[test]
fn routes_of_v1_ask_the_source_for_their_mode() {
    for has_modes in [true, false] {
        let server = FakeServer::start(move |request| match &*request.line {
            line if line.contains("/semantic") && has_modes => recorded("search-semantic"),
            line if line.contains("/hybrid") && has_modes => recorded("search-hybrid"),
            line if line.contains("/semantic") || line.contains("/hybrid") => Reply::Json(
                404,
                json!({"error": {"code": "not_found", "message": "no", "type": "x"}}).to_string(),
            ),
            _ => recorded("search-lexical"),
        });
        let folder = tempfile::tempdir().unwrap();
        connect(folder.path(), &server.url, CREDENTIAL);
        let http = HttpServer::start(["--provider-url", &server.url, "--cache-root", text(folder.path())]);
        for mode in ["semantic", "hybrid"] {
            let found = get(&http.address, &format!("/v1/search/{mode}?q=invoice&limit=2")).json();
            let expect = if has_modes { mode } else { "lexical" };
            assert_eq!(found["retrieval_mode"], expect, "{found}");
            let warns = found["meta"]["warnings"].to_string().contains("semantic_unavailable");
            assert_eq!(warns, !has_modes, "{found}");
            assert!(!found["data"].as_array().unwrap().is_empty(), "{found}");
            let asked = server.requests();
            assert!(asked.iter().any(|request| request.line.contains(&format!("/v1/search/{mode}?"))));
        }
    }
}

#[tokio::test]
async fn a_mode_that_a_server_declares_unsupported_is_not_requested() {
    let declares = |supported: bool| {
        let remote = Remote::start(move |request| match &*request.line {
            line if line.contains("/.well-known/") => {
                let method = json!({"supported": supported});
                let methods = json!({"semantic_retrieval": method, "hybrid_retrieval": method});
                Reply::Json(200, json!({"capabilities": methods}).to_string())
            }
            line if line.contains("/hybrid") => recorded("search-hybrid"),
            line if line.contains("/semantic") => recorded("search-semantic"),
            _ => recorded("search-lexical"),
        });
        async move {
            let mut instead = Vec::new();
            for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
                let query = SearchQuery { mode, ..SearchQuery::new("invoice", 2) };
                let page = remote.pdpp.search(&query).await.unwrap();
                instead.push(page.lexical_instead);
                if supported {
                    // The second hit has no word of the query in either recorded reply.
                    assert!(page.hits[1].by_meaning, "{mode:?}: {:?}", page.hits);
                }
                if supported && mode == SearchMode::Hybrid {
                    assert!(!page.hits[0].by_meaning, "{:?}", page.hits);
                }
            }
            let asked = remote.asked();
            let count = |part: &str| asked.iter().filter(|line| line.contains(part)).count();
            // The server's declaration is read once.
            assert_eq!(count("/.well-known/oauth-protected-resource"), 1, "{asked:?}");
            (instead, count("/search/semantic") + count("/search/hybrid"))
        }
    };
    assert_eq!(declares(false).await, (vec![true, true], 0));
    assert_eq!(declares(true).await, (vec![false, false], 2));
}

//! A mode that a source does not have falls back to a search by words, with one warning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::{SearchMode, SearchQuery};
use serde_json::{Value, json};

use crate::support::remote::Remote;
use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, Request, connect, demo_store, get, recorded, text,
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

/// Answers searches by words over the records m1 to m7, a page at a time, and other searches with these keys. `declares`
/// are the methods in the server's metadata.
fn server_of_modes(declares: &[&str], near: &[&str], status: u16) -> impl Fn(&Request) -> Reply + use<> {
    let methods: serde_json::Map<String, Value> =
        declares.iter().map(|name| ((*name).to_owned(), json!({"supported": true}))).collect();
    let near: Vec<String> = near.iter().map(|key| (*key).to_owned()).collect();
    move |request| {
        let url = url::Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
        let number = |name: &str| url.query_pairs().find(|(key, _)| key == name)?.1.parse::<usize>().ok();
        let hit = |key: &str| json!({"stream": "messages", "record_key": key, "connection_id": "cin_work", "matched_fields": ["body"]});
        let (status, body) = match url.path() {
            "/.well-known/oauth-protected-resource" => (200, json!({"capabilities": methods})),
            "/v1/search/hybrid" | "/v1/search/semantic" if status != 200 => {
                let code = if status == 404 { "not_found" } else { "x" };
                (status, json!({"error": {"code": code, "message": "no", "type": "x"}}))
            }
            "/v1/search/hybrid" | "/v1/search/semantic" => {
                (200, json!({"data": near.iter().map(|key| hit(key)).collect::<Vec<_>>(), "has_more": false}))
            }
            "/v1/search" => {
                let (from, limit) = (number("cursor").unwrap_or(0), number("limit").unwrap_or(25));
                let keys: Vec<Value> =
                    (from + 1..=7).take(limit).map(|number| hit(&format!("m{number}"))).collect();
                let next = from + keys.len();
                (
                    200,
                    json!({"data": keys, "has_more": next < 7, "next_cursor": (next < 7).then(|| next.to_string())}),
                )
            }
            _ => (404, json!({"error": {"code": "not_found", "message": "no", "type": "x"}})),
        };
        Reply::Json(status, body.to_string())
    }
}

/// Reads all pages of a search in mode `auto`.
async fn pages(remote: &Remote, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut position) = (Vec::new(), None);
    loop {
        let query = SearchQuery { position, ..SearchQuery::new("invoice", limit) };
        let page = remote.pdpp.search(&query).await.unwrap();
        assert!(!page.lexical_instead);
        let key = |hit: &Hit| match &hit.id {
            HitId::Record(address) => address.record.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        pages.push(page.hits.iter().map(key).collect());
        position = page.next;
        if position.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn auto_uses_the_search_by_meaning_that_a_server_declares() {
    const SEMANTIC: &str = "semantic_retrieval";
    const HYBRID: &str = "hybrid_retrieval";
    for (declares, near, limit, expect) in [
        (&[SEMANTIC, HYBRID][..], &["m9", "m2", "m1"][..], 3, vec!["m9 m2 m1", "m3", "m4 m5 m6", "m7"]),
        (&[HYBRID], &["m9", "m2"], 10, vec!["m9 m2 m1 m3 m4 m5 m6 m7"]),
        (&[HYBRID], &[], 4, vec!["m1 m2 m3 m4", "m5 m6 m7"]),
        (&[SEMANTIC], &["m9", "m3", "m8"], 10, vec!["m1 m2 m3 m4 m5 m9 m6 m7 m8"]),
        (&[SEMANTIC], &["m9", "m8"], 6, vec!["m1 m2 m3 m4 m5 m9", "m6", "m7"]),
        (&[], &["m9"], 4, vec!["m1 m2 m3 m4", "m5 m6 m7"]),
    ] {
        let remote = Remote::start(server_of_modes(declares, near, 200));
        let found: Vec<String> = pages(&remote, limit).await.iter().map(|page| page.join(" ")).collect();
        assert_eq!(found, expect, "{declares:?}");
        let asked = remote.asked();
        let count = |part: &str| asked.iter().filter(|line| line.starts_with(part)).count();
        assert_eq!(count("/.well-known/"), 1, "{asked:?}");
        let modes = (count("/v1/search/semantic?"), count("/v1/search/hybrid?"));
        let has_hybrid = declares.contains(&HYBRID);
        assert_eq!(modes, (usize::from(!has_hybrid && declares == [SEMANTIC]), usize::from(has_hybrid)));
    }
}

#[tokio::test]
async fn auto_is_by_words_if_the_declared_search_fails() {
    for (status, warns) in [(500, true), (400, true), (404, false), (501, false)] {
        let remote = Remote::start(server_of_modes(&["hybrid_retrieval"], &[], status));
        let page = remote.pdpp.search(&SearchQuery::new("invoice", 10)).await.unwrap();
        assert_eq!((page.hits.len(), page.lexical_instead), (7, false), "{status}");
        let problems = Vec::from_iter(&page.meaning_problems);
        assert_eq!(problems.len(), usize::from(warns), "{status} {problems:?}");
        assert!(problems.iter().all(|problem| problem.contains("hybrid search of `provider` failed")));
    }
}

/// A federation of a server that declares the modes and one that does not: one warning names a mode that was not applied.
#[tokio::test]
async fn a_federation_names_a_mode_once() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [
        FakeServer::start(server_of_modes(&["semantic_retrieval", "hybrid_retrieval"], &["m9"], 200)),
        FakeServer::start(server_of_modes(&[], &[], 404)),
        FakeServer::start(server_of_modes(&[], &[], 404)),
    ];
    let mut config = String::new();
    for (at, server) in servers.iter().enumerate() {
        connect(folder.path(), &server.url, CREDENTIAL);
        let (url, root) = (&server.url, folder.path().display());
        config += &format!("[[source]]\nname = \"s{at}\"\nurl = \"{url}\"\ncache_root = \"{root}\"\n");
    }
    let file = folder.path().join("fetchwell.toml");
    std::fs::write(&file, config).unwrap();
    let model = Model::over_stdio(["--config", text(&file)]).await;
    for (mode, expect) in [("auto", 0), ("lexical", 0), ("semantic", 1), ("hybrid", 1)] {
        let found = model.call("search", json!({"query": "invoice", "mode": mode, "limit": 20})).await;
        let warnings = found["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.len(), expect, "{mode} {found}");
        let name = format!("`mode` {mode} is not available: sources without it were searched by words");
        assert!(warnings.iter().all(|warning| *warning == name), "{found}");
        let has_near = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .any(|hit| hit["id"].as_str().unwrap().ends_with("m9"));
        assert_eq!(has_near, mode != "lexical", "{found}");
    }
}

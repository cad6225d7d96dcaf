//! The cache of document searches and printed ids of servers that share a Redis.

use serde_json::{Value, json};

use super::servers::{OwnRedis, Replicas, contents, shared_url};
use crate::support::handbook::import;
use crate::support::hosted::{ANN, BOB, HEAD, Place, bearer, call, token};
use crate::support::{FakeServer, HttpServer, Reply, Request, ask, fetchwell, post, stdout, text};

fn search(server: &HttpServer, caller: &str) -> Value {
    let body = json!({"query": "JWT tokens", "project_id": "handbook"}).to_string();
    let answer = post(&server.address, "/api/v1/search", &[&bearer(caller)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Returns replicas on which Ann, an administrator, and Bob read one project.
fn replicas(url: &str) -> Replicas {
    let place = Place::new();
    import(&place.path("docs"), &place.path("shared.db"));
    let grant =
        |name: &str, secret: &str| token(name, secret).replace(&format!("[\"{name}\"]"), "[\"shared\"]");
    let source = "[[source]]\nname = \"shared\"\nstore = \"shared.db\"\n";
    let config =
        format!("state = \"{url}\"\n{HEAD}{}admin = true\n{}{source}", grant("ann", ANN), grant("bob", BOB));
    Replicas::configured(place, &config)
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn answer_of_one_server_is_in_the_cache_of_the_other() {
    let url = shared_url();
    let replicas = replicas(&url);
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let first = search(&one, ANN);
    assert_eq!(first["cache_hit"], false, "{first}");
    let second = search(&other, ANN);
    assert_eq!(second["cache_hit"], true, "{second}");
    for part in ["results", "total_found", "corpus_version"] {
        assert_eq!(second[part], first[part], "{part}");
    }
    assert_eq!(search(&other, BOB)["cache_hit"], false, "caches belong to grants");
    let kept = contents(&url);
    assert!(kept.contains(":search:") && !kept.contains("JWT"), "{kept}");

    // A changed corpus has another answer on both.
    let docs = replicas.place.path("docs");
    std::fs::write(docs.join("references/more.md"), "# JWT tokens\n\nJWT tokens are signed.\n").unwrap();
    let store = replicas.place.path("shared.db");
    stdout(&fetchwell(["import", "docs", text(&docs), "--project", "handbook", "--store", text(&store)]));
    let changed = search(&other, ANN);
    assert_eq!(changed["cache_hit"], false, "{changed}");
    assert!(changed["corpus_version"].as_i64() > first["corpus_version"].as_i64(), "{changed}");
    assert_eq!(search(&one, ANN)["results"], changed["results"]);

    // Cleared entries are used by no server: neither by a new one, nor by one that has them in memory.
    let third = replicas.start("third");
    assert_eq!(search(&other, ANN)["cache_hit"], true);
    let cleared = ask(&one.address, "POST", "/api/v1/admin/cache/clear", &[&bearer(ANN)]);
    assert_eq!(cleared.status, 200, "{cleared:?}");
    assert_eq!(search(&other, ANN)["cache_hit"], false);
    assert_eq!(search(&third, ANN)["cache_hit"], true, "the entry of the other server");
    assert_eq!(search(&other, BOB)["cache_hit"], false);
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn searches_go_on_without_redis() {
    let mut redis = OwnRedis::start(&[]);
    let replicas = replicas(&redis.url());
    let server = replicas.start("one");
    let first = search(&server, ANN);
    redis.kill();
    assert_eq!(search(&server, ANN)["cache_hit"], true, "the memory of the server is the first level");
    let other = search(&server, BOB);
    assert_eq!((&other["cache_hit"], &other["results"]), (&json!(false), &first["results"]));
    // The administrator knows that other servers were not reached.
    let cleared = ask(&server.address, "POST", "/api/v1/admin/cache/clear", &[&bearer(ANN)]);
    assert_eq!((cleared.status, &cleared.json()["code"]), (503, &json!("STATE_UNAVAILABLE")), "{cleared:?}");
    assert_eq!(search(&server, ANN)["cache_hit"], false);
}

/// Starts a record server with hits that have an id of its own and no address.
fn record_server() -> FakeServer {
    FakeServer::start(|request: &Request| {
        if request.line.starts_with("GET /v1/search") {
            let hits = [1, 2, 3].map(|number| {
                json!({"id": format!("doc {number}"), "title": format!("Paper {number}"),
                    "snippet": format!("what paper {number} says")})
            });
            return Reply::Json(200, json!({"results": hits, "has_more": false}).to_string());
        }
        if request.line.starts_with("GET /v1/schema") {
            return Reply::Json(200, json!({"object": "schema", "connectors": []}).to_string());
        }
        let error =
            json!({"error": {"type": "not_found_error", "code": "not_found", "message": "there is none"}});
        Reply::Json(404, error.to_string())
    })
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn every_printed_id_is_fetched_from_the_other_server() {
    let (records, mut redis) = (record_server(), OwnRedis::start(&[]));
    let place = Place::new();
    std::fs::write(place.path("mail-token"), "t0ken").unwrap();
    let grant =
        |name: &str, secret: &str| token(name, secret).replace(&format!("[\"{name}\"]"), "[\"mail\"]");
    let config = format!(
        "state = \"{}\"\n{HEAD}{}{}[[source]]\nname = \"mail\"\nurl = \"{}\"\ncredential = \"file:mail-token\"\n",
        redis.url(),
        grant("ann", ANN),
        grant("bob", BOB),
        records.url
    );
    let replicas = Replicas::configured(place, &config);
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let found = call(&one, ANN, "search", &json!({"query": "paper"}));
    let ids: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["doc 1", "doc 2", "doc 3"], "{found}");
    for (number, id) in (1..).zip(&ids) {
        let document = call(&other, ANN, "fetch", &json!({"id": id}));
        assert!(document["text"].to_string().contains(&format!("what paper {number} says")), "{document}");
    }
    let refused = call(&other, BOB, "fetch", &json!({"id": "doc 1"}));
    assert!(refused["error"].is_object(), "{refused}");
    redis.kill();
    let refused = call(&other, ANN, "fetch", &json!({"id": "doc 1"}));
    assert_eq!(refused["error"]["code"], "state_unavailable", "{refused}");
    let known = call(&one, ANN, "fetch", &json!({"id": "doc 1"}));
    assert!(known["text"].to_string().contains("what paper 1 says"), "{known}");
}

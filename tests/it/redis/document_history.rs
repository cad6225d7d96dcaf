//! The history of document searches with a shared cache, in a file and, if the run has one, in PostgreSQL.

use std::path::Path;

use serde_json::{Value, json};

use super::servers::{OwnRedis, Replicas};
use crate::support::handbook::{embedded, embedding_table, import, refused};
use crate::support::hosted::{ANN, BOB, HEAD, Place, bearer, token};
use crate::support::stores::postgres::{Database, has_server};
use crate::support::{Answer, FakeServer, HttpServer, ask, binary, fetchwell, post, stdout, text};

fn search(server: &HttpServer, caller: &str, query: &str) -> Answer {
    let body = json!({"query": query, "project_id": "handbook"}).to_string();
    let answer = post(&server.address, "/api/v1/search", &[&bearer(caller)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

fn grouped(server: &HttpServer, caller: &str, query: &str) -> Answer {
    ask(&server.address, "GET", &format!("/api/v1/projects/handbook/searches{query}"), &[&bearer(caller)])
}

/// Returns the bytes of the vector of each search in the order of their queries and times, `None` for `NULL`.
async fn vectors(store: &str, database: Option<&Database>) -> Vec<Option<i32>> {
    let Some(database) = database else {
        let database = rusqlite::Connection::open(store).unwrap();
        let sql = "SELECT length(query_embedding) FROM search_history ORDER BY query, created_at";
        let mut vectors = database.prepare(sql).unwrap();
        return vectors.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    };
    let sql =
        "SELECT 4 * vector_dims(query_embedding) FROM fetchwell.search_history ORDER BY query, created_at";
    let rows = database.client().await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Searches on a server with another model than that of the stored vectors. The query is embedded, and not compared with them.
fn search_with_another_model(server: &HttpServer) {
    let by_words = search(server, ANN, "worker");
    assert!(
        by_words.header("search-warning").is_some_and(|text| text.contains("words only")),
        "{by_words:?}"
    );
    // A server reads the history after it has written the searches that wait.
    assert_eq!(grouped(server, ANN, "?group_by=day").status, 200);
}

async fn check(database: Option<&Database>) {
    let (redis, place) = (OwnRedis::start(&[]), Place::new());
    let store = database.map_or_else(|| text(&place.path("store.db")).to_owned(), |found| found.url.clone());
    import(&place.path("docs"), Path::new(&store));
    let numbers = json!((1..=32).collect::<Vec<_>>());
    let service = FakeServer::start(move |request| embedded(&request.body, &numbers));
    let tokens = [token("ann", ANN) + "admin = true\n", token("bob", BOB)].concat();
    let tokens = tokens.replace("[\"ann\"]", "[\"own\"]").replace("[\"bob\"]", "[\"own\"]");
    let head = format!("state = \"{}\"\n{HEAD}", redis.url());
    let sources = format!("[[source]]\nname = \"own\"\nstore = \"{store}\"\n");
    let settings = format!("{head}{tokens}{sources}{}", embedding_table(&service));
    let replicas = Replicas::configured(place, &settings);
    let config = replicas.place.path("fetchwell.toml");
    let config = text(&config);
    stdout(&binary().args(["embeddings", "build", "--yes", "--config", config]).output().unwrap());
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let searched = search(&one, BOB, "JWT tokens");
    let hit = search(&other, BOB, "JWT tokens");
    search(&one, ANN, "queue");
    assert_eq!(hit.json()["cache_hit"], true, "the vector comes from Redis");
    let id = searched.header("search-id").unwrap();
    let feedback = format!("/api/v1/search/{id}/feedback");
    let helpful = post(&one.address, &feedback, &[&bearer(BOB)], r#"{"feedback": "helpful"}"#);
    assert_eq!(helpful.status, 204, "{helpful:?}");

    let groups = |by: &str| -> Vec<Value> {
        // Each server writes its own searches.
        let [_, answer] = [&one, &other].map(|server| grouped(server, ANN, &format!("?group_by={by}")));
        let body = answer.json();
        assert_eq!((answer.status, &body["group_by"]), (200, &json!(by)), "{body}");
        body["groups"].as_array().unwrap().clone()
    };
    let counts = |by: &str| -> Value {
        let group = |group: &Value| {
            let latencies = &group["latency_ms"];
            assert!(latencies["p50"].as_u64() <= latencies["p95"].as_u64(), "{group}");
            json!([group["value"], group["count"]])
        };
        groups(by).iter().map(group).collect()
    };
    assert_eq!(counts("cache_hit"), json!([[false, 2], [true, 1]]));
    assert_eq!(counts("feedback"), json!([[null, 2], ["helpful", 1]]));
    let days = groups("day");
    assert_eq!(days.iter().map(|day| day["count"].as_u64().unwrap()).sum::<u64>(), 3, "{days:?}");
    let history = ask(&one.address, "GET", "/api/v1/projects/handbook/history", &[&bearer(ANN)]).json();
    let newest = history["searches"][0]["created_at"].as_str().unwrap();
    assert_eq!(days[0]["value"].as_str(), newest.get(..10), "{history}");
    refused(&grouped(&one, BOB, "?group_by=day"), 403, "FORBIDDEN");
    for wrong in
        ["", "?group_by=", "?group_by=hour", "?group_by=day&limit=1", "?group_by=day&group_by=day%00"]
    {
        refused(&grouped(&one, ANN, wrong), 400, "INVALID_ARGUMENT");
    }

    assert_eq!(vectors(&store, database).await, [Some(4_096); 3]);
    drop((one, other));
    std::fs::write(config, settings.replace("model = \"m\"", "model = \"other\"")).unwrap();
    search_with_another_model(&replicas.start("third"));
    assert_eq!(vectors(&store, database).await, [Some(4_096); 4]);
    stdout(&fetchwell(["embeddings", "remove", "--store", &store]));
    assert_eq!(vectors(&store, database).await, [None; 4], "removed with the vectors of the store");
    // A server without a model has no vector.
    std::fs::write(config, format!("{head}{tokens}{sources}")).unwrap();
    let last = replicas.start("last");
    search(&last, ANN, "worker");
    assert_eq!(grouped(&last, ANN, "?group_by=day").json()["groups"][0]["value"], days[0]["value"]);
    assert_eq!(vectors(&store, database).await, [None; 5]);
    stdout(&fetchwell(["project", "set", "handbook", "--no-history", "--store", &store]));
    assert_eq!(vectors(&store, database).await, []);
    assert_eq!(grouped(&last, ANN, "?group_by=feedback").json()["groups"], json!([]));
}

#[tokio::test]
#[ignore = "needs a Redis server: tests/redis/run"]
async fn the_history_has_query_vectors_and_groups() {
    check(None).await;
    if has_server() {
        check(Some(&Database::create().await)).await;
    }
}

//! Requests of the document-search API that need a token with `admin = true`, and the owners of searches.

use serde_json::{Value, json};

use crate::support::handbook::{Site, import, refused};
use crate::support::hosted::{ANN, BOB, CAROL, HEAD, Place, administered, bearer, call, start};
use crate::support::{Answer, HttpServer, ask, fetchwell, post, stdout, text};

/// Starts a server on which Ann and Bob read the project `handbook`, and Ann and Carol are administrators. Carol reads
/// another store.
fn server(place: &Place) -> HttpServer {
    let store = place.path("shared.db");
    import(&place.path("docs"), &store);
    let other = place.path("other.db");
    stdout(&fetchwell(["project", "create", "handbook", "--store", text(&other)]));
    start(&place.configure(&format!("{HEAD}{}", administered())))
}

#[track_caller]
fn search(server: &HttpServer, token: &str, query: &str) -> Answer {
    let body = json!({"query": query, "project_id": "handbook"}).to_string();
    let answer = post(&server.address, "/api/v1/search", &[&bearer(token)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

fn clear(server: &HttpServer, token: &str, query: &str) -> Answer {
    ask(&server.address, "POST", &format!("/api/v1/admin/cache/clear{query}"), &[&bearer(token)])
}

fn history(server: &HttpServer, token: &str, query: &str) -> Answer {
    let target = format!("/api/v1/projects/handbook/history{query}");
    ask(&server.address, "GET", &target, &[&bearer(token)])
}

#[test]
fn an_administrator_clears_the_caches_of_all_callers_of_its_projects() {
    let place = Place::new();
    let server = server(&place);
    let is_hit = |token: &str| search(&server, token, "JWT tokens").json()["cache_hit"] == true;
    for token in [ANN, BOB, CAROL] {
        assert_eq!([is_hit(token), is_hit(token)], [false, true]);
    }
    refused(&clear(&server, BOB, ""), 403, "FORBIDDEN");
    assert!(is_hit(BOB));
    // An asterisk is the name of a project, and an unknown one clears nothing.
    for unknown in ["*", "hand*", "none"] {
        refused(&clear(&server, ANN, &format!("?project_id={unknown}")), 404, "PROJECT_NOT_FOUND");
    }
    refused(&clear(&server, ANN, "?project=handbook"), 400, "INVALID_ARGUMENT");
    // Carol's project has the same slug.
    clear(&server, CAROL, "?project_id=handbook");
    assert!(is_hit(ANN) && is_hit(BOB));
    for query in ["?project_id=handbook", ""] {
        let cleared = clear(&server, ANN, query);
        assert_eq!((cleared.status, cleared.json()), (200, json!({"cleared": 2})), "{query}");
        assert!(!is_hit(ANN) && !is_hit(BOB) && is_hit(ANN), "{query}");
    }
    assert_eq!(ask(&server.address, "POST", "/api/v1/admin/cache/clear", &[]).status, 401);
}

#[test]
fn only_an_administrator_reads_the_history() {
    let place = Place::new();
    let server = server(&place);
    for query in ["JWT tokens", "heliotrope", "queue"] {
        search(&server, BOB, query);
    }
    refused(&history(&server, BOB, ""), 403, "FORBIDDEN");
    let searches = history(&server, ANN, "").json();
    let rows = searches["searches"].as_array().unwrap();
    let queries: Vec<&str> = rows.iter().map(|row| row["query"].as_str().unwrap()).collect();
    assert_eq!(queries, ["queue", "heliotrope", "JWT tokens"]);
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let columns =
        ["id", "project_id", "query", "result_ids", "feedback", "latency_ms", "cache_hit", "created_at"];
    assert_eq!(keys, columns);
    assert_eq!(history(&server, ANN, "?limit=1").json()["searches"], json!([rows[0]]));
    for limit in ["0", "1001", "x"] {
        refused(&history(&server, ANN, &format!("?limit={limit}")), 400, "INVALID_ARGUMENT");
    }
    assert_eq!(history(&server, CAROL, "").json(), json!({"searches": []}));
    let grouped = |token: &str, query: &str| {
        let target = format!("/api/v1/projects/handbook/searches{query}");
        ask(&server.address, "GET", &target, &[&bearer(token)])
    };
    refused(&grouped(BOB, "?group_by=cache_hit"), 403, "FORBIDDEN");
    assert_eq!(grouped(CAROL, "?group_by=day").json(), json!({"group_by": "day", "groups": []}));
    let groups = grouped(ANN, "?group_by=cache_hit").json();
    let latencies = |percent: usize| {
        let mut took: Vec<u64> = rows.iter().map(|row| row["latency_ms"].as_u64().unwrap()).collect();
        took.sort_unstable();
        took[(3 * percent).div_ceil(100) - 1]
    };
    let expect =
        json!({"value": false, "count": 3, "latency_ms": {"p50": latencies(50), "p95": latencies(95)}});
    assert_eq!(groups["groups"], json!([expect]));
    // No other interface shows what was searched for.
    for token in [ANN, BOB] {
        let get = |target: &str| ask(&server.address, "GET", target, &[&bearer(token)]);
        for target in ["/v1/schema", "/v1/streams", "/api/v1", "/api/v1/documents"] {
            let shown = get(target).text;
            assert!(!shown.contains("heliotrope") && !shown.contains("search_history"), "{target}: {shown}");
        }
        assert_eq!(get("/v1/search?q=heliotrope").json()["data"], json!([]));
        let found = call(&server, token, "search", &json!({"query": "heliotrope"}));
        assert_eq!(found["results"], json!([]), "{found}");
        let schema = call(&server, token, "schema", &json!({})).to_string();
        assert!(!schema.contains("search_history"), "{schema}");
    }
}

#[test]
fn feedback_is_of_the_caller_of_the_search() {
    let place = Place::new();
    let server = server(&place);
    let feedback = |token: &str, id: &str| {
        let target = format!("/api/v1/search/{id}/feedback");
        post(&server.address, &target, &[&bearer(token)], r#"{"feedback": "helpful"}"#)
    };
    let id = search(&server, BOB, "JWT").header("search-id").unwrap().to_owned();
    let unknown = "550e8400-e29b-41d4-a716-446655440000";
    // A search of another caller, also of an administrator, is like one that does not exist.
    let mut of_other = refused(&feedback(ANN, &id), 404, "NOT_FOUND");
    let mut of_none = refused(&feedback(ANN, unknown), 404, "NOT_FOUND");
    (of_other["request_id"], of_none["request_id"]) = (Value::Null, Value::Null);
    assert_eq!(of_other, of_none);
    assert_eq!(feedback(BOB, &id).status, 204);
    assert_eq!(history(&server, ANN, "").json()["searches"][0]["feedback"], "helpful");
    // The store does not have the name of the caller, and two searches of one caller are not alike.
    let second = search(&server, BOB, "JWT").header("search-id").unwrap().to_owned();
    // A search is written behind its answer, and before any feedback on it.
    assert_eq!(feedback(BOB, &second).status, 204);
    let database = rusqlite::Connection::open(place.path("shared.db")).unwrap();
    let mut callers = database.prepare("SELECT DISTINCT caller FROM search_callers").unwrap();
    let callers: Vec<String> = callers.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(callers.len() == 2 && callers.iter().all(|caller| caller.len() == 32), "{callers:?}");
    // A search of a release that did not remember callers takes feedback from each caller.
    database.execute("DELETE FROM search_callers", ()).unwrap();
    assert_eq!(feedback(ANN, &id).status, 204);
    database.execute("DROP TABLE search_callers", ()).unwrap();
    assert_eq!(feedback(ANN, &id).status, 204);
    let id = search(&server, BOB, "JWT").header("search-id").unwrap().to_owned();
    refused(&feedback(ANN, &id), 404, "NOT_FOUND");
}

#[test]
fn a_request_without_a_token_is_refused_as_described() {
    let place = Place::new();
    let server = server(&place);
    let description = ask(&server.address, "GET", "/openapi.json", &[&bearer(BOB)]).json();
    let paths = description["paths"].as_object().unwrap().iter().filter(|(path, _)| {
        ["search", "projects", "documents", "admin"]
            .iter()
            .any(|first| path.starts_with(&format!("/api/v1/{first}")))
    });
    let mut checked = 0;
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let target = path.replace("{id}", "handbook");
            let headers = ["content-length: 0", "content-type: application/json"];
            let answer = ask(&server.address, &method.to_uppercase(), &target, &headers);
            let error = refused(&answer, 401, "UNAUTHORIZED");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{answer:?}");
            let schema = &operation["responses"]["401"]["content"]["application/json"]["schema"];
            let validator = jsonschema::validator_for(schema).unwrap();
            assert!(schema.is_object() && validator.is_valid(&error), "{method} {path}: {error} {schema}");
            checked += 1;
        }
    }
    assert_eq!(checked, 9);
}

#[test]
fn without_authentication_no_caller_is_an_administrator() {
    let site = Site::new();
    let address = &site.server.address;
    site.found(&json!({"query": "JWT", "project_id": "handbook"}));
    refused(&ask(address, "POST", "/api/v1/admin/cache/clear", &[]), 403, "FORBIDDEN");
    refused(&ask(address, "GET", "/api/v1/projects/handbook/history", &[]), 403, "FORBIDDEN");
    let again = site.found(&json!({"query": "JWT", "project_id": "handbook"}));
    assert_eq!(again["cache_hit"], true);
}

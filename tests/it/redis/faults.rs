//! Faults of a shared Redis: errors are named, waits are bounded, no answer is wrong, and everything resumes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::servers::{DelayProxy, OwnRedis, Replicas, documented_rules, ops_address, read};
use crate::support::hosted::{ANN, call};
use crate::support::{HttpServer, get};

const FIRST: &str = "/api/v1/letters?limit=10";

/// Returns a page of a tool that should have a cursor.
fn page(server: &HttpServer) -> Value {
    call(server, ANN, "query_records", &json!({"stream": "letters", "limit": 10}))
}

fn continued(server: &HttpServer, cursor: &str) -> Value {
    call(server, ANN, "query_records", &json!({"stream": "letters", "limit": 10, "cursor": cursor}))
}

/// Asserts that pages come without a cursor and with a warning, and that cursors are refused with a typed error.
#[track_caller]
fn assert_without_state(server: &HttpServer, cursor: Option<&str>, kind: &str) {
    let started = Instant::now();
    let page = page(server);
    assert_eq!(page["records"].as_array().map(Vec::len), Some(10), "{page}");
    assert!(page.get("next_cursor").is_none_or(Value::is_null), "{page}");
    let warning = format!("the cursor store is {kind}");
    assert!(page["warnings"].to_string().contains(&warning), "{page}");
    let refused = read(server, ANN, FIRST);
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("STATE_UNAVAILABLE")), "{refused:?}");
    let listed = read(server, ANN, "/v1/streams/letters/records?limit=10");
    assert_eq!(listed.status, 200, "{listed:?}");
    if let Some(cursor) = cursor {
        let refused = continued(server, cursor);
        assert_eq!(refused["error"]["code"], "state_unavailable", "{refused}");
    }
    // Each wait is at most a second; a loaded machine takes longer.
    assert!(started.elapsed() < Duration::from_secs(30), "the calls took {:?}", started.elapsed());
}

/// Waits until pages have cursors again, and follows one.
#[track_caller]
fn assert_resumes(server: &HttpServer) -> String {
    server.wait_until("pages have cursors again", || page(server)["next_cursor"].is_string());
    let cursor = page(server)["next_cursor"].as_str().unwrap().to_owned();
    let next = continued(server, &cursor);
    assert_eq!(next["records"].as_array().map(Vec::len), Some(10), "{next}");
    assert_eq!(read(server, ANN, FIRST).status, 200);
    cursor
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn server_starts_without_redis_and_resumes_with_it() {
    let mut redis = OwnRedis::stopped();
    let replicas = Replicas::new(&redis.url(), "");
    let server = replicas.start("one");
    assert_without_state(&server, None, "unreachable");
    let check = replicas.doctor();
    assert!(
        check["ok"] == false && check["found"].as_str().unwrap().contains("cannot be reached"),
        "{check}"
    );
    redis.restart();
    let cursor = assert_resumes(&server);
    let check = replicas.doctor();
    assert!(check["ok"] == true && check["found"].as_str().unwrap().starts_with("Redis "), "{check}");

    let page = read(&server, ANN, FIRST).json();
    let target = format!("{FIRST}&cursor={}", page["nextCursor"].as_str().unwrap());
    redis.kill();
    assert_without_state(&server, Some(&cursor), "unreachable");
    assert_eq!(read(&server, ANN, &target).status, 503);
    // Restarted without its data: the cursor has expired, and new ones work.
    redis.restart();
    assert_resumes(&server);
    let refused = continued(&server, &cursor);
    assert_eq!(refused["error"]["code"], "invalid_cursor", "{refused}");
    let log = server.end();
    assert!(log.contains("shared state is available again"), "{log}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn health_names_a_cache_that_is_disconnected_until_it_is_back() {
    let mut redis = OwnRedis::stopped();
    let replicas = Replicas::new(&redis.url(), "ops_listen = \"127.0.0.1:0\"\n");
    let server = replicas.start("one");
    let address = ops_address(&server);
    let described = read(&server, ANN, "/openapi.json").json();
    let described = described.pointer("/components/schemas/Health").unwrap().to_string();
    assert!(described.contains("disconnected"), "{described}");
    for _ in 0..2 {
        let answer = get(&address, "/health");
        let health = answer.json();
        let [status, cache, database, kind] =
            ["status", "cache", "database", "cache_kind"].map(|key| &health[key]);
        assert_eq!((answer.status, status, cache), (200, &json!("degraded"), &json!("disconnected")));
        assert_eq!((database, kind), (&json!("connected"), &json!("memory and redis")), "{health}");
        assert_eq!(health["shared_state"]["status"], "unreachable", "{health}");
        redis.restart();
        server
            .wait_until("the cache is connected", || get(&address, "/health").json()["cache"] == "connected");
        assert_eq!(get(&address, "/health").json()["status"], "healthy");
        redis.kill();
    }
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn slow_redis_delays_calls_within_bounds() {
    let redis = OwnRedis::start(&[]);
    let proxy = DelayProxy::start(redis.port);
    let replicas = Replicas::new(&format!("redis://127.0.0.1:{}/0", proxy.port), "");
    let server = replicas.start("one");
    let cursor = assert_resumes(&server);
    proxy.delay(Duration::from_secs(20));
    assert_without_state(&server, Some(&cursor), "too slow");
    proxy.delay(Duration::ZERO);
    assert_resumes(&server);
    let next = continued(&server, &cursor);
    assert_eq!(next["records"].as_array().map(Vec::len), Some(10), "{next}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn full_redis_gives_pages_without_cursors() {
    let redis = OwnRedis::start(&["--maxmemory-policy", "noeviction"]);
    let replicas = Replicas::new(&redis.url(), "");
    let server = replicas.start("one");
    let cursor = assert_resumes(&server);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    // Cursors that were issued before are still read.
    assert_without_state(&server, None, "full");
    let next = continued(&server, &cursor);
    assert_eq!(next["records"].as_array().map(Vec::len), Some(10), "{next}");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_resumes(&server);
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn rejected_passwords_are_named_and_not_shown() {
    let redis = OwnRedis::start(&["--requirepass", "r3dis-5ecret"]);
    let place = tempfile::tempdir().unwrap();
    let (wrong, right) = (place.path().join("wrong"), place.path().join("right"));
    std::fs::write(&wrong, "hunter2\n").unwrap();
    std::fs::write(&right, "r3dis-5ecret\n").unwrap();
    for parameter in ["", &format!("?password=file:{}", wrong.display())] {
        let replicas = Replicas::new(&format!("{}{parameter}", redis.url()), "");
        let check = replicas.doctor();
        assert!(check["found"].as_str().unwrap().contains("rejects the password"), "{check}");
        let server = replicas.start("one");
        assert_without_state(&server, None, "closed to this server");
        let log = server.end();
        assert!(!log.contains("hunter2") && log.contains("rejects the password"), "{log}");
    }
    let replicas = Replicas::new(&format!("{}?password=file:{}", redis.url(), right.display()), "");
    assert_eq!(replicas.doctor()["ok"], true);
    assert_resumes(&replicas.start("one"));
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn documented_acl_permits_everything_and_no_less_is_enough() {
    let redis = OwnRedis::start(&[]);
    let rules = documented_rules();
    let set = |rules: &[String]| redis.set_rules(rules);
    let place = tempfile::tempdir().unwrap();
    let url = redis.url_with_rules(place.path());
    let replicas = Replicas::new(&url, "rate_limit = { requests = 1000, per = \"1h\" }\n");
    let server = replicas.start("one");
    set(&rules);
    let check = replicas.doctor();
    assert!(check["ok"] == true && !check["found"].as_str().unwrap().contains("unknown"), "{check}");
    assert_resumes(&server);
    let streams = read(&server, ANN, "/v1/streams");
    assert!(streams.header("x-ratelimit-remaining").is_some(), "{streams:?}");
    let record = call(&server, ANN, "fetch", &json!({"id": "cin_ann/letters:ann01"}));
    assert!(record["url"].as_str().unwrap().contains("?link="), "{record}");
    let log = server.log();
    assert!(!log.contains("does not permit"), "{log}");
    let without_eval: Vec<String> = rules.iter().filter(|rule| *rule != "+eval").cloned().collect();
    set(&without_eval);
    assert_without_state(&server, None, "closed to this server");
}

//! A Redis with TLS: the certificate must be of the named authority and for the host.

use serde_json::json;

use super::servers::{Replicas, variable};
use crate::support::hosted::{ANN, call};

/// Returns the URL of the Redis with TLS, with keys of one test alone.
fn encrypted_url(parameters: &str) -> String {
    let server = variable("FETCHWELL_TEST_REDIS_TLS");
    format!("{server}?prefix=tls-{}{parameters}", std::process::id())
}

fn with_authority() -> String {
    encrypted_url(&format!("&ca={}", variable("FETCHWELL_TEST_REDIS_CA")))
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn servers_share_an_encrypted_redis() {
    let replicas = Replicas::new(&with_authority(), "");
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let first = json!({"stream": "letters", "limit": 10});
    let page = call(&one, ANN, "query_records", &first);
    let mut next = first;
    next["cursor"] = page["next_cursor"].clone();
    let page = call(&other, ANN, "query_records", &next);
    assert_eq!(page["records"].as_array().map(Vec::len), Some(10), "{page}");
    let check = replicas.doctor();
    let found = check["found"].as_str().unwrap();
    assert!(check["ok"] == true && found.ends_with(", encrypted"), "{check}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn certificate_that_is_not_trusted_is_refused() {
    let ca = format!("&ca={}", variable("FETCHWELL_TEST_REDIS_CA"));
    let plain = variable("FETCHWELL_TEST_REDIS").replace("redis://", "rediss://");
    for (url, problem) in [
        // Of an authority that is not known.
        (encrypted_url(""), "cannot be encrypted (invalid peer certificate"),
        // For another host.
        (
            encrypted_url(&ca).replace("localhost", "127.0.0.1"),
            "cannot be encrypted (invalid peer certificate",
        ),
        // No TLS at all.
        (format!("{plain}?ca={}", variable("FETCHWELL_TEST_REDIS_CA")), "cannot be encrypted"),
    ] {
        let replicas = Replicas::new(&url, "");
        let check = replicas.doctor();
        assert!(check["ok"] == false && check["found"].as_str().unwrap().contains(problem), "{url}: {check}");
    }
    // Without encryption, a server that wants it is not used.
    let replicas = Replicas::new(&encrypted_url("").replace("rediss://", "redis://"), "");
    assert_eq!(replicas.doctor()["ok"], false);
    let server = replicas.start("one");
    let page = call(&server, ANN, "query_records", &json!({"stream": "letters", "limit": 10}));
    assert!(page.get("next_cursor").is_none() && page["warnings"].is_array(), "{page}");
}

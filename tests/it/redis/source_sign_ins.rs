//! MCP servers that callers sign in to, of servers that share a Redis.

use std::time::Duration;

use serde_json::json;

use super::servers::{OwnRedis, Replicas, contents, shared_url};
use crate::hosted::source_sign_ins::browser::Browser;
use crate::hosted::source_sign_ins::vendor::{NOTES, Vendor};
use crate::support::HttpServer;
use crate::support::hosted::{ANN, BOB, HEAD, Place, STORES, call, token};

const HOUR: Duration = Duration::from_secs(3600);

fn replicas(vendor: &Vendor, url: &str) -> Replicas {
    let both = |name: &str, secret: &str| {
        token(name, secret).replace(&format!("[\"{name}\"]"), &format!("[\"{name}\", \"wiki\"]"))
    };
    let [ann, bob] = [both("ann", ANN), both("bob", BOB)];
    let text = format!("state = \"{url}\"\n{HEAD}{ann}{bob}{STORES}{}", vendor.source("wiki"));
    Replicas::configured(Place::new(), &text)
}

/// Returns the titles of the notes that a search of the source finds, or its error code.
fn titles(server: &HttpServer, token: &str, query: &str) -> Result<Vec<String>, String> {
    let found = call(server, token, "search", &json!({"query": query, "connection_id": "wiki"}));
    let Some(hits) = found["results"].as_array().filter(|hits| !hits.is_empty()) else {
        let error = found["error"]["code"].as_str().or(found["unavailable"][0]["code"].as_str());
        return Err(error.unwrap_or_else(|| panic!("{found}")).to_owned());
    };
    Ok(hits.iter().map(|hit| hit["title"].as_str().unwrap().to_owned()).collect())
}

#[track_caller]
fn check_notes_of(server: &HttpServer, token: &str, person: &str) {
    let titles = titles(server, token, "note").unwrap();
    assert_eq!(titles.len(), NOTES);
    assert!(titles.iter().all(|title| title.ends_with(&format!(" of {person}"))), "{person}: {titles:?}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn a_sign_in_that_one_server_begins_is_finished_and_used_by_another() {
    let (vendor, url) = (Vendor::start(HOUR), shared_url());
    let replicas = replicas(&vendor, &url);
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let mut ann = Browser::signed_in(&one, ANN);
    let location = ann.begin(&one);
    let (back, before) = (vendor.approve(&location, "annie"), ann.clone());
    let returned = ann.get(&other, &back);
    assert_eq!((returned.status, returned.header("location")), (303, Some("/sources")), "{returned:?}");
    let again = before.clone().get(&one, &back);
    assert!(again.status == 400 && again.text.contains("used already"), "{again:?}");
    for server in [&one, &other] {
        check_notes_of(server, ANN, "annie");
        assert_eq!(titles(server, BOB, "note"), Err("reauthorize".to_owned()));
    }
    // Another person on one server replaces what the other keeps, and so does a sign-out.
    ann.sign_in(&one, &vendor, "anita");
    for server in [&one, &other] {
        check_notes_of(server, ANN, "anita");
    }
    assert_eq!(vendor.requests("POST /register"), 1, "all servers use one client");
    let kept = contents(&url);
    assert!(kept.contains(":mcp-tokens:") && kept.contains(":mcp-clients:"), "{kept}");
    assert!(!kept.contains("sekret") && !kept.contains("anita"), "{kept}");
    assert_eq!(ann.send(&other, "/sources/sign-out", &[("source", "wiki")]).status, 303);
    for server in [&one, &other] {
        assert_eq!(titles(server, ANN, "note"), Err("reauthorize".to_owned()));
    }
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn servers_refresh_a_token_one_at_a_time() {
    // A refresh token can be used once: two refreshes at a time would end the sign-in.
    let vendor = Vendor::start(Duration::from_secs(1));
    let replicas = replicas(&vendor, &shared_url());
    let servers = [replicas.start("one"), replicas.start("other")];
    Browser::signed_in(&servers[0], ANN).sign_in(&servers[0], &vendor, "annie");
    std::thread::scope(|threads| {
        for server in servers.iter().cycle().take(6) {
            threads.spawn(move || {
                for round in 0..40 {
                    assert_eq!(titles(server, ANN, &format!("note {round}")).unwrap().len(), NOTES);
                    std::thread::park_timeout(Duration::from_millis(50));
                }
            });
        }
    });
    assert!(vendor.refreshes() > 0);
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn without_redis_the_source_is_unavailable_and_the_sign_in_remains() {
    let vendor = Vendor::start(HOUR);
    let mut redis = OwnRedis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let replicas = replicas(&vendor, &redis.url());
    let server = replicas.start("one");
    Browser::signed_in(&server, ANN).sign_in(&server, &vendor, "annie");
    check_notes_of(&server, ANN, "annie");
    redis.kill();
    assert_eq!(titles(&server, ANN, "note"), Err("source_unavailable".to_owned()));
    redis.restart();
    server.wait_until("the sign-in is used again", || titles(&server, ANN, "note").is_ok());
}

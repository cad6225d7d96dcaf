//! Cursors of servers that share a Redis.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::servers::{Replicas, contents, lifetimes, read, shared_url};
use crate::support::HttpServer;
use crate::support::hosted::{ANN, ANNS, BOB, call};

/// Returns the ids of a page's records or hits.
fn ids(page: &Value) -> Vec<String> {
    let rows = page.get("results").or(page.get("records")).unwrap_or_else(|| panic!("no page: {page}"));
    rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Walks a list, each page on the next of several servers.
pub(super) fn walk(servers: &[&HttpServer], tool: &str, first: &Value) -> Vec<String> {
    let mut page = call(servers[0], ANN, tool, first);
    let mut all = ids(&page);
    let mut turns = servers.iter().cycle().skip(1);
    while let Some(cursor) = page["next_cursor"].as_str() {
        let mut arguments = first.clone();
        arguments["cursor"] = cursor.into();
        page = call(turns.next().unwrap(), ANN, tool, &arguments);
        all.extend(ids(&page));
    }
    all
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn cursor_of_one_server_is_continued_by_the_other() {
    let replicas = Replicas::new(&shared_url(), "");
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    for (tool, first) in [
        ("query_records", json!({"stream": "letters", "limit": 7})),
        ("search", json!({"query": "letter", "limit": 7})),
    ] {
        let all = walk(&[&one, &other], tool, &first);
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (ANNS, ANNS), "{tool}: {all:?}");
    }
    // The paths of a connector's API, and a replica that is killed and replaced between two pages.
    let page = read(&one, ANN, "/api/v1/letters?limit=20").json();
    let cursor = page["nextCursor"].as_str().unwrap_or_else(|| panic!("no cursor: {page}"));
    drop(one);
    let again = replicas.start("third");
    let target = format!("/api/v1/letters?limit=20&cursor={cursor}");
    let (next, same) = (read(&again, ANN, &target), read(&other, ANN, &target));
    assert_eq!((next.status, same.status), (200, 200), "{next:?} {same:?}");
    assert_eq!(next.json()["items"], same.json()["items"]);
    assert_eq!(read(&other, BOB, &target).status, 400, "a cursor of another grant");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn redis_has_no_query_record_or_token_in_clear() {
    let url = shared_url();
    let replicas = Replicas::new(&url, "");
    let server = replicas.start("one");
    let page = call(&server, ANN, "search", &json!({"query": "letter secret", "limit": 5}));
    let cursor = page["next_cursor"].as_str().unwrap_or_else(|| panic!("no cursor: {page}"));
    call(&server, ANN, "query_records", &json!({"stream": "letters", "limit": 5}));
    let kept = contents(&url);
    assert!(kept.contains(":position:"), "{kept}");
    for clear in ["letter", "secret", "cin_ann", "only for", ANN, cursor, "query"] {
        assert!(!kept.contains(clear), "{clear} is in {kept}");
    }
    let lifetimes = lifetimes(&url);
    assert!(lifetimes.len() >= 2, "{lifetimes:?}");
    assert!(lifetimes.iter().all(|(_, left)| (1..=172_800_000).contains(left)), "{lifetimes:?}");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn servers_with_different_clocks_share_cursors() {
    let replicas = Replicas::new(&shared_url(), "");
    let (ahead, behind) =
        (replicas.start_with_clock("ahead", "+2h"), replicas.start_with_clock("behind", "-2h"));
    let first = json!({"stream": "letters", "limit": 9});
    for servers in [[&ahead, &behind], [&behind, &ahead]] {
        assert_eq!(walk(&servers, "query_records", &first).len(), ANNS);
    }
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn cursor_expires_on_every_server() {
    let replicas = Replicas::new(&shared_url(), "cursor_ttl = \"1s\"\n");
    let (one, other) = (replicas.start("one"), replicas.start_with_clock("other", "-1h"));
    let first = json!({"stream": "letters", "limit": 9});
    let cursor = call(&one, ANN, "query_records", &first)["next_cursor"].as_str().unwrap().to_owned();
    let arguments = json!({"stream": "letters", "limit": 9, "cursor": cursor});
    other.wait_until("the cursor expires", || {
        call(&other, ANN, "query_records", &arguments)["error"]["reason"] == "expired"
    });
    assert_eq!(call(&one, ANN, "query_records", &arguments)["error"]["reason"], "expired");
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn server_with_other_keys_refuses_the_cursor() {
    let url = shared_url();
    let (replicas, stranger) = (Replicas::new(&url, ""), Replicas::new(&url, ""));
    let (one, other) = (replicas.start("one"), stranger.start("one"));
    let first = json!({"stream": "letters", "limit": 9});
    let cursor = call(&one, ANN, "query_records", &first)["next_cursor"].as_str().unwrap().to_owned();
    let refused =
        call(&other, ANN, "query_records", &json!({"stream": "letters", "limit": 9, "cursor": cursor}));
    assert_eq!(refused["error"]["code"], "invalid_cursor", "{refused}");
}

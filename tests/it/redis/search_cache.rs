//! The cache of document searches in Redis: its keys, its removal by project, and a Redis that is empty, full or holds values of
//! another program.

use serde_json::{Value, json};

use super::servers::{OwnRedis, Replicas, documented_rules, ops_address};
use crate::support::handbook::import;
use crate::support::hosted::{ANN, BOB, CAROL, HEAD, Place, administered, bearer, call};
use crate::support::{Answer, HttpServer, ask, fetchwell, get, post, stdout, text};

/// Returns replicas on which Ann, an administrator, and Bob read the projects `handbook` and `guide` of one store, and Carol, an
/// administrator, the project `handbook` of another one.
fn replicas(url: &str) -> Replicas {
    let place = Place::new();
    let (docs, shared) = (place.path("docs"), place.path("shared.db"));
    import(&docs, &shared);
    import(&docs, &place.path("other.db"));
    stdout(&fetchwell(["project", "create", "guide", "--store", text(&shared)]));
    stdout(&fetchwell(["import", "docs", text(&docs), "--project", "guide", "--store", text(&shared)]));
    let head = format!("state = \"{url}\"\nops_listen = \"127.0.0.1:0\"\n{HEAD}");
    Replicas::configured(place, &format!("{head}{}", administered()))
}

fn search(server: &HttpServer, caller: &str, project: &str) -> Value {
    let body = json!({"query": "JWT tokens", "project_id": project}).to_string();
    let answer = post(&server.address, "/api/v1/search", &[&bearer(caller)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn is_hit(server: &HttpServer, caller: &str, project: &str) -> bool {
    search(server, caller, project)["cache_hit"].as_bool().unwrap()
}

/// Returns true for `fetchwell:fraim:{project}:v{version}:search:{hash}`.
fn is_of_contract(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    let ["fetchwell", "fraim", "handbook" | "guide", version, "search", hash] = parts[..] else {
        return false;
    };
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash && version.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok())
}

fn clear(server: &HttpServer, caller: &str, query: &str) -> Answer {
    ask(&server.address, "POST", &format!("/api/v1/admin/cache/clear{query}"), &[&bearer(caller)])
}

/// Returns the sorted keys of the database that begin with this text.
fn keys(redis: &OwnRedis, start: &str) -> Vec<String> {
    let reply = redis.command(&["KEYS", "*"]);
    let mut keys: Vec<String> =
        reply.lines().filter(|key| key.starts_with(start)).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Returns the number of calls of a command since the last reset.
fn calls(redis: &OwnRedis, command: &str) -> usize {
    let stats = redis.command(&["INFO", "commandstats"]);
    let calls = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn clearing_one_project_leaves_all_other_keys_on_all_servers() {
    let redis = OwnRedis::start(&[]);
    redis.set_rules(&documented_rules());
    let place = tempfile::tempdir().unwrap();
    let replicas = replicas(&redis.url_with_rules(place.path()));
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let all = [(ANN, "handbook"), (BOB, "handbook"), (ANN, "guide"), (BOB, "guide"), (CAROL, "handbook")];
    let fill = || {
        for (caller, project) in all {
            search(&one, caller, project);
            assert!(is_hit(&other, caller, project));
        }
    };
    fill();
    // Keys end in the key that the contract prescribes, which the events of a search show.
    let stored = keys(&redis, "fetchwell:fraim:");
    assert!(stored.len() == 5 && stored.iter().all(|key| is_of_contract(key)), "{stored:?}");
    let stream = "/api/v1/search/stream?query=JWT+tokens&project_id=guide";
    let events = ask(&other.address, "GET", stream, &[&bearer(BOB)]).text;
    let shown = |key: &&String| events.contains(&format!("\"{}\"", key.strip_prefix("fetchwell:").unwrap()));
    assert_eq!(stored.iter().filter(shown).count(), 1, "{events} {stored:?}");

    // Keys that look like those of the project, and many others.
    let foreign = [
        "fetchwell:fraim:handbook:v9:search:0123456789abcdef",
        "fetchwell:fraim:handbook:v9:search:list",
        "fetchwell:fraim:handbook2:v2:search:0123456789abcdef",
        "other:fraim:handbook:v2:search:0123456789abcdef",
        "fetchwell:fraim:*:v2:search:0123456789abcdef",
    ];
    for key in foreign {
        redis.command(&if key.ends_with("list") { ["RPUSH", key, "x"] } else { ["SET", key, "x"] });
    }
    redis.command(&["EVAL", "for i = 1, 20000 do redis.call('SET', 'noise:' .. i, 'x') end", "0"]);
    redis.command(&["CONFIG", "RESETSTAT"]);
    let cleared = clear(&one, ANN, "?project_id=handbook");
    assert_eq!((cleared.status, cleared.json()), (200, json!({"cleared": 2})), "answers of Ann and Bob");
    // Redis is never blocked: each command reads a bounded number of keys.
    assert!(calls(&redis, "scan") >= 20, "{}", redis.command(&["INFO", "commandstats"]));
    assert_eq!(calls(&redis, "unlink"), 2);
    for blocking in ["keys", "flushdb", "flushall", "del"] {
        assert_eq!(calls(&redis, blocking), 0, "{blocking}");
    }
    let left = keys(&redis, "fetchwell:fraim:");
    let own = left.iter().filter(|key| stored.contains(key)).count();
    assert_eq!(own, 3, "the guide of Ann and Bob, and the handbook of Carol: {left:?}");
    let everything = keys(&redis, "");
    assert!(foreign.iter().all(|key| everything.iter().any(|other| other == key)), "{left:?}");
    assert_eq!(keys(&redis, "noise:").len(), 20_000);
    for server in [&one, &other] {
        for (caller, project) in &all[2..] {
            assert!(is_hit(server, caller, project), "{project}");
        }
    }
    for caller in [ANN, BOB] {
        assert!(!is_hit(&other, caller, "handbook"), "the entry in the memory of the other server is ended");
        assert!(is_hit(&one, caller, "handbook"), "the new entry of the other server");
    }
    // Without a project, those of the caller are cleared, and an asterisk is no project.
    assert_eq!(clear(&one, ANN, "?project_id=*").status, 404);
    let cleared = clear(&other, ANN, "");
    assert_eq!((cleared.status, cleared.json()), (200, json!({"cleared": 4})));
    assert!(is_hit(&one, CAROL, "handbook") && is_hit(&other, CAROL, "handbook"));
    assert!(!is_hit(&one, ANN, "guide") && !is_hit(&one, BOB, "handbook"));

    // A user of Redis who may not delete is named.
    let rules: Vec<String> = documented_rules().into_iter().filter(|rule| rule != "+unlink").collect();
    redis.set_rules(&rules);
    let refused = clear(&one, ANN, "?project_id=guide");
    let error = refused.json();
    assert_eq!((refused.status, &error["code"]), (503, &json!("STATE_UNAVAILABLE")), "{error}");
    assert!(error["detail"].as_str().unwrap().contains("closed to this server"), "{error}");
    assert!(one.end().contains("does not permit its user the commands or keys of fetchwell"));
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn search_goes_on_with_a_redis_that_is_empty_or_full() {
    let mut redis = OwnRedis::start(&["--maxmemory-policy", "noeviction"]);
    let replicas = replicas(&redis.url());
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let first = search(&one, ANN, "handbook");
    assert!(is_hit(&other, ANN, "handbook"));
    // A Redis that lost its values may have lost a removal, so that no earlier answer counts.
    redis.restart();
    for server in [&one, &other] {
        server.wait_until("Redis is used again", || is_hit(server, ANN, "handbook"));
        assert_eq!(search(server, ANN, "handbook")["results"], first["results"]);
    }
    assert_eq!(keys(&redis, "fetchwell:fraim:handbook:").len(), 1);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    for caller in [ANN, BOB] {
        assert_eq!(search(&other, caller, "guide")["cache_hit"], false);
    }
    let health = get(&ops_address(&other), "/health").json();
    assert!(health["shared_state"]["failures"]["full"].as_u64() > Some(0), "{health}");
    let refused = clear(&other, ANN, "");
    let error = refused.json();
    assert_eq!((refused.status, &error["code"]), (503, &json!("STATE_UNAVAILABLE")), "{error}");
    assert!(error["detail"].as_str().unwrap().contains("is full"), "{error}");
    assert!(other.log().contains("has reached its memory limit; raise its `maxmemory`"), "{}", other.log());
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(clear(&other, ANN, "").status, 200);
    for server in [&one, &other] {
        assert_eq!(search(server, ANN, "handbook")["results"], first["results"]);
    }
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn values_of_another_program_are_no_values() {
    let redis = OwnRedis::start(&[]);
    let replicas = replicas(&redis.url());
    let (one, other) = (replicas.start("one"), replicas.start("other"));
    let query = json!({"query": "queue", "limit": 5});
    let first = search(&one, ANN, "handbook");
    for foreign in [
        "redis.call('RPUSH', key, 'x')",
        "redis.call('SET', key, 'garbage')",
        "redis.call('SET', key, '\\255\\254\\0')",
        "redis.call('SET', key, '9e99')",
        "redis.call('SETRANGE', key, 20000000, 'x')",
        "redis.call('ZADD', key, 1, 'garbage', 2, '99999999999999999999 x', 3, '5 noise')",
    ] {
        search(&one, ANN, "handbook");
        let page = call(&one, ANN, "search", &query);
        let cursor = page["next_cursor"].as_str().unwrap_or_else(|| panic!("{page}")).to_owned();
        let written = format!(
            "for _, key in ipairs(redis.call('KEYS', 'fetchwell:*')) do redis.call('DEL', key) {foreign} end return 1"
        );
        assert_eq!(redis.command(&["EVAL", &written, "0"]), ":1\n");
        redis.command(&["SET", "noise", "x"]);
        // A position that is no longer there is named, and everything else works at once.
        let refused = call(&other, ANN, "search", &json!({"query": "queue", "limit": 5, "cursor": cursor}));
        assert_eq!(refused["error"]["code"], "invalid_cursor", "{foreign}: {refused}");
        let found = search(&other, ANN, "handbook");
        assert_eq!((&found["cache_hit"], &found["results"]), (&json!(false), &first["results"]), "{foreign}");
        assert!(is_hit(&other, ANN, "handbook") && is_hit(&one, ANN, "handbook"), "{foreign}");
        let page = call(&other, ANN, "search", &query);
        let cursor = page["next_cursor"].as_str().unwrap_or_else(|| panic!("{foreign}: {page}"));
        let next = call(&one, ANN, "search", &json!({"query": "queue", "limit": 5, "cursor": cursor}));
        assert!(next["results"].as_array().is_some_and(|hits| !hits.is_empty()), "{foreign}: {next}");
        assert_eq!(clear(&one, ANN, "").status, 200, "{foreign}");
        assert!(!is_hit(&other, ANN, "handbook"), "{foreign}");
        assert_eq!(keys(&redis, "noise"), ["noise"], "{foreign}");
    }
    let health = get(&ops_address(&one), "/health").json();
    assert_eq!((&health["status"], &health["shared_state"]["failures"]), (&json!("healthy"), &json!({})));
    for server in [one, other] {
        let log = server.end();
        assert!(!log.contains("rejects a command"), "{log}");
    }
}

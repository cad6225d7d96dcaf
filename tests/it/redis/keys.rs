//! Servers with other keys that share a Redis: they are noticed and named.

use serde_json::{Value, json};

use super::servers::{Replicas, contents, ops_address, shared_url};
use crate::support::{HttpServer, binary, get, text};

/// Returns the check of the keys in a state directory.
fn doctor(replicas: &Replicas, state: &str) -> Value {
    let config = replicas.place.path("fetchwell.toml");
    let state = replicas.place.path(state);
    let arguments = ["doctor", "--json", "--config", text(&config), "--state-dir", text(&state)];
    let output = binary().args(arguments).output().unwrap();
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    checks.as_array().unwrap().iter().find(|check| check["name"] == "keys").unwrap().clone()
}

#[test]
#[ignore = "needs a Redis server: tests/redis/run"]
fn server_with_other_keys_is_named() {
    let url = shared_url();
    let replicas = Replicas::new(&url, "ops_listen = \"127.0.0.1:0\"\n");
    let first = replicas.start("one");
    first.wait_until("its keys are registered", || contents(&url).contains(":keys:cursor-keys.json"));
    let other = replicas.start("other");
    assert_eq!(doctor(&replicas, "other")["ok"], true);
    assert_eq!(doctor(&replicas, "empty")["ok"], true, "a machine without keys");

    // A server that starts with keys of its own says so, and so does `doctor` on its machine.
    let (config, state) = (replicas.place.path("fetchwell.toml"), replicas.place.path("stranger"));
    let stranger = HttpServer::start(["--config", text(&config), "--state-dir", text(&state)]);
    stranger.wait_until("the difference is logged", || stranger.log().contains("cursor-keys.json"));
    let check = doctor(&replicas, "stranger");
    let found = check["found"].as_str().unwrap();
    let has_remedy =
        found.contains("copy cursor-keys.json and change-key.json from one server to all others");
    assert!(check["ok"] == false && has_remedy, "{check}");
    // So does `/health` of that server, for probes and dashboards.
    let health: Value = get(&ops_address(&stranger), "/health").json();
    let mismatch = &health["shared_state"]["key_mismatch"];
    assert_eq!((&mismatch["file"], &health["status"]), (&json!("cursor-keys.json"), &json!("degraded")));
    assert_eq!(mismatch["problem"], found, "{health}");
    let keys: Value =
        serde_json::from_slice(&std::fs::read(state.join("cursor-keys.json")).unwrap()).unwrap();
    assert_eq!(mismatch["own_key"], keys["keys"][0]["id"], "{health}");
    assert_ne!(mismatch["other_key"], mismatch["own_key"], "{health}");
    assert!(!health.to_string().contains(keys["keys"][0]["secret"].as_str().unwrap()), "{health}");
    for server in [&first, &other] {
        assert!(!server.log().contains("cursor-keys.json"), "{}", server.log());
        let health: Value = get(&ops_address(server), "/health").json();
        assert_eq!(health["status"], "healthy", "{health}");
        assert!(health["shared_state"].get("key_mismatch").is_none(), "{health}");
    }
    // Redis has ids of keys, and no key.
    let keys = std::fs::read_to_string(replicas.place.path("one/cursor-keys.json")).unwrap();
    let keys: Value = serde_json::from_str(&keys).unwrap();
    let kept = contents(&url);
    assert!(kept.contains(keys["keys"][0]["id"].as_str().unwrap()), "{kept}");
    assert!(!kept.contains(keys["keys"][0]["secret"].as_str().unwrap()), "{kept}");
}

//! Logs, metrics and telemetry records of a server with callers: they name the caller, and nothing of the call's
//! content.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_http::Limits;
use serde_json::{Value, json};

use crate::support::{Answer, HttpServer, OwnServer, ask, demo_store, get, post, stderr, stdout, text};

/// A folder with a configuration of two callers, and their tokens.
struct HostedFolder {
    _store: tempfile::TempDir,
    folder: tempfile::TempDir,
    config: PathBuf,
    tokens: [String; 2],
    /// A token with `metrics = true` and without sources.
    watcher: String,
}

impl HostedFolder {
    fn new() -> Self {
        let (kept, store) = demo_store();
        let folder = tempfile::tempdir().unwrap();
        let [ann, bob, watcher] = ["ann", "bob", "watcher"].map(|name| {
            let made = stdout(&crate::support::fetchwell(["token", "new", "--name", name, "--json"]));
            let made: Value = serde_json::from_str(&made).unwrap();
            (made["token"].as_str().unwrap().to_owned(), made["configuration"].as_str().unwrap().to_owned())
        });
        let config = folder.path().join("fetchwell.toml");
        let source = format!("[[source]]\nname = \"notes\"\nstore = '{}'\n", text(&store));
        let may_watch = "sources = []\nmetrics = true\n";
        std::fs::write(&config, format!("{source}{}{}{}{may_watch}", ann.1, bob.1, watcher.1)).unwrap();
        Self { _store: kept, folder, config, tokens: [ann.0, bob.0], watcher: watcher.0 }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn serve(&self, more: [&str; 2]) -> HttpServer {
        let state = self.state();
        HttpServer::start(["--config", text(&self.config), "--state-dir", text(&state), more[0], more[1]])
    }
}

fn search(server: &HttpServer, token: &str, id: &str) -> Answer {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "invoice"}}});
    let headers = [format!("Authorization: Bearer {token}"), format!("Request-Id: {id}")];
    post(&server.address, "/mcp", &[&headers[0], &headers[1]], &call.to_string())
}

fn tail(state: &Path, filters: &[&str]) -> Vec<Value> {
    let mut command = crate::support::binary();
    command.args(["telemetry", "tail", "--json", "--state-dir", text(state)]).args(filters);
    let shown = stdout(&command.output().unwrap());
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[cfg(unix)]
#[test]
fn json_logs_name_the_caller_and_no_content() {
    let hosted = HostedFolder::new();
    let server = hosted.serve(["--log-format", "json"]);
    for (token, id) in [(0, "first-1"), (1, "second-1"), (0, "third-1")] {
        let answer = search(&server, &hosted.tokens[token], id).json();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let refused = ask(
        &server.address,
        "GET",
        "/v1/streams",
        &["Request-Id: unknown-1", "Authorization: Bearer fwt_no"],
    );
    assert_eq!(refused.status, 401);
    let log = server.stop();
    let lines = log.lines().skip_while(|line| !line.contains("fetchwell serves MCP at")).skip(1);
    let lines: Vec<Value> =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let of = |id: &str| lines.iter().find(|line| line["request_id"] == id).unwrap_or_else(|| panic!("{log}"));
    let call = of("first-1");
    let keys: HashSet<&str> = call.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["timestamp", "level", "target", "message", "endpoint", "request_id", "caller", "outcome"];
    assert_eq!(keys, expected.into_iter().chain(["response_bytes", "latency_us"]).collect());
    assert!(call["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{call}");
    assert_eq!((&call["level"], &call["message"]), (&json!("INFO"), &json!("call")));
    assert_eq!((&call["endpoint"], &call["outcome"]), (&json!("tool:search"), &json!("ok")));
    assert!(call["response_bytes"].is_u64() && call["latency_us"].is_u64(), "{call}");
    assert_eq!(call["caller"], of("third-1")["caller"]);
    assert_ne!(call["caller"], of("second-1")["caller"]);
    assert_eq!(of("unknown-1")["outcome"], "unauthorized");
    assert_eq!(of("unknown-1").get("caller"), None);
    for secret in ["invoice", "Invoice", "fwt_", &hosted.tokens[0], "ann", "bob"] {
        let after = lines.iter().map(Value::to_string).collect::<String>();
        assert!(!after.contains(secret), "{secret} in {after}");
    }

    let caller = call["caller"].as_str().unwrap().to_owned();
    let ids = |calls: Vec<Value>| -> Vec<String> {
        calls.iter().map(|call| call["request_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(tail(&hosted.state(), &["--caller", &caller])), ["first-1", "third-1"]);
    assert_eq!(tail(&hosted.state(), &["--outcome", "unauthorized"])[0]["caller"], Value::Null);
}

#[test]
fn the_format_of_the_log_is_one_of_two() {
    let refused = crate::support::fetchwell(["serve", "--log-format", "xml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("write text or json"), "{}", stderr(&refused));
    let refused =
        crate::support::binary().args(["budget"]).env("FETCHWELL_LOG_FORMAT", "xml").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("FETCHWELL_LOG_FORMAT: write text or json"), "{}", stderr(&refused));
}

#[test]
fn metrics_of_all_callers_are_refused_to_a_caller() {
    let hosted = HostedFolder::new();
    let server = hosted.serve(["--log", "info"]);
    let token = format!("Authorization: Bearer {}", hosted.tokens[0]);
    for path in ["/health", "/metrics"] {
        // A loopback address does not authenticate.
        assert_eq!(get(&server.address, path).status, 401);
        for more in ["accept: */*", "X-Forwarded-For: 203.0.113.7"] {
            let answer = ask(&server.address, "GET", path, &[&token, more]);
            assert_eq!(
                (answer.status, answer.json()["code"].as_str()),
                (403, Some("FORBIDDEN")),
                "{answer:?}"
            );
        }
    }
    assert_eq!(search(&server, &hosted.tokens[1], "b-1").status, 200);
    let watcher = format!("Authorization: Bearer {}", hosted.watcher);
    let metrics = ask(&server.address, "GET", "/metrics", &[&watcher]).text;
    assert!(metrics.contains("{endpoint=\"tool:search\",outcome=\"ok\"} 1"), "{metrics}");
    assert!(!metrics.contains("caller"), "{metrics}");
}

/// Runs in this process, because no tool of the binary panics.
#[test]
fn a_panic_of_a_tool_is_answered_and_counted() {
    let server = OwnServer::start(Limits::default(), None, Duration::from_secs(20));
    let call = |name: &str, arguments: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let answer = post(&server.address, "/mcp", &[], &call.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    for number in 1..=2 {
        let answer = call("fetch", json!({"id": "home/messages:m1"}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let error: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (&answer["result"]["isError"], &error["error"]["code"]),
            (&json!(true), &json!("internal_error"))
        );
        assert_eq!(call("schema", json!({}))["result"]["isError"], false);
        let metrics = get(&server.address, "/metrics").text;
        let counted = format!("{{endpoint=\"tool:fetch\",outcome=\"internal_error\"}} {number}\n");
        assert!(metrics.contains(&counted), "{metrics}");
    }
}

//! Clients of `/api/v1`, over the hostaway sample or the store of a test.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{Answer, HttpServer, ask, fetchwell, get, import_records, post, stdout, text};

/// Returns the store of the hostaway sample, imported once for all tests of a run. No test writes to it.
pub(crate) fn hostaway_store() -> &'static Path {
    static STORE: OnceLock<PathBuf> = OnceLock::new();
    STORE.get_or_init(|| {
        // A static is never dropped; under the target folder each run replaces the store of the run before.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostaway");
        let store = folder.join("store.db");
        let _ = std::fs::remove_dir_all(&folder);
        stdout(&fetchwell(["demo", "hostaway", "--store", text(&store)]));
        store
    })
}

/// A server of `/api/v1`, with the folder of its configuration.
pub(crate) struct Api {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: HttpServer,
}

impl Api {
    /// Starts a server of the sample without a configuration.
    pub(crate) fn hostaway() -> Self {
        Self::of(hostaway_store(), "")
    }

    /// Starts a server of the sample with these lines below `context_protection`.
    pub(crate) fn protected(settings: &str) -> Self {
        Self::of(hostaway_store(), settings)
    }

    /// Starts a server of a store with these lines below `context_protection`, or without a configuration if there are
    /// none.
    pub(crate) fn of(store: &Path, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let own = ["--store", text(store), "--state-dir", text(&state)];
        let server = if settings.is_empty() {
            HttpServer::start(own)
        } else {
            let config = folder.path().join("config.yaml");
            let lines: Vec<String> = settings.lines().map(|line| format!("  {line}\n")).collect();
            std::fs::write(&config, format!("context_protection:\n{}", lines.concat())).unwrap();
            HttpServer::start([own[0], own[1], own[2], own[3], "--config", text(&config)])
        };
        Self { folder, server }
    }

    /// Starts a server of a store with these records in one connection.
    pub(crate) fn records(records: &[(&str, &str, Value)], settings: &str) -> (tempfile::TempDir, Self) {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("own.db");
        import(&store, records);
        let api = Self::of(&store, settings);
        (folder, api)
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        get(&self.server.address, target)
    }

    /// Returns the body of a successful response.
    #[track_caller]
    pub(crate) fn ok(&self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
        answer.json()
    }

    /// Returns the body of an error, after a check of the rules for every error.
    #[track_caller]
    pub(crate) fn refused(&self, target: &str, status: u16, code: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text);
        error_of(&answer, code)
    }

    /// Returns the reason that a cursor is refused for.
    #[track_caller]
    pub(crate) fn cursor_fault(&self, target: &str) -> String {
        let body = self.refused(target, 400, "INVALID_CURSOR");
        assert_eq!((&body["error"], &body["param"]), (&json!("Invalid cursor"), &json!("cursor")));
        assert!(body["detail"].as_str().unwrap().contains("Re-query from the beginning"), "{body}");
        body["reason"].as_str().unwrap().to_owned()
    }

    /// Returns the payload of a tool over MCP, or its error.
    #[track_caller]
    pub(crate) fn tool(&self, name: &str, arguments: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let answer = post(&self.server.address, "/mcp", &[], &body.to_string()).json();
        let structured = &answer["result"]["structuredContent"];
        if answer["result"]["isError"] == true { structured["error"].clone() } else { structured.clone() }
    }

    /// Returns the telemetry records of the calls, in order.
    pub(crate) fn telemetry(&self) -> Vec<Value> {
        let state = self.folder.path().join("state");
        let shown =
            stdout(&fetchwell(["telemetry", "tail", "--json", "-n", "1000", "--state-dir", text(&state)]));
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the body of `/health`.
    pub(crate) fn health(&self) -> Value {
        self.get("/health").json()
    }

    /// Returns the response to a request with these header lines.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &[&str]) -> Answer {
        ask(&self.server.address, method, target, headers)
    }
}

/// Checks the body of an error, and returns it.
#[track_caller]
pub(crate) fn error_of(answer: &Answer, code: &str) -> Value {
    let body = answer.json();
    for key in ["error", "detail", "code", "request_id"] {
        assert!(body[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {body}");
    }
    assert_eq!(body["code"], code, "{body}");
    assert_eq!(code, code.to_uppercase());
    assert_eq!(body["request_id"], answer.header("request-id").unwrap());
    assert!(answer.text.len() < 2_048, "{} bytes: {body}", answer.text.len());
    assert!(answer.header("content-type").unwrap().starts_with("application/json"), "{answer:?}");
    body
}

/// Imports records into a connection of a store.
pub(crate) fn import(store: &Path, records: &[(&str, &str, Value)]) {
    let line = |(stream, key, data): &(&str, &str, Value)| {
        json!({"stream": stream, "key": key, "data": data}).to_string()
    };
    import_records(store, "cin_own", &records.iter().map(line).collect::<Vec<_>>().join("\n"));
}

/// Percent-encodes a text for a URL.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns a call as a preview names it, with its parameters in the query string.
#[track_caller]
pub(crate) fn call_of(details: &Value) -> String {
    let parameters = details["parameters"].as_object().unwrap().iter();
    let pairs: Vec<String> =
        parameters.map(|(name, value)| format!("{name}={}", encoded(value.as_str().unwrap()))).collect();
    format!("{}?{}", details["endpoint"].as_str().unwrap(), pairs.join("&"))
}

//! A client of several record servers through one process, with measurements of the process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CREDENTIAL, RecordServer, StdioServer, connect, memory_kib, text};

/// Writes a configuration of these sources and their credentials into a folder.
pub(crate) fn configured(
    sources: &[(&str, &RecordServer)],
    deadline: Duration,
) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::new();
    for (name, server) in sources {
        connect(folder.path(), server.url(), CREDENTIAL);
        writeln!(
            config,
            "[[source]]\nname = \"{name}\"\nurl = \"{}\"\ncache_root = \".\"\ndeadline = \"{}ms\"\n",
            server.url(),
            deadline.as_millis()
        )
        .unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    (folder, path)
}

/// A client of the built binary that knows its process.
pub(crate) struct FederationClient {
    pub(crate) server: StdioServer,
    requests: usize,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) body: Value,
    pub(crate) is_error: bool,
    pub(crate) took: Duration,
}

/// The resources of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessUsage {
    pub(crate) resident_kb: usize,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl FederationClient {
    pub(crate) fn start(config: &Path) -> Self {
        let mut server = StdioServer::start(["--log", "error", "--config", text(config)]);
        server.initialize("2025-11-25");
        Self { server, requests: 0 }
    }

    /// Sends a call without waiting for its answer, and returns its id.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> usize {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", &params)
    }

    /// Sends a request without waiting for its answer, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> usize {
        self.requests += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        self.server.send(&request.to_string());
        self.requests
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> CallResult {
        let started = Instant::now();
        let id = self.send(tool, arguments);
        let message = self.server.receive();
        let took = started.elapsed();
        assert_eq!(message["id"], id, "{message}");
        let result = &message["result"];
        let is_error = result["isError"] == true;
        let body =
            if is_error { &result["structuredContent"]["error"] } else { &result["structuredContent"] };
        assert!(body.is_object(), "{message}");
        CallResult { body: body.clone(), is_error, took }
    }

    /// Checks that the process is the one that was started, and answers.
    pub(crate) fn ping(&mut self) {
        let id = self.request("ping", &json!({}));
        // A cancelled call may be answered first.
        while self.server.receive()["id"] != id {}
        assert!(self.server.process.try_wait().unwrap().is_none(), "it ended");
    }

    pub(crate) fn process_usage(&self) -> ProcessUsage {
        let of = |name: &str| PathBuf::from(format!("/proc/{}/{name}", self.server.process.id()));
        ProcessUsage {
            resident_kb: memory_kib(self.server.process.id(), "VmRSS"),
            descriptors: std::fs::read_dir(of("fd")).unwrap().count(),
            threads: std::fs::read_dir(of("task")).unwrap().count(),
        }
    }
}

impl CallResult {
    /// Returns the handles of the rows.
    pub(crate) fn ids(&self) -> Vec<String> {
        rows_of(&self.body)
    }

    /// Returns the unavailable sources with their codes.
    pub(crate) fn unavailable(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned();
        let missing = self.body["unavailable"].as_array().cloned().unwrap_or_default();
        missing.iter().map(|one| (text(&one["source"]), text(&one["code"]))).collect()
    }
}

/// Returns the handles of the rows of a page.
#[track_caller]
pub(crate) fn rows_of(page: &Value) -> Vec<String> {
    let rows = page["results"].as_array().or(page["records"].as_array());
    let rows = rows.unwrap_or_else(|| panic!("no page: {page}"));
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns all rows of all pages.
pub(crate) fn walk(client: &mut FederationClient, tool: &str, mut arguments: Value) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..MAX_PAGES {
        let answer = client.call(tool, &arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {answer:?}");
        ids.extend(answer.ids());
        match answer.body.get("next_cursor") {
            None => return ids,
            Some(cursor) => arguments["cursor"] = cursor.clone(),
        }
    }
    panic!("{tool} {arguments} has no end: {ids:?}")
}

/// Number of pages after which a list of a few dozen rows cannot end any more.
const MAX_PAGES: usize = 100;

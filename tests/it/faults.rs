//! What becomes of an answer when one of several record servers is sick: every fault over a real socket, through
//! the built binary, as an MCP client sees it.
//!
//! With `FETCHWELL_WRITE_DOCS=1` the matrix is measured one cell at a time and written to `docs/faults.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Account, CREDENTIAL, Fault, RecordServer, StdioServer, connect, text};

/// How long a source may take, retry included.
const DEADLINE: Duration = Duration::from_millis(500);

/// What a call may take beyond that. Only a machine that is busy with something else comes near it.
const GENEROUS: Duration = Duration::from_secs(5);

const ALPHA: Account = Account { connection: "cin_one", records: 5, pause: Duration::ZERO };
const BETA: Account = Account { connection: "cin_two", records: 5, pause: Duration::ZERO };
const SICK: Account = Account { connection: "cin_three", records: 10, pause: Duration::ZERO };


/// A folder with a configuration of these sources and their credentials.
fn configured(sources: &[(&str, &RecordServer)], deadline: Duration) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::new();
    for (name, server) in sources {
        connect(folder.path(), server.url(), CREDENTIAL);
        writeln!(
            config,
            "[[source]]\nname = \"{name}\"\nurl = \"{}\"\ncache_root = \".\"\ndeadline_seconds = {}\n",
            server.url(),
            deadline.as_secs()
        )
        .unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    (folder, path)
}

/// A client of the built binary, which knows the process it talks to.
struct Client {
    server: StdioServer,
    calls: usize,
}

/// What a call gave.
#[derive(Debug)]
struct Answer {
    body: Value,
    is_error: bool,
    took: Duration,
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Vitals {
    resident_kb: usize,
    descriptors: usize,
    threads: usize,
}

impl Client {
    fn start(config: &Path) -> Self {
        let mut server = StdioServer::start(["--log", "error", "--config", text(config)]);
        server.initialize("2025-11-25");
        Self { server, calls: 0 }
    }

    /// Sends a call without waiting for its answer, and gives its id.
    fn send(&mut self, tool: &str, arguments: &Value) -> usize {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", &params)
    }

    fn request(&mut self, method: &str, params: &Value) -> usize {
        let id = self.calls;
        self.server.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let started = Instant::now();
        let id = self.send(tool, arguments);
        let message = self.server.receive();
        let took = started.elapsed();
        assert_eq!(message["id"], id, "{message}");
        let result = &message["result"];
        let is_error = result["isError"] == true;
        let body = if is_error { &result["structuredContent"]["error"] } else { &result["structuredContent"] };
        assert!(body.is_object(), "{message}");
        Answer { body: body.clone(), is_error, took }
    }

    /// Whether it still answers, and is the process that was started.
    fn ping(&mut self) {
        self.calls += 1;
        let id = self.request("ping", &json!({}));
        assert_eq!(self.server.receive()["id"], id);
        assert!(self.server.process.try_wait().unwrap().is_none(), "it ended");
    }

    fn vitals(&self) -> Vitals {
        let of = |name: &str| PathBuf::from(format!("/proc/{}/{name}", self.server.process.id()));
        let status = std::fs::read_to_string(of("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Vitals {
            resident_kb: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: std::fs::read_dir(of("fd")).unwrap().count(),
            threads: std::fs::read_dir(of("task")).unwrap().count(),
        }
    }
}

impl Answer {
    /// The handles of its rows.
    fn ids(&self) -> Vec<String> {
        let rows = self.body["results"].as_array().or(self.body["records"].as_array());
        let rows = rows.unwrap_or_else(|| panic!("{self:?}"));
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The sources it misses, with their codes.
    fn unavailable(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned();
        let missing = self.body["unavailable"].as_array().cloned().unwrap_or_default();
        missing.iter().map(|one| (text(&one["source"]), text(&one["code"]))).collect()
    }
}

#[test]
fn the_server_of_these_tests_is_read_like_a_real_one() {
    let server = RecordServer::start(Account::of("cin_one", 60));
    let (_folder, config) = configured(&[("alpha", &server)], GENEROUS);
    let mut client = Client::start(&config);
    let mut expect = server.account.handles();
    assert_eq!(walk(&mut client, "search", json!({"query": "invoice", "limit": 7})), expect);
    expect.reverse();
    assert_eq!(walk(&mut client, "query_records", json!({"stream": "messages", "limit": 7})), expect);
    let fetched = client.call("fetch", &json!({"id": server.account.handle(3)}));
    assert_eq!(fetched.body["title"], "Invoice 3 of cin_one", "{fetched:?}");
    let window = json!({"id": server.account.handle(3), "field": "body"});
    let window = client.call("read_record_field", &window);
    assert!(window.body.to_string().contains("The amount due is 30 EUR."), "{window:?}");
    for (arguments, expect) in [
        (json!({"stream": "messages", "metric": "count"}), json!(60)),
        (json!({"stream": "messages", "metric": "sum", "field": "amount"}), json!(17_700)),
        (json!({"stream": "messages", "metric": "max", "field": "amount"}), json!(590)),
    ] {
        assert_eq!(client.call("aggregate", &arguments).body["value"], expect, "{arguments}");
    }
    let groups = json!({"stream": "messages", "metric": "count", "group_by": "from_email"});
    let groups = client.call("aggregate", &groups);
    assert_eq!(groups.body["groups"].as_array().map(Vec::len), Some(3), "{groups:?}");
}

/// All rows from page to page.
fn walk(client: &mut Client, tool: &str, mut arguments: Value) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..PAGES_MOST {
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

/// Pages after which a list of a few dozen rows will not end any more.
const PAGES_MOST: usize = 100;

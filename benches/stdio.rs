//! `cargo bench --bench stdio`: the release binary over real stdio against a local fake record server.
//!
//! Prints the time from start to the reply of `initialize`, resident memory, and the latency of sequential
//! calls. It asserts nothing: machines differ, so compare runs on one machine. `NUMBERS` in
//! docs/benchmarks.md has what was measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and fails by panicking"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fetchwell::source::pdpp::fat_search_reply;

#[path = "../tests/it/support/fake_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fake_server;

use fake_server::{FakeServer, Reply};

const CALLS: usize = 3_000;

fn main() {
    let record = fixture("record-server/record-connection.json");
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let record = record["response"].to_string();
    let fat = fat_search_reply();
    let server = FakeServer::start(move |request| {
        Reply::Json(200, if request.line.contains("/v1/search") { fat.clone() } else { record.clone() })
    });
    let folder = tempfile::tempdir().unwrap();
    let clients = folder.path().join("clients");
    std::fs::create_dir_all(&clients).unwrap();
    let file = format!("{}.json", server.url.trim_start_matches("http://").replace(':', "_"));
    std::fs::write(clients.join(file), r#"{"credential":{"access_token":"tok"}}"#).unwrap();
    let arguments = ["--provider-url", &server.url, "--cache-root", folder.path().to_str().unwrap()];

    let mut starts: Vec<Duration> = (0..40).map(|_| Client::start(&arguments).1).collect();
    starts.sort_unstable();
    println!("start to initialize reply   p50 {:>9.3} ms   min {:>9.3} ms", ms(starts[20]), ms(starts[0]));

    let (mut client, _) = Client::start(&arguments);
    println!("resident, idle              {:>9.1} MB", client.resident());
    for _ in 0..50 {
        client.call("fetch", r#"{"id":"cin_work/messages:m2"}"#);
        client.call("search", r#"{"query":"invoice","limit":100}"#);
    }
    println!("resident, 100 mixed calls   {:>9.1} MB", client.resident());
    // What two pipes and rmcp take by themselves; on some machines that is most of a call.
    client.measure_ping();
    client.measure("fetch", r#"{"id":"cin_work/messages:m2"}"#);
    client.measure("search", r#"{"query":"invoice"}"#);
    client.measure("search", r#"{"query":"invoice","limit":100}"#);
    println!("resident, {} calls        {:>9.1} MB", 3 * CALLS + 100, client.resident());

    let store = folder.path().join("demo.db");
    let demo = Command::new(binary()).args(["demo", "--json", "--store"]).arg(&store).output().unwrap();
    assert!(demo.status.success());
    println!("the embedded demo store:");
    let (mut client, start) = Client::start(&["--store", store.to_str().unwrap()]);
    println!("start to initialize reply   one {:>9.3} ms", ms(start));
    println!("resident, idle              {:>9.1} MB", client.resident());
    client.measure("fetch", r#"{"id":"cin_work/messages:m2"}"#);
    client.measure("search", r#"{"query":"invoice"}"#);
    println!("resident, after that        {:>9.1} MB", client.resident());
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_fetchwell")
}

struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    id: usize,
}

impl Client {
    /// Starts the server and gives the time until it answered `initialize`.
    fn start(arguments: &[&str]) -> (Self, Duration) {
        let started = Instant::now();
        let mut process = Command::new(binary())
            .args(["serve", "--stdio", "--log", "error"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut client = Self { process, input, output: BufReader::new(output), line: String::new(), id: 0 };
        client.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#);
        client.receive();
        let took = started.elapsed();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        (client, took)
    }

    fn send(&mut self, message: &str) {
        self.line.clear();
        self.line.push_str(message);
        self.line.push('\n');
        self.input.write_all(self.line.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> &str {
        self.line.clear();
        self.output.read_line(&mut self.line).unwrap();
        &self.line
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Duration {
        self.id += 1;
        let id = self.id;
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let started = Instant::now();
        self.send(&message);
        assert!(!self.receive().contains("isError\":true"), "{}", self.line);
        started.elapsed()
    }

    fn measure(&mut self, tool: &str, arguments: &str) {
        let took = (0..CALLS).map(|_| self.call(tool, arguments)).collect();
        print_times(&format!("{tool} {arguments}"), took);
    }

    fn measure_ping(&mut self) {
        let ping = |client: &mut Self| {
            let started = Instant::now();
            client.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            client.receive();
            started.elapsed()
        };
        let took = (0..CALLS).map(|_| ping(self)).collect();
        print_times("ping", took);
    }

    /// Resident memory in MB.
    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1_024.0
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn print_times(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| ms(took[took.len() * percent / 100]);
    println!("{what:<38} p50 {:>8.3} ms   p99 {:>8.3} ms", at(50), at(99));
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

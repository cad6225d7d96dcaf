//! `cargo bench --bench stdio`: the release binary over real stdio against a local fake record server.
//!
//! Prints the time from start to the reply of `initialize`, resident memory, and the latency of sequential calls. It
//! asserts nothing: machines differ, so compare runs on one machine. docs/benchmarks.md has results.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and fails by panicking"
)]

use std::process::Command;
use std::time::Duration;

use fetchwell_lab::recorded::fat_search_reply;

#[expect(dead_code, reason = "the other benches use more of it")]
mod client;
#[path = "../tests/it/support/fake_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fake_server;
#[path = "../tests/it/support/waiting.rs"]
mod waiting;

use client::{Client, binary, ms};
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
    // Two pipes and rmcp by themselves, which on some machines take most of a call.
    client.measure_ping(CALLS);
    client.measure("fetch", r#"{"id":"cin_work/messages:m2"}"#, CALLS);
    client.measure("search", r#"{"query":"invoice"}"#, CALLS);
    client.measure("search", r#"{"query":"invoice","limit":100}"#, CALLS);
    println!("resident, {} calls        {:>9.1} MB", 3 * CALLS + 100, client.resident());

    let store = folder.path().join("demo.db");
    let demo = Command::new(binary()).args(["demo", "--json", "--store"]).arg(&store).output().unwrap();
    assert!(demo.status.success());
    println!("the embedded demo store:");
    let (mut client, start) = Client::start(&["--store", store.to_str().unwrap()]);
    println!("start to initialize reply   one {:>9.3} ms", ms(start));
    println!("resident, idle              {:>9.1} MB", client.resident());
    client.measure("fetch", r#"{"id":"cin_work/messages:m2"}"#, CALLS);
    client.measure("search", r#"{"query":"invoice"}"#, CALLS);
    println!("resident, after that        {:>9.1} MB", client.resident());
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

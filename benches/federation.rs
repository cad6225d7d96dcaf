//! `cargo bench --bench federation`: the release binary over real stdio against 1, 8 and 50 local record servers
//! that take 2 ms for each answer, and 50 of them with one more that takes 5 s.
//!
//! Prints the latency of sequential calls, and threads, descriptors and memory after them. It asserts only that
//! every source answered, or that the slow one did not; docs/benchmarks.md has what was measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and fails by panicking"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[expect(dead_code, reason = "the other benches use more of it")]
mod client;
#[path = "../tests/it/support/fake_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fake_server;
#[path = "../tests/it/support/faulty_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod faulty_server;

use client::{Client, ms, print_times};
use faulty_server::{Account, RecordServer};

/// Calls of each kind.
const CALLS: usize = 500;

/// Calls in which a slow source is found to be slow.
const FIRST_CALLS: usize = 10;

/// How long a good server thinks, and a slow one.
const PAUSE: Duration = Duration::from_millis(2);
const SLOW: Duration = Duration::from_secs(5);

const DEADLINE: &str = "500ms";

const SEARCH: &str = r#"{"query":"invoice"}"#;
const RECORDS: &str = r#"{"stream":"messages"}"#;

fn main() {
    println!("one source, without a federation around it:");
    let server = start(0, PAUSE);
    let folder = tempfile::tempdir().unwrap();
    connect(folder.path(), server.url());
    let root = folder.path().to_str().unwrap();
    measure(&["--provider-url", server.url(), "--cache-root", root], &server.account.handle(3));

    for sources in [1, 8, 50] {
        println!("{sources} configured, {} ms each:", PAUSE.as_millis());
        let servers: Vec<RecordServer> = (0..sources).map(|number| start(number, PAUSE)).collect();
        let (_folder, config) = configured(&servers);
        measure(&["--config", config.to_str().unwrap()], &servers[0].account.handle(3));
    }

    println!("50 of {} ms and one of {} s, deadline {DEADLINE}:", PAUSE.as_millis(), SLOW.as_secs());
    let mut servers: Vec<RecordServer> = (0..50).map(|number| start(number, PAUSE)).collect();
    servers.insert(25, start(50, SLOW));
    let (_folder, config) = configured(&servers);
    let (mut client, _) = Client::start(&["--config", config.to_str().unwrap()]);
    let first: Vec<Duration> = (0..FIRST_CALLS).map(|_| client.call("search", SEARCH)).collect();
    assert!(client.answer().contains("\"unavailable\""), "{}", client.answer());
    let first: Vec<String> = first.into_iter().map(|took| format!("{:.0}", ms(took))).collect();
    println!("the first {FIRST_CALLS} searches took {} ms", first.join(", "));
    drop(client);
    measure(&["--config", config.to_str().unwrap()], &servers[0].account.handle(3));
}

/// Calls each tool again and again, and says what the process holds after that.
fn measure(arguments: &[&str], handle: &str) {
    let fetch = format!(r#"{{"id":"{handle}"}}"#);
    let calls = [("search", SEARCH), ("fetch", fetch.as_str()), ("query_records", RECORDS)];
    let (mut client, start) = Client::start(arguments);
    println!("  start to initialize reply   one {:>9.3} ms", ms(start));
    for (tool, arguments) in calls {
        for _ in 0..FIRST_CALLS {
            client.call(tool, arguments);
        }
    }
    for (tool, arguments) in calls {
        let took = (0..CALLS).map(|_| client.call(tool, arguments)).collect();
        print_times(&format!("  {tool}"), took);
    }
    let (threads, descriptors) = client.threads_and_descriptors();
    println!(
        "  afterwards: {threads} threads, {descriptors} descriptors, {:.1} MB resident",
        client.resident()
    );
}

fn start(number: usize, pause: Duration) -> RecordServer {
    let connection: &'static str = format!("cin_{number}").leak();
    RecordServer::start(Account { connection, records: 40, pause })
}

/// A folder with a configuration of these sources and their credentials.
fn configured(servers: &[RecordServer]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::new();
    for server in servers {
        connect(folder.path(), server.url());
        let (name, url) = (server.account.connection.replace('_', "-"), server.url());
        writeln!(
            config,
            "[[source]]\nname = \"{name}\"\nurl = \"{url}\"\ncache_root = \".\"\ndeadline = \"{DEADLINE}\"\n"
        )
        .unwrap();
    }
    let path = folder.path().join("fetchwell.toml");
    std::fs::write(&path, config).unwrap();
    (folder, path)
}

/// Leaves a credential where `pdpp connect` would.
fn connect(cache_root: &Path, url: &str) {
    let clients = cache_root.join("clients");
    std::fs::create_dir_all(&clients).unwrap();
    let file = format!("{}.json", url.trim_start_matches("http://").replace(':', "_"));
    std::fs::write(clients.join(file), r#"{"credential":{"access_token":"tok"}}"#).unwrap();
}

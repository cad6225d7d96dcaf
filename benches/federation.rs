//! `cargo bench --bench federation`: the release binary over real stdio against 1, 8 and 50 local record servers
//! that take 2 ms for each answer, and 50 of them with one more that takes 5 s.
//!
//! Before that, a list over two connections of one server is compared with one request to that server.
//!
//! Prints the latency of sequential calls, and threads, descriptors and memory after them. It asserts only that every
//! source answered, or that the slow one did not; docs/benchmarks.md has results.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench prints, and fails by panicking"
)]

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[expect(dead_code, reason = "the other benches use more of it")]
mod client;
#[path = "../tests/it/support/fake_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fake_server;
#[path = "../tests/it/support/faulty_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod faulty_server;
#[path = "../tests/it/support/waiting.rs"]
mod waiting;

use client::{Client, ms, print_times};
use fake_server::{FakeServer, Reply};
use faulty_server::{Account, RecordServer};

/// Calls of each kind.
const CALLS: usize = 500;

/// Number of calls after which the slow source is known to be slow.
const FIRST_CALLS: usize = 10;

/// Delay of a fast server, and of a slow one.
const PAUSE: Duration = Duration::from_millis(2);
const SLOW: Duration = Duration::from_secs(5);

const DEADLINE: &str = "500ms";

const SEARCH: &str = r#"{"query":"invoice"}"#;
const RECORDS: &str = r#"{"stream":"messages"}"#;

fn main() {
    list_over_connections(PAUSE);
    list_over_connections(10 * PAUSE);
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

/// Measures lists over two connections of one server, and requests of one of their pages to the server itself.
fn list_over_connections(pause: Duration) {
    let server = FakeServer::start(move |request| {
        std::thread::park_timeout(pause);
        Reply::Json(200, connections_reply(&request.line))
    });
    let folder = tempfile::tempdir().unwrap();
    connect(folder.path(), &server.url);
    let (mut client, _) =
        Client::start(&["--provider-url", &server.url, "--cache-root", folder.path().to_str().unwrap()]);
    let mut direct = Direct::open(&server.url);
    for _ in 0..FIRST_CALLS {
        client.call("query_records", RECORDS);
        direct.request();
    }
    // The two alternate, so that other load of the machine slows both.
    let took: Vec<(Duration, Duration)> =
        (0..CALLS).map(|_| (client.call("query_records", RECORDS), direct.request())).collect();
    let (tool, alone): (Vec<Duration>, Vec<Duration>) = took.into_iter().unzip();
    println!("two connections of one server, {} ms for each answer:", pause.as_millis());
    println!("  p50 against one direct request: {:.2}", median(&tool) / median(&alone));
    print_times("  query_records over both", tool);
    print_times("  one direct request", alone);
}

/// The replies of a server with two connections of 25 records.
fn connections_reply(line: &str) -> String {
    if line.contains("/v1/schema") {
        return r#"{"connectors":[{"connector_key":"mail","streams":[{"name":"messages","field_capabilities":{"at":"t=string,role=cursor"}}],"granted_connections":[{"connection_id":"a"},{"connection_id":"b"}]}]}"#.to_owned();
    }
    let connection = if line.contains("connection_id=a") { "a" } else { "b" };
    let rows: Vec<String> = (0..25)
        .map(|number| {
            let at = 60 - number;
            format!(r#"{{"id":"m{number}","connection_id":"{connection}","data":{{"at":"2026-01-01T00:00:{at:02}Z","subject":"Invoice {number}"}}}}"#)
        })
        .collect();
    format!(r#"{{"data":[{}],"has_more":true,"next_cursor":"25"}}"#, rows.join(","))
}

/// A persistent connection without fetchwell.
struct Direct(TcpStream);

impl Direct {
    fn open(url: &str) -> Self {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn request(&mut self) -> Duration {
        let started = Instant::now();
        let path = "/v1/streams/messages/records?limit=25&connection_id=a";
        write!(self.0, "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer tok\r\n\r\n")
            .unwrap();
        let (mut answer, mut piece) = (Vec::new(), [0; 16 * 1_024]);
        while !answer.ends_with(br#""next_cursor":"25"}"#) {
            let read = self.0.read(&mut piece).unwrap();
            answer.extend_from_slice(&piece[..read]);
        }
        started.elapsed()
    }
}

fn median(took: &[Duration]) -> f64 {
    let mut took = took.to_vec();
    took.sort_unstable();
    ms(took[took.len() / 2])
}

/// Calls each tool repeatedly, and prints the resources of the process after that.
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

/// Writes a configuration of these sources and their credentials into a folder.
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

/// Writes a credential to the file that `pdpp connect` would write.
fn connect(cache_root: &Path, url: &str) {
    let clients = cache_root.join("clients");
    std::fs::create_dir_all(&clients).unwrap();
    let file = format!("{}.json", url.trim_start_matches("http://").replace(':', "_"));
    std::fs::write(clients.join(file), r#"{"credential":{"access_token":"tok"}}"#).unwrap();
}

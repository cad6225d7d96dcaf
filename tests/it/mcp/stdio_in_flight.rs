//! Backpressure over stdio with the built binary: clients that do not read, and cancellations that overtake requests.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Reply, StdioServer, connect, demo_store, memory_kib, text};

/// Number of requests of a client that does not read. Together they are longer than the server's read-ahead.
const REQUESTS: usize = 4_000;

/// Maximum memory that the server allocates, in KiB. Without the limit of requests in flight it grows with every request.
const MAX_KIB: usize = 40 * 1024;

fn tool_list(id: usize) -> String {
    let cursor = "x".repeat(500);
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"cursor": cursor}}).to_string()
        + "\n"
}

#[cfg(target_os = "linux")]
#[test]
fn requests_of_a_client_that_does_not_read_are_not_read() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store), "--log", "error"]);
    server.initialize("2025-06-18");
    let mut input = server.process.stdin.take().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let writer = std::thread::spawn(move || {
        for id in 1..=REQUESTS {
            input.write_all(tool_list(id).as_bytes()).unwrap();
            counted.store(id, Ordering::SeqCst);
        }
        input
    });
    // Sends until the pipe stays full or all requests were accepted.
    let mut before = usize::MAX;
    for _ in 0..120 {
        let now = sent.load(Ordering::SeqCst);
        if now == before || now == REQUESTS {
            break;
        }
        before = now;
        std::thread::park_timeout(Duration::from_millis(1_000));
    }
    let peak = memory_kib(server.process.id(), "VmHWM");
    assert!(sent.load(Ordering::SeqCst) < REQUESTS, "all requests were read; the peak is {peak} KiB");
    assert!(peak < MAX_KIB, "{peak} KiB");
    // The client begins to read, and each request is answered once.
    let mut answers: HashMap<u64, usize> = HashMap::new();
    for _ in 0..REQUESTS {
        let answer = server.receive();
        assert!(answer["result"]["tools"].is_array(), "{answer}");
        *answers.entry(answer["id"].as_u64().unwrap()).or_default() += 1;
    }
    assert_eq!(answers.len(), REQUESTS);
    assert!(answers.values().all(|times| *times == 1));
    let input = writer.join().unwrap();
    let peak = memory_kib(server.process.id(), "VmHWM");
    assert!(peak < MAX_KIB, "{peak} KiB");
    drop(input);
    let (rest, status, _) = server.end();
    assert!(rest.is_empty() && status.success());
}

#[test]
fn cancellation_reaches_a_request_in_flight_and_one_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let source = FakeServer::start(|_| Reply::Hang);
    connect(folder.path(), &source.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    let lines = format!(
        "call_deadline = \"60s\"\n[[source]]\nname = \"slow\"\nurl = \"{}\"\ncredential = \"pdpp-cache\"\ncache_root = \"{}\"\ndeadline = \"50s\"\n",
        source.url,
        text(folder.path())
    );
    std::fs::write(&config, lines).unwrap();
    let mut server = StdioServer::start(["--config", text(&config), "--log", "error"]);
    server.initialize("2025-06-18");
    let call = |id: usize| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "invoice"}}})
        .to_string()
    };
    // The maximum number of requests in flight and ten more, all without an answer for 50 seconds.
    for id in 1..=74 {
        server.send(&call(id));
    }
    server.send(&json!({"jsonrpc": "2.0", "id": "last", "method": "ping"}).to_string());
    source.wait_for_request();
    let cancel = |server: &mut StdioServer, id: usize| {
        server.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
                .to_string(),
        );
    };
    // A waiting request is never passed on; those in flight end, and the ping after all of them is answered.
    for id in (65..=74).rev().chain(1..=64) {
        cancel(&mut server, id);
    }
    source.wait_until_abandoned();
    assert_eq!(server.receive()["id"], "last");
    let (rest, status, _) = server.end();
    assert_eq!(rest, Vec::<Value>::new());
    assert!(status.success());
}

#[cfg(unix)]
#[test]
fn a_server_with_unread_answers_can_be_stopped() {
    let (_folder, store) = demo_store();
    let mut server = StdioServer::start(["--store", text(&store), "--log", "error"]);
    server.initialize("2025-06-18");
    // The output is longer than the pipe holds, so the last answer is half written.
    let lines: String = (1..=40).map(tool_list).collect();
    server.process.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    let buffered = server.output.fill_buf().unwrap();
    assert!(!buffered.is_empty());
    let id = server.process.id().to_string();
    let kill = std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(kill.success());
    for _ in 0..300 {
        if let Some(status) = server.process.try_wait().unwrap() {
            return assert!(status.success(), "{status}");
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    let _ = server.process.kill();
    panic!("it still runs");
}

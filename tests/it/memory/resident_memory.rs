//! Memory of the process after ordinary calls, read from `/proc`.

use std::fs;

use serde_json::json;

use crate::support::{StdioServer, import_records, text};

const RECORDS: usize = 120;

const CALLS: usize = 100;

/// Maximum private memory of the server after the calls, in KiB. With a loaded vocabulary, such as that of tiktoken-rs,
/// it is 48,000 or more.
const MAX_OWN: usize = 40_000;

/// Returns a memory value of the server in KiB.
fn memory(server: &StdioServer, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hundred_mixed_calls_leave_little_memory() {
    let place = tempfile::tempdir().unwrap();
    let store = place.path().join("mixed.db");
    let record = |number: usize| {
        let fields = (0..60).map(|field| {
            (
                format!("field{field}"),
                json!(format!("words {number} and {field} of a café — 日本語, {}", "and more ".repeat(4))),
            )
        });
        let data: serde_json::Map<String, serde_json::Value> = fields.collect();
        json!({"stream": "notes", "key": format!("k{number}"), "data": data})
    };
    let lines: String = (0..RECORDS).map(|number| record(number).to_string() + "\n").collect();
    import_records(&store, "cin_mixed", &lines);
    let mut server = StdioServer::start(["--store", text(&store)]);
    server.initialize("2025-06-18");
    let before = memory(&server, "RssAnon:");
    for call in 0..CALLS {
        let (name, arguments) = match call % 4 {
            0 => ("query_records", json!({"stream": "notes"})),
            1 => ("query_records", json!({"stream": "notes", "limit": 50})),
            2 => ("search", json!({"query": "words", "limit": 50})),
            _ => ("fetch", json!({"id": format!("cin_mixed/notes:k{call}")})),
        };
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": call + 1, "method": "tools/call", "params": params});
        server.send(&message.to_string());
        let answer = server.receive();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let own = memory(&server, "RssAnon:");
    let of_files = memory(&server, "RssFile:");
    println!(
        "{own} KiB of its own ({before} before the calls), {of_files} of the binary with the vocabulary and of the store"
    );
    assert!(own < MAX_OWN, "{own} KiB, {before} before the calls");
}

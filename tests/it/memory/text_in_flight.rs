//! Memory of many concurrent calls over long records, read from `/proc`.

use std::fs;

use serde_json::json;

use crate::support::{
    CREDENTIAL, FakeServer, Reply, Request, StdioServer, connect, import_records, memory_kib, text,
};

/// Bytes of the text of one record.
const RECORD: usize = 12 * 1024 * 1024;

const RECORDS: usize = 4;

const CALLS: usize = 48;

/// Maximum growth of the server's memory through the calls, in KiB: a few times the limit of texts in flight (128 MiB),
/// because a text is read, parsed and split. Without the limit it grows by 880,000.
const MAX_GROWTH: usize = 740_000;

fn long_text(number: usize) -> String {
    // Long words are left out of the index, so that the import is fast.
    let word = format!("{number}").repeat(99);
    format!("{word} ").repeat(RECORD / 100)
}

/// Makes all calls concurrently, and checks that each is answered or refused as busy.
fn call_at_once(server: &mut StdioServer) {
    let before = memory_kib(server.process.id(), "VmRSS");
    for call in 0..CALLS {
        let id = format!("cin_long/files:k{}", call % RECORDS);
        let params = json!({"name": "fetch", "arguments": {"id": id}});
        let message = json!({"jsonrpc": "2.0", "id": call + 1, "method": "tools/call", "params": params});
        server.send(&message.to_string());
    }
    let mut answered = 0;
    for _ in 0..CALLS {
        let answer = server.receive();
        let result = &answer["result"];
        if result["isError"] == true {
            assert_eq!(result["structuredContent"]["error"]["code"], "busy", "{result}");
        } else {
            answered += 1;
        }
    }
    let peak = memory_kib(server.process.id(), "VmHWM");
    assert!(answered > 0);
    assert!(peak < before + MAX_GROWTH, "peak {peak} KiB, {before} KiB before");
}

#[test]
fn long_records_of_a_store_are_read_within_the_memory_limit() {
    let place = tempfile::tempdir().unwrap();
    let store = place.path().join("long.db");
    let record = |number: usize| json!({"stream": "files", "key": format!("k{number}"), "data": {"text": long_text(number)}});
    let lines: String = (0..RECORDS).map(|number| record(number).to_string() + "\n").collect();
    import_records(&store, "cin_long", &lines);
    let mut server = StdioServer::start(["--store", text(&store)]);
    server.initialize("2025-06-18");
    call_at_once(&mut server);
}

#[test]
fn long_records_of_a_record_server_are_read_within_the_memory_limit() {
    let place = tempfile::tempdir().unwrap();
    let record = |number: usize| {
        json!({"object": "record", "id": format!("k{number}"), "stream": "files", "connection_id": "cin_long",
            "data": {"text": long_text(number)}})
    };
    let replies: Vec<Vec<u8>> = (0..RECORDS).map(|number| record(number).to_string().into_bytes()).collect();
    let remote = FakeServer::start(move |request: &Request| {
        let number = (0..RECORDS).find(|number| request.line.contains(&format!("/k{number}"))).unwrap_or(0);
        Reply::Bytes(replies.get(number).unwrap().clone())
    });
    connect(place.path(), &remote.url, CREDENTIAL);
    let config = place.path().join("fetchwell.toml");
    let source = format!(
        "[[source]]\nname = \"far\"\nurl = \"{}\"\ncache_root = \".\"\ndeadline = \"60s\"\n",
        remote.url
    );
    fs::write(&config, source).unwrap();
    let mut server = StdioServer::start(["--config", text(&config)]);
    server.initialize("2025-06-18");
    call_at_once(&mut server);
}

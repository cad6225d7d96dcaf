//! Calls that are cancelled or time out leave no socket, no task and no memory behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Account, Fault, FederationClient, RecordServer, configured};

const DEADLINE: Duration = Duration::from_millis(500);

/// Longest time for closing connections. Only a busy machine comes near it.
const GENEROUS: Duration = Duration::from_secs(10);

fn healthy() -> Vec<RecordServer> {
    let server = |connection| RecordServer::start(Account::of(connection, 30));
    ["cin_a", "cin_b", "cin_c", "cin_d"].map(server).into_iter().collect()
}

fn hanging() -> Vec<RecordServer> {
    let server = |(connection, fault)| RecordServer::faulty(Account::of(connection, 30), fault);
    let faults = [
        ("cin_e", Fault::HangNowAndThen),
        ("cin_f", Fault::HangInBody),
        ("cin_g", Fault::HangNowAndThen),
        ("cin_h", Fault::Drip),
    ];
    faults.map(server).into_iter().collect()
}

#[test]
fn cancelled_calls_leave_nothing_behind() {
    const CALLS: usize = 200;
    let (healthy, hanging) = (healthy(), hanging());
    let sources: Vec<(&str, &RecordServer)> = healthy
        .iter()
        .chain(&hanging)
        .map(|server| (server.account.connection.trim_start_matches("cin_"), server))
        .collect();
    let (_folder, config) = configured(&sources, DEADLINE);
    let mut client = FederationClient::start(&config);
    let question = |number: usize| match number % 3 {
        0 => ("query_records", json!({"stream": "messages", "limit": 50})),
        _ => ("search", json!({"query": "invoice", "limit": 50})),
    };
    for number in 0..4 {
        let (tool, arguments) = question(number);
        client.call(tool, &arguments);
    }
    let before = client.process_usage();
    let mut expected = BTreeSet::new();
    for number in 0..CALLS {
        let (tool, arguments) = question(number);
        let id = client.send(tool, &arguments);
        if number.is_multiple_of(2) {
            let params = json!({"requestId": id, "reason": "the user looked away"});
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            client.server.send(&notice.to_string());
        } else {
            expected.insert(id);
        }
        // At most a few calls run at the same time.
        while expected.len() > 4 {
            let message = client.server.receive();
            expected.remove(&usize::try_from(message["id"].as_u64().unwrap()).unwrap());
        }
    }
    while !expected.is_empty() {
        let message = client.server.receive();
        expected.remove(&usize::try_from(message["id"].as_u64().unwrap()).unwrap());
    }
    client.ping();
    let started = Instant::now();
    let open = |servers: &[RecordServer]| servers.iter().map(|server| server.socket().open()).sum::<usize>();
    // Connections of cancelled calls are closed, not reused: they are in the middle of a response.
    let hung = |server: &RecordServer| match server.account.connection {
        "cin_e" | "cin_g" => server.socket().requests().len() / 3,
        _ => server.socket().requests().len(),
    };
    let left = |server: &RecordServer| hung(server) - server.socket().abandoned();
    while hanging.iter().any(|server| left(server) > 0) {
        assert!(started.elapsed() < GENEROUS, "{:?}", hanging.iter().map(left).collect::<Vec<_>>());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let after = client.process_usage();
    let hung: usize = hanging.iter().map(hung).sum();
    println!("before {before:?}, after {CALLS} calls and {hung} requests that hung {after:?}");
    assert!(hung > CALLS / 4, "only {hung} requests hung");
    // Connections to healthy sources are kept for the next calls.
    assert!(
        after.descriptors <= before.descriptors + open(&healthy) + open(&hanging),
        "{before:?} {after:?}"
    );
    assert!(after.threads <= before.threads + 4, "{before:?} {after:?}");
    assert!(after.resident_kb < before.resident_kb + 32 * 1024, "{before:?} {after:?}");
}

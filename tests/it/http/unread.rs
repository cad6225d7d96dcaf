//! Clients that do not read responses, and frames that a client should not send, over real sockets.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use fetchwell_http::Limits;
use serde_json::json;

use super::raw_http_2::{CONTINUATION, GOAWAY, HEADERS, RST_STREAM, RawHttp2, connect_from, header_block};
use crate::support::hosted::{ANN, BOB, HEAD, Place, STORES, bearer, start, token};
use crate::support::{HttpServer, OwnServer, ask, get, import_records, memory_kib};

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#;

/// Bytes of all records of the large store, which is one response.
const LARGE: usize = 4 * 1024 * 1024;

const ALL_RECORDS: &str = "/v1/streams/files/records?limit=100";

/// Starts a server with two callers and a store that is returned as one response of `LARGE` bytes.
fn large(place: &Place, http: &str) -> HttpServer {
    let text = "x".repeat(LARGE / 16);
    let record =
        |number: usize| json!({"stream": "files", "key": format!("k{number}"), "data": {"text": text}});
    let lines: String = (0..16).map(|number| record(number).to_string() + "\n").collect();
    import_records(&place.path("large.db"), "cin_large", &lines);
    let callers = [token("ann", ANN), token("bob", BOB)].concat();
    let callers = callers.replace("[\"ann\"]", "[\"large\"]").replace("[\"bob\"]", "[\"large\"]");
    start(&place.configure(&format!(
        "{HEAD}[http]\n{http}{callers}[[source]]\nname = \"large\"\nstore = \"large.db\"\n"
    )))
}

/// Reads until the server ends the connection. Returns true if it did within 30 seconds.
fn is_ended(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn pings_do_not_keep_connections_that_do_not_read() {
    let place = Place::new();
    let limits = "max_connections = 20\nmax_connections_per_address = 20\nwrite_timeout = \"1s\"\n";
    let tables = format!("{HEAD}ops_listen = \"127.0.0.1:0\"\n[http]\n{limits}{}", token("ann", ANN));
    let server = start(&place.configure(&format!("{tables}{STORES}")));
    let ops = server.log().split("/metrics at ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let mut unread: Vec<RawHttp2> = (0..20).map(|_| RawHttp2::connect(&server.address, 0)).collect();
    unread.push(RawHttp2::connect(&ops, 0));
    for client in &unread {
        assert!(client.get(0, "/no/such/path", &[]));
    }
    // The twenty-first waits until one of them is closed.
    assert_eq!(get(&server.address, "/health/live").status, 200);
    for client in &unread {
        let mut left = 600;
        while !client.seen(|seen| seen.is_closed) && left > 0 {
            // Neither PINGs of the client nor its acknowledgements count as progress.
            client.ping();
            std::thread::park_timeout(Duration::from_millis(50));
            left -= 1;
        }
        assert!(left > 0, "a connection that reads nothing stays open");
        assert_eq!(client.seen(|seen| seen.data), 0);
    }
}

#[test]
fn a_response_that_is_read_slowly_is_sent_to_its_end() {
    let place = Place::new();
    let server = large(&place, "write_timeout = \"2s\"\n");
    let client = RawHttp2::connect(&server.address, 0);
    assert!(client.widen(0, 8 * 1024 * 1024));
    assert!(client.get(0, ALL_RECORDS, &[("authorization", &format!("Bearer {ANN}"))]));
    client.wait_until("it is answered", |seen| seen.statuses.get(&1) == Some(&200));
    // The whole response takes longer than the timeout, and each piece less.
    let mut rounds = 0;
    while client.seen(|seen| seen.data) < LARGE {
        assert!(!client.seen(|seen| seen.is_closed), "{:?}", client.seen(|seen| seen.data));
        client.widen(1, 256 * 1024);
        std::thread::park_timeout(Duration::from_millis(200));
        rounds += 1;
        assert!(rounds < 200);
    }
    assert_eq!(client.seen(|seen| seen.go_away), None);
}

#[cfg(target_os = "linux")]
#[test]
fn one_token_holds_a_bounded_number_of_unread_bytes() {
    let place = Place::new();
    let server = large(&place, "write_timeout = \"15s\"\n");
    let ann = format!("Bearer {ANN}");
    assert_eq!(ask(&server.address, "GET", ALL_RECORDS, &[&bearer(ANN)]).status, 200);
    let before = memory_kib(server.process.id(), "VmRSS");
    let clients: Vec<RawHttp2> = (0..4).map(|_| RawHttp2::connect(&server.address, 0)).collect();
    for client in &clients {
        for nth in 0..100 {
            assert!(client.get(nth, ALL_RECORDS, &[("authorization", &ann)]));
        }
    }
    let answered = |status: u16| {
        let count = |client: &RawHttp2| {
            client.seen(|seen| seen.statuses.values().filter(|sent| **sent == status).count())
        };
        clients.iter().map(count).sum::<usize>()
    };
    // Each response is sent, or refused because its caller does not read.
    server.wait_until("all are answered", || {
        answered(200) + answered(429) == 400
            || clients.iter().any(|client| client.seen(|seen| seen.is_closed))
    });
    let (peak, sent) = (memory_kib(server.process.id(), "VmHWM"), answered(200));
    println!("before {before} KiB, peak {peak} KiB, {sent} of 400 responses made");
    assert!(peak < before + 300_000, "{peak} KiB with {sent} unread responses, {before} KiB before");
    // Another caller is served meanwhile, and the same caller after its connections have ended.
    assert_eq!(ask(&server.address, "GET", ALL_RECORDS, &[&bearer(BOB)]).status, 200);
    for client in &clients {
        client.wait_until("it is closed", |seen| seen.is_closed);
    }
    assert_eq!(ask(&server.address, "GET", ALL_RECORDS, &[&bearer(ANN)]).status, 200);
    println!("after {} KiB", memory_kib(server.process.id(), "VmRSS"));
}

#[cfg(target_os = "linux")]
#[test]
fn unread_responses_of_all_connections_are_bounded() {
    let place = Place::new();
    let limits = "[http]\nmax_connections_per_address = 200\nwrite_timeout = \"20s\"\n";
    let server = start(&place.configure(&format!("{HEAD}{limits}{}{STORES}", token("ann", ANN))));
    let live = || get(&server.address, "/health/live").status == 200;
    assert!(live());
    let before = memory_kib(server.process.id(), "VmRSS");
    let ann = format!("Bearer {ANN}");
    for (headers, path) in [(vec![], "/"), (vec![("authorization", ann.as_str())], "/v1/streams")] {
        let clients: Vec<RawHttp2> = (0..60).map(|_| RawHttp2::connect(&server.address, 0)).collect();
        for client in &clients {
            let _ = (0..100).take_while(|nth| client.get(*nth, path, &headers)).count();
        }
        let is_closed = |client: &RawHttp2| client.seen(|seen| seen.is_closed);
        let is_done = |client: &RawHttp2| is_closed(client) || client.seen(|seen| seen.statuses.len()) == 100;
        server.wait_until("all are answered or closed", || clients.iter().all(is_done));
        // Pages of 10 kB for people without a session are 60 MB together.
        let closed = clients.iter().filter(|client| is_closed(client)).count();
        assert!(closed < 60 && (closed > 0 || path != "/"), "{closed} connections are closed");
        assert!(live(), "other clients are served meanwhile");
    }
    let peak = memory_kib(server.process.id(), "VmHWM");
    println!("before {before} KiB, peak {peak} KiB");
    assert!(peak < before + 100_000, "{before} KiB before, {peak} KiB at the peak");
}

#[test]
fn http_1_clients_that_do_not_read_are_closed() {
    let place = Place::new();
    let server = large(&place, "max_connections = 1\nwrite_timeout = \"1s\"\n");
    let request =
        format!("GET {ALL_RECORDS} HTTP/1.1\r\nhost: {}\r\n{}\r\n\r\n", server.address, bearer(ANN));
    let mut unread = TcpStream::connect(&server.address).unwrap();
    // The response is larger than the socket buffers of both sides.
    unread.write_all(request.repeat(8).as_bytes()).unwrap();
    // Another client waits for the only connection.
    let mut other = TcpStream::connect(&server.address).unwrap();
    other.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    other
        .write_all(format!("GET /health/live HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).as_bytes())
        .unwrap();
    let mut status = [0; 15];
    other.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200 OK");
    drop(unread);
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let server = OwnServer::start(Limits::default(), None, Duration::from_secs(20));
    let client = RawHttp2::connect(&server.address, 65_535);
    for nth in 0..101 {
        assert!(client.post(nth, "/mcp", &[], SEARCH));
    }
    // The last request gets REFUSED_STREAM while the others wait for the source.
    client.wait_until("one is refused", |seen| !seen.resets.is_empty());
    assert_eq!(client.seen(|seen| seen.resets.clone()), [(201, 7)].into());
    assert_eq!(client.seen(|seen| seen.statuses.len()), 0);
}

#[test]
fn header_memory_of_a_connection_is_bounded() {
    let server = OwnServer::start(Limits::default(), None, Duration::from_secs(20));
    let client = RawHttp2::connect(&server.address, 65_535);
    let long = "x".repeat(50_000);
    for nth in 0..20 {
        assert!(client.begin_post(nth, "/mcp", &[("content-type", "application/json"), ("x-long", &long)]));
    }
    // Five requests wait for their bodies, and no headers of the others are kept.
    client.wait_until("the others are refused", |seen| seen.statuses.len() >= 15);
    assert!(client.seen(|seen| seen.statuses.values().filter(|status| **status == 429).count()) >= 15);
    assert!(!client.seen(|seen| seen.is_closed));
    // A single header list over the limit.
    let client = RawHttp2::connect(&server.address, 65_535);
    let longer = "x".repeat(70_000);
    client.begin_post(0, "/mcp", &[("x-long", &longer)]);
    client.wait_until("it is refused", |seen| {
        seen.is_closed
            || seen.go_away.is_some()
            || !seen.resets.is_empty()
            || seen.statuses.get(&1) == Some(&431)
    });
}

#[cfg(target_os = "linux")]
#[test]
fn floods_of_frames_end_the_connection_and_take_no_memory() {
    let place = Place::new();
    let server = start(&place.of_two());
    assert_eq!(get(&server.address, "/health/live").status, 200);
    let before = memory_kib(server.process.id(), "VmRSS");
    // Header blocks that never end.
    let client = RawHttp2::connect(&server.address, 65_535);
    let piece = header_block(&[("x-long", &"x".repeat(16_000))]);
    client.send(HEADERS, 0, 1, &header_block(&[(":method", "GET")]));
    let taken = (0..10_000).take_while(|_| client.send(CONTINUATION, 0, 1, &piece)).count();
    assert!(taken < 10_000, "160 MB of CONTINUATION were taken");
    // The same with empty frames.
    let client = RawHttp2::connect(&server.address, 65_535);
    client.send(HEADERS, 0, 1, &[]);
    let taken = (0..1_000_000).take_while(|_| client.send(CONTINUATION, 0, 1, &[])).count();
    assert!(taken < 1_000_000, "a million empty CONTINUATION frames were taken");
    // Requests that are reset at once.
    let client = RawHttp2::connect(&server.address, 65_535);
    let reset = |nth: u32| {
        client.get(nth, "/v1/streams", &[]) && client.send(RST_STREAM, 0, 2 * nth + 1, &8_u32.to_be_bytes())
    };
    let taken = (0..200_000).take_while(|nth| reset(*nth)).count();
    let after = memory_kib(server.process.id(), "VmHWM");
    println!("{taken} rapid resets taken, {before} KiB before, peak {after} KiB, GOAWAY is {GOAWAY}");
    assert!(after < before + 60_000, "{before} KiB before, {after} KiB after {taken} rapid resets");
    assert_eq!(get(&server.address, "/health/live").status, 200);
}

#[test]
fn connections_of_one_address_are_limited() {
    let place = Place::new();
    let limits = "max_connections_per_address = 2\ntrusted_proxies = [\"127.0.0.3\"]\n";
    let server = start(&place.configure(&format!("{HEAD}[http]\n{limits}{}{STORES}", token("ann", ANN))));
    let connect = |last: u8| connect_from(IpAddr::from([127, 0, 0, last]), &server.address).unwrap();
    let is_served = |stream: &mut TcpStream| {
        let request = format!("GET /health/live HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut status = [0; 15];
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_exact(&mut status).is_ok()
            && status == *b"HTTP/1.1 200 OK"
    };
    let mut held = [connect(1), connect(1)];
    assert!(held.iter_mut().all(is_served));
    assert!(is_ended(connect(1)), "a third connection is open");
    assert!(is_served(&mut connect(2)));
    // Requests of many clients come through a trusted proxy.
    let mut of_proxy: Vec<TcpStream> = (0..6).map(|_| connect(3)).collect();
    assert!(of_proxy.iter_mut().all(is_served));
    assert!(server.log().contains("max_connections_per_address"), "{}", server.log());
    drop(held);
    server.wait_until("there is room again", || is_served(&mut connect(1)));
}

//! Limits of HTTP clients: bytes, time and connections, over real sockets.
//!
//! No test asserts a duration: a test with a broken limit waits for `PATIENCE` and fails.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fetchwell_http::Limits;
use serde_json::{Value, json};

use crate::support::{Answer, HttpServer, OwnServer, ask, demo_store, get, memory_kib, post, text};

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Longest wait of a test for an expected event.
const PATIENCE: Duration = Duration::from_secs(30);

const SHORT: Duration = Duration::from_millis(200);

fn open(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn own(limits: Limits) -> OwnServer {
    OwnServer::start(limits, None, Duration::from_secs(20))
}

fn head(address: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends a message on a connection that stays open, and returns the response.
#[track_caller]
fn exchange(stream: &mut TcpStream, address: &str, message: &str) -> Value {
    stream.write_all(format!("{}{message}", head(address, message.len())).as_bytes()).unwrap();
    read_answer(stream)
}

#[track_caller]
fn read_answer(stream: &mut TcpStream) -> Value {
    let mut answer = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return serde_json::from_str(body).unwrap();
        }
    }
}

/// Reads until the server ends the connection in any way.
fn rest(mut stream: TcpStream) -> String {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("it did not end: {error}"),
    }
    String::from_utf8(rest).unwrap()
}

#[test]
fn a_request_head_that_never_ends_closes_its_connection_only() {
    let server = own(Limits { head: SHORT, ..Limits::default() });
    let mut quiet = open(&server.address);
    let mut used = open(&server.address);
    assert_eq!(exchange(&mut used, &server.address, PING)["id"], 1);
    for start in ["POST /mcp HTTP/1.1\r\nx: ", "P"] {
        let mut slow = open(&server.address);
        slow.write_all(start.as_bytes()).unwrap();
        slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // A byte from time to time does not extend the wait.
        let left = (0..1_500).find(|_| {
            let _ = slow.write_all(b"x");
            !matches!(slow.read(&mut [0; 64]), Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()))
        });
        assert!(left.is_some(), "{start:?}");
    }
    assert_eq!(exchange(&mut quiet, &server.address, PING)["id"], 1);
    assert_eq!(exchange(&mut used, &server.address, PING)["id"], 1);
}

#[test]
fn an_idle_connection_is_closed() {
    let server = own(Limits { idle: SHORT, ..Limits::default() });
    let silent = open(&server.address);
    let mut used = open(&server.address);
    assert_eq!(exchange(&mut used, &server.address, PING)["id"], 1);
    assert_eq!((rest(silent), rest(used)), (String::new(), String::new()));
    // A connection that waits for its response is not idle.
    let mut asking = open(&server.address);
    asking.write_all(format!("{}{SEARCH}", head(&server.address, SEARCH.len())).as_bytes()).unwrap();
    server.wait_for_search();
    std::thread::park_timeout(SHORT * 3);
    server.source.go.notify_one();
    assert_eq!(read_answer(&mut asking)["id"], 1);
}

#[test]
fn a_missing_body_times_out() {
    let server = own(Limits { body: SHORT, ..Limits::default() });
    for said in ["", "{\"jsonrpc\""] {
        let mut slow = open(&server.address);
        slow.write_all(format!("{}{said}", head(&server.address, 100)).as_bytes()).unwrap();
        let answer = rest(slow);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"code\":-32600"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    // The whole request has a timeout of its own.
    let limits = Limits { beyond_call: SHORT, ..Limits::default() };
    let server = OwnServer::start(limits, None, Duration::from_millis(10));
    let mut slow = open(&server.address);
    slow.write_all(head(&server.address, 100).as_bytes()).unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 504");
}

#[test]
fn too_large_heads_and_bodies_are_refused() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let get = |headers: &[&str]| ask(&server.address, "GET", "/health", headers).status;
    let long = |bytes: usize| format!("x-long: {}", "x".repeat(bytes));
    assert_eq!(get(&[&long(60_000)]), 200);
    assert_eq!(get(&[&long(70_000)]), 431);
    let many: Vec<String> = (0..101).map(|number| format!("x-{number}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    // `Host` and `Connection` count as well.
    assert_eq!(get(&many[..98]), 200);
    assert_eq!(get(&many[..99]), 431);
    let whole = |bytes: usize| format!("{}{}", PING, " ".repeat(bytes - PING.len()));
    let posted = |bytes: usize| post(&server.address, "/mcp", &[], &whole(bytes));
    assert_eq!(posted(1024 * 1024).status, 200);
    let refused = posted(1024 * 1024 + 1);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (413, &json!(-32600)));
    // With `Expect: 100-continue` such a body is not sent.
    let mut asking = open(&server.address);
    let expect =
        head(&server.address, 1024 * 1024 + 1).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    asking.write_all(expect.as_bytes()).unwrap();
    let refused = rest(asking);
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    // A body of unknown length is refused in the same way.
    let chunk = format!("{:x}\r\n{}\r\n0\r\n", 1024 * 1024 + 1, whole(1024 * 1024 + 1));
    let refused = ask(
        &server.address,
        "POST",
        "/mcp",
        &["content-type: application/json", &format!("transfer-encoding: chunked\r\n\r\n{chunk}")],
    );
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (413, &json!(-32600)));
}

#[test]
fn a_connection_over_the_limit_waits_for_another_to_end() {
    let server = own(Limits { connections: 4, ..Limits::default() });
    let mut four: Vec<TcpStream> = (0..4).map(|_| open(&server.address)).collect();
    for stream in &mut four {
        assert_eq!(exchange(stream, &server.address, PING)["id"], 1);
    }
    let mut fifth = open(&server.address);
    fifth.write_all(format!("{}{PING}", head(&server.address, PING.len())).as_bytes()).unwrap();
    fifth.set_read_timeout(Some(SHORT)).unwrap();
    assert!(fifth.read(&mut [0; 64]).is_err(), "it was served beside four others");
    // The other connections still work.
    for stream in &mut four {
        assert_eq!(exchange(stream, &server.address, PING)["id"], 1);
    }
    drop(four.pop());
    fifth.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(read_answer(&mut fifth)["id"], 1);
}

/// Number of connections that are held open; fewer if the limit of open files is lower.
#[cfg(target_os = "linux")]
const HELD: usize = 10_000;

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_idle_connections_delay_no_request() {
    let (folder, store) = demo_store();
    let file = folder.path().join("fetchwell.toml");
    std::fs::write(&file, "[http]\nmax_connections_per_address = 12000\n").unwrap();
    let server = HttpServer::start(["--store", text(&store), "--config", text(&file)]);
    let files = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = files.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: usize = files.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    let held = HELD.min(files.saturating_sub(1_000));
    let mut idle = Vec::with_capacity(held);
    for number in 0..held {
        let mut stream = open(&server.address);
        // Some have sent a request, some have sent a part of one, and some have sent nothing.
        match number % 100 {
            0 => assert_eq!(exchange(&mut stream, &server.address, PING)["id"], 1),
            1 => stream.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap(),
            _ => {}
        }
        idle.push(stream);
    }
    let answer = post(&server.address, "/mcp", &[], SEARCH);
    assert_eq!(answer.status, 200);
    assert!(answer.json()["result"]["content"][0]["text"].as_str().unwrap().contains("cin_"));
    let kib = memory_kib(server.process.id(), "VmRSS");
    println!("{kib} KiB with {held} idle connections");
    // A connection must not have large buffers of its own.
    assert!(kib < 400_000, "{kib} KiB with {held} connections");
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_open_files_limits_connections() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let (folder, store) = demo_store();
    let state = folder.path().join("state");
    for (limit, expect) in [("ulimit -n 900", Some("allowed_connections=450")), ("ulimit -S -n 300", None)] {
        let mut process = Command::new("sh")
            .args(["-c", &format!("{limit} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_fetchwell"), "serve"])
            .args(["--listen", "127.0.0.1:0", "--store", text(&store), "--state-dir", text(&state)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let first = lines.by_ref().find(|line| line.contains("://")).unwrap();
        if let Some(expect) = expect {
            let warned = lines.find(|line| line.contains("max_connections")).unwrap();
            assert!(warned.contains(expect) && warned.contains("LimitNOFILE"), "{warned}");
        }
        let address = first.split("://").nth(1).unwrap().split('/').next().unwrap();
        let many: Vec<TcpStream> = (0..400).map(|_| open(address)).collect();
        assert_eq!(post(address, "/mcp", &[], PING).status, 200);
        drop(many);
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn a_shutdown_waits_for_requests_in_flight_only() {
    let server = own(Limits { drain: PATIENCE, ..Limits::default() });
    let silent = open(&server.address);
    let mut used = open(&server.address);
    assert_eq!(exchange(&mut used, &server.address, PING)["id"], 1);
    let mut half_said = open(&server.address);
    half_said.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    let mut asking = open(&server.address);
    asking.write_all(format!("{}{SEARCH}", head(&server.address, SEARCH.len())).as_bytes()).unwrap();
    server.wait_for_search();
    server.stop.cancel();
    for stream in [silent, used, half_said] {
        assert_eq!(rest(stream), "");
    }
    server.source.go.notify_one();
    assert_eq!(read_answer(&mut asking)["id"], 1);
    assert_eq!(rest(asking), "");
    assert!(TcpStream::connect(&server.address).is_err());
}

#[test]
fn a_shutdown_has_a_timeout() {
    let server = own(Limits { drain: SHORT, ..Limits::default() });
    let mut asking = open(&server.address);
    asking.write_all(format!("{}{SEARCH}", head(&server.address, SEARCH.len())).as_bytes()).unwrap();
    server.wait_for_search();
    server.stop.cancel();
    let dropped = rest(asking);
    assert!(dropped.is_empty() || dropped.starts_with("HTTP/1.1 500"), "{dropped}");
}

fn http_2() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "a client as others write theirs")]
    reqwest::Client::builder().http2_prior_knowledge().timeout(PATIENCE).build().unwrap()
}

fn message(client: &reqwest::Client, address: &str, body: &'static str) -> reqwest::RequestBuilder {
    client.post(format!("http://{address}/mcp")).header("content-type", "application/json").body(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_served_with_prior_knowledge() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let client = http_2();
    let calls = (0..50).map(|_| async {
        let answer = message(&client, &server.address, SEARCH).send().await.unwrap();
        assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("cin_"));
    });
    futures_util::future::join_all(calls).await;
    let get = |header: &'static str, value: String| {
        client.get(format!("http://{}/health", server.address)).header(header, value).send()
    };
    assert_eq!(get("origin", "https://evil.example".to_owned()).await.unwrap().status(), 403);
    assert_eq!(get("x-long", "x".repeat(70_000)).await.map_or(431, |answer| answer.status().as_u16()), 431);
    let mut many = client.get(format!("http://{}/health", server.address));
    for number in 0..101 {
        many = many.header(format!("x-{number}"), "y");
    }
    assert_eq!(many.send().await.unwrap().status(), 431);
}

#[test]
fn a_shutdown_drains_http_2() {
    let server = own(Limits { drain: PATIENCE, ..Limits::default() });
    let client_runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = http_2();
    let idle = http_2();
    let ping = client_runtime.block_on(async { message(&idle, &server.address, PING).send().await }).unwrap();
    assert_eq!(ping.status(), 200);
    let call = client_runtime.spawn({
        let call = message(&client, &server.address, SEARCH);
        async move { call.send().await }
    });
    server.wait_for_search();
    server.stop.cancel();
    server.source.go.notify_one();
    let answer = client_runtime.block_on(call).unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    // The idle connection may learn of the shutdown after the answer was sent.
    let ping = || client_runtime.block_on(async { message(&idle, &server.address, PING).send().await });
    let started = Instant::now();
    while ping().is_ok() {
        assert!(started.elapsed() < PATIENCE, "the idle connection stays open");
    }
}

#[test]
fn a_panic_of_a_handler_is_answered_and_the_server_continues() {
    let server = own(Limits::default());
    for _ in 0..3 {
        let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"fetch","arguments":{"id":"c/s:k"}}}"#;
        let answer = post(&server.address, "/mcp", &[], call).json();
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!((&answer["id"], &error["code"]), (&json!(9), &json!("internal_error")), "{answer}");
        let answer: Answer = get(&server.address, "/v1/streams/s/records");
        assert_eq!(answer.status, 500, "{answer:?}");
    }
    assert_eq!(post(&server.address, "/mcp", &[], PING).status, 200);
    let metrics = get(&server.address, "/metrics").text;
    let counted = "fetchwell_requests_total{endpoint=\"tool:fetch\",outcome=\"internal_error\"} 3";
    assert!(metrics.contains(counted), "{metrics}");
}

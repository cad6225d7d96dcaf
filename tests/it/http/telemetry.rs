//! Records of calls: `/health`, `/metrics`, `fetchwell telemetry`, and request ids.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    Answer, CREDENTIAL, FakeServer, HttpServer, Reply, Scrape, ask, connect, demo_store, fetchwell, get,
    import_records, post, stderr, stdout, text, wait_until,
};

/// Calls a tool over MCP.
#[track_caller]
fn tool(server: &HttpServer, name: &str, arguments: &Value, headers: &[&str]) -> Answer {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments},
    });
    post(&server.address, "/mcp", headers, &body.to_string())
}

fn health(server: &HttpServer) -> Value {
    let answer = get(&server.address, "/health");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Returns the recorded calls in order.
#[track_caller]
fn tail(state: &Path, filters: &[&str]) -> Vec<Value> {
    let mut command = crate::support::binary();
    command.args(["telemetry", "tail", "--json", "-n", "1000", "--state-dir", text(state)]).args(filters);
    let shown = stdout(&command.output().unwrap());
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

/// Counts of the calls that a test makes.
#[derive(Debug, Default)]
struct CallCounts {
    calls: u32,
    lists: u32,
    pieces: u32,
    errors: u32,
    bytes: usize,
    sizes: Vec<(String, usize)>,
}

/// Makes a hundred calls of every kind.
fn hundred_calls(server: &HttpServer) -> CallCounts {
    let mut counted = CallCounts::default();
    for number in 0..100 {
        let id = format!("call-{number}");
        let header = format!("Request-Id: {id}");
        let bytes = match number % 5 {
            4 => {
                let (name, arguments) = [
                    ("search", json!({"query": "invoice", "limit": 1})),
                    ("fetch", json!({"id": "no handle"})),
                    ("no_such_tool", json!({})),
                    ("search", json!({"cursor": "fw1_AAAA"})),
                ][number / 5 % 4]
                    .clone();
                let answer = tool(server, name, &arguments, &[&header]).json();
                let shown = answer["result"]["content"][0]["text"].as_str();
                let shown = shown.or_else(|| answer["error"]["message"].as_str());
                counted.errors += u32::from(answer["result"]["isError"] != false);
                counted.lists += u32::from(answer["result"]["structuredContent"]["results"].is_array());
                shown.map_or(0, str::len)
            }
            kind => {
                let target = [
                    "/v1/search?q=invoice&limit=2",
                    "/v1/streams",
                    "/v1/streams/nowhere/records",
                    "/v1/streams/messages/records/m1/field-window?field=body&limit_chars=5&connection_id=cin_work",
                ][kind];
                let answer = ask(&server.address, "GET", target, &[&header]);
                counted.errors += u32::from(answer.status != 200);
                counted.lists += u32::from(kind == 0 && answer.status == 200);
                counted.pieces += u32::from(answer.json()["window"]["complete"] == false);
                answer.text.len()
            }
        };
        counted.calls += 1;
        counted.bytes += bytes;
        counted.sizes.push((id, bytes));
    }
    counted
}

#[cfg(unix)]
#[test]
fn a_hundred_calls_are_recorded_and_counted_exactly() {
    let (_folder, store) = demo_store();
    let state = tempfile::tempdir().unwrap();
    let start = || HttpServer::start(["--store", text(&store), "--state-dir", text(state.path())]);
    let server = start();
    let counted = hundred_calls(&server);
    assert!(
        counted.lists >= 20 && counted.lists < 50 && counted.pieces >= 20 && counted.errors >= 30,
        "{counted:?}"
    );

    let figures = health(&server)["context_protection"].clone();
    let share = |number: u32| json!(rounded(f64::from(number) / 100.0));
    assert_eq!(figures["total_requests"], 100);
    // The share is that of lists only.
    assert_eq!(figures["pagination_adoption"], 1.0);
    assert_eq!(figures["chunking_adoption"], share(counted.pieces));
    assert_eq!(figures["summarization_adoption"], share(0));
    assert_eq!(figures["avg_response_size_bytes"], json!(rounded(counted.bytes as f64 / 100.0)));

    let scraped = Scrape::read(&get(&server.address, "/metrics").text);
    assert_eq!(scraped.sum("fetchwell_requests_total{"), 100.0);
    assert_eq!(scraped.sum("fetchwell_request_duration_seconds_count{"), 100.0);
    assert_eq!(scraped.value("fetchwell_response_bytes_sum"), counted.bytes as f64);
    assert_eq!(scraped.value("fetchwell_pagination_adoption"), 1.0);
    // Each search over MCP creates a cursor, and each creation is timed.
    let encoded = scraped.value("fetchwell_cursor_encode_seconds_count");
    assert!(encoded == 5.0 && scraped.value("fetchwell_cursor_encode_seconds_sum") > 0.0, "{encoded}");

    for (endpoint, outcome, expect) in [
        ("/v1/search", "ok", 20.0),
        ("/v1/streams", "ok", 20.0),
        ("/v1/streams/{stream}/records", "stream_not_declared", 20.0),
        ("/v1/streams/{stream}/records/{id}/field-window", "ok", 20.0),
        ("tool:search", "ok", 5.0),
        ("tool:search", "invalid_cursor", 5.0),
        ("tool:fetch", "invalid_handle", 5.0),
        ("tool:unknown", "unknown_tool", 5.0),
    ] {
        let sample = format!("fetchwell_requests_total{{endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}");
        assert_eq!(scraped.value(&sample), expect, "{sample}");
    }
    assert_eq!(scraped.value("fetchwell_invalid_cursors_total{reason=\"malformed\"}"), 5.0);

    // The server is stopped right after its last call, which must be recorded.
    server.stop();
    let rows = tail(state.path(), &[]);
    assert_eq!(rows.len(), 100);
    let paged = rows.iter().filter(|row| row["pagination_used"] == true).count();
    assert_eq!(paged, counted.lists as usize);
    for (row, (id, bytes)) in rows.iter().zip(&counted.sizes) {
        assert_eq!((&row["request_id"], &row["response_bytes"]), (&json!(id), &json!(bytes)), "{row}");
    }

    let server = start();
    let after = health(&server);
    let latencies = ["avg_latency_ms", "p50_latency_ms", "p95_latency_ms", "p99_latency_ms"];
    for name in ["total_requests", "pagination_adoption", "avg_response_size_bytes"].iter().chain(&latencies)
    {
        assert_eq!(after["context_protection"][name], figures[name], "{name}");
    }
    assert_eq!(after["telemetry"], json!({"stored": 100, "dropped": 0, "state": "ok"}));
    let scraped = Scrape::read(&get(&server.address, "/metrics").text);
    assert_eq!(scraped.sum("fetchwell_requests_total{"), 0.0);
}

#[test]
fn a_small_ring_loses_no_record_of_the_file() {
    let (folder, _store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let source = "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n[telemetry]\nring = 3\n";
    std::fs::write(&config, source).unwrap();
    let state = folder.path().join("state");
    let server = HttpServer::start(["--config", text(&config), "--state-dir", text(&state)]);
    for _ in 0..20 {
        get(&server.address, "/v1/streams");
    }
    wait_until("all are written", || health(&server)["telemetry"]["stored"] == 20);
    assert_eq!(health(&server)["telemetry"]["dropped"], 0);
}

#[cfg(unix)]
#[test]
fn refused_requests_are_recorded_with_their_id_and_size() {
    let (folder, _store) = demo_store();
    let state = tempfile::tempdir().unwrap();
    let config = folder.path().join("fetchwell.toml");
    let limits =
        "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n[rate_limit]\nrequests = 2\nper = \"1h\"\n";
    std::fs::write(&config, limits).unwrap();
    let server = HttpServer::start(["--config", text(&config), "--state-dir", text(state.path())]);
    let mut sent = Vec::new();
    for (method, target, status, outcome) in [
        ("HEAD", "/v1/schema", 405, "method_not_allowed"),
        ("POST", "/v1/schema", 405, "method_not_allowed"),
        ("GET", "/v1/schema", 429, "rate_limited"),
        ("GET", "/nowhere", 429, "rate_limited"),
        ("POST", "/mcp", 429, "rate_limited"),
        ("HEAD", "/nowhere", 429, "rate_limited"),
    ] {
        let answer = ask(&server.address, method, target, &[]);
        assert_eq!((answer.status, answer.text.is_empty()), (status, method == "HEAD"), "{answer:?}");
        sent.push((answer.header("request-id").unwrap().to_owned(), answer.text.len(), outcome));
    }
    server.stop();
    let rows = tail(state.path(), &[]);
    assert_eq!(rows.len(), sent.len());
    for (row, (id, bytes, outcome)) in rows.iter().zip(&sent) {
        let recorded = (&row["request_id"], &row["response_bytes"], &row["outcome"]);
        assert_eq!(recorded, (&json!(id), &json!(bytes), &json!(outcome)), "{row}");
    }
}

#[test]
fn health_is_complete_and_does_not_count_itself() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for _ in 0..3 {
        get(&server.address, "/metrics");
        get(&server.address, "/health");
    }
    let health = health(&server);
    for (name, expect) in [
        ("status", "healthy"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("service", "fetchwell"),
        ("database", "connected"),
        ("cache", "connected"),
        ("cache_kind", "memory"),
    ] {
        assert_eq!(health[name], expect, "{health}");
    }
    assert!(health["timestamp"].as_str().unwrap().ends_with('Z'), "{health}");
    assert!(health["uptime_seconds"].is_u64(), "{health}");
    let figures = health["context_protection"].as_object().unwrap();
    assert_eq!((figures.len(), figures.values().all(Value::is_number)), (11, true), "{health}");
    for name in ["total_requests", "oversized_events"] {
        assert_eq!(figures[name], 0, "{name}");
    }
    for name in ["pagination_adoption", "summarization_adoption", "chunking_adoption", "avg_latency_ms"] {
        assert_eq!(figures[name], 0.0, "{name}");
    }
}

#[test]
fn the_request_counter_counts_what_its_help_says() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for target in ["/v1/schema", "/api/v1", "/openapi.json"] {
        get(&server.address, target);
    }
    let metrics = get(&server.address, "/metrics").text;
    assert_eq!(Scrape::read(&metrics).sum("fetchwell_requests_total{"), 3.0);
    let help =
        "fetchwell_requests_total Calls of tools, of /v1, /api/v1 and /openapi.json, by how they ended.";
    assert!(metrics.contains(help), "{metrics}");
}

#[test]
fn other_hosts_and_origins_cannot_read_metrics() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for target in ["/health", "/metrics"] {
        assert_eq!(ask(&server.address, "GET", target, &["host: evil.example"]).status, 403);
        assert_eq!(ask(&server.address, "GET", target, &["origin: https://evil.example"]).status, 403);
        assert_eq!(ask(&server.address, "GET", target, &["host: localhost"]).status, 200);
        assert_eq!(ask(&server.address, "DELETE", target, &[]).status, 405);
    }
}

#[test]
fn a_missing_store_is_unhealthy_until_it_is_back() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let aside = store.with_extension("aside");
    std::fs::rename(&store, &aside).unwrap();
    let answer = get(&server.address, "/health");
    let body = answer.json();
    assert_eq!(
        (answer.status, &body["status"], &body["database"]),
        (503, &json!("unhealthy"), &json!("disconnected"))
    );
    assert_eq!(body["error"], "Database connection failed");
    std::fs::rename(&aside, &store).unwrap();
    assert_eq!(health(&server)["status"], "healthy");
}

#[test]
fn one_missing_source_of_two_is_degraded() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.db", "other.db"].map(|name| folder.path().join(name));
    for (store, connection) in [(&one, "c_one"), (&other, "c_other")] {
        let record = r#"{"stream":"messages","key":"m1","data":{"id":"m1","body":"text"},"emitted_at":"2026-01-01T00:00:00Z"}"#;
        import_records(store, connection, &format!("{record}\n"));
    }
    let config = folder.path().join("fetchwell.toml");
    let sources = "[[source]]\nname = \"one\"\nstore = \"one.db\"\n[[source]]\nname = \"other\"\nstore = \"other.db\"\n";
    std::fs::write(&config, sources).unwrap();
    let server = HttpServer::start(["--config", text(&config)]);
    assert_eq!(health(&server)["status"], "healthy");
    std::fs::remove_file(&one).unwrap();
    let degraded = health(&server);
    assert_eq!((&degraded["status"], &degraded["database"]), (&json!("degraded"), &json!("connected")));
    assert_eq!(degraded["unavailable"], json!([{"source": "one", "code": "source_unavailable"}]));
    std::fs::remove_file(&other).unwrap();
    assert_eq!(get(&server.address, "/health").status, 503);
}

#[test]
fn a_source_with_an_open_circuit_is_degraded_without_a_probe() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("near.db");
    import_records(
        &store,
        "c_near",
        "{\"stream\":\"messages\",\"key\":\"m1\",\"data\":{\"body\":\"text\"}}\n",
    );
    let far = FakeServer::start(|_| Reply::Abort);
    connect(folder.path(), &far.url, CREDENTIAL);
    let config = folder.path().join("fetchwell.toml");
    let near = "[[source]]\nname = \"near\"\nstore = \"near.db\"\n";
    let sources = format!("{near}[[source]]\nname = \"far\"\nurl = \"{}\"\ncache_root = \".\"\n", far.url);
    std::fs::write(&config, sources).unwrap();
    let server = HttpServer::start(["--config", text(&config)]);
    let asked = far.requests().len();
    assert_eq!((&health(&server)["status"], far.requests().len()), (&json!("healthy"), asked));
    for _ in 0..3 {
        assert_eq!(get(&server.address, "/v1/search?q=text").status, 200);
    }
    let asked = far.requests().len();
    let degraded = health(&server);
    assert_eq!((&degraded["status"], far.requests().len()), (&json!("degraded"), asked));
    assert_eq!(degraded["unavailable"][0]["source"], "far", "{degraded}");
}

#[test]
fn every_response_has_the_request_id() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    for target in ["/v1/streams", "/v1/nowhere", "/health", "/metrics", "/nowhere", "/mcp"] {
        for name in ["Request-Id", "X-Request-Id", "X-Correlation-ID"] {
            let answer = ask(&server.address, "GET", target, &[&format!("{name}: mine.1")]);
            for echoed in ["request-id", "x-correlation-id"] {
                assert_eq!(answer.header(echoed), Some("mine.1"), "{target} {name}: {answer:?}");
            }
        }
        let answer = ask(&server.address, "GET", target, &["x-request-id: <script>"]);
        assert!(answer.header("request-id").unwrap().starts_with("req_"), "{answer:?}");
        assert_eq!(answer.header("request-id"), answer.header("x-correlation-id"));
    }
    // The result that a model reads has an id only if the client sent one.
    let query = json!({"query": "invoice"});
    let named = tool(&server, "search", &query, &["x-correlation-id: mine.2"]);
    assert_eq!(named.header("request-id"), Some("mine.2"));
    assert_eq!(named.json()["result"]["_meta"], json!({"request_id": "mine.2"}));
    let refused = tool(&server, "fetch", &json!({"id": ""}), &["x-correlation-id: mine.3"]);
    assert_eq!(refused.json()["result"]["_meta"]["request_id"], "mine.3");
    for headers in [&[][..], &["x-request-id: a b"]] {
        let unnamed = tool(&server, "search", &query, headers);
        assert!(unnamed.json()["result"].get("_meta").is_none(), "{unnamed:?}");
    }
}

#[test]
fn an_unusable_telemetry_file_fails_no_call() {
    let (_folder, store) = demo_store();
    for (is_folder, what) in [(false, "damaged"), (true, "a folder")] {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("telemetry.db");
        if is_folder {
            std::fs::create_dir(&file).unwrap();
        } else {
            std::fs::write(&file, "no database, and longer than the header of one: ".repeat(5)).unwrap();
        }
        let server = HttpServer::start(["--store", text(&store), "--state-dir", text(state.path())]);
        for _ in 0..10 {
            assert_eq!(get(&server.address, "/v1/streams").status, 200, "{what}");
        }
        let health = health(&server);
        assert_eq!(
            (&health["status"], &health["telemetry"]["state"]),
            (&json!("healthy"), &json!("degraded"))
        );
        assert_eq!(health["context_protection"]["total_requests"], 10, "{what}");
        let log = server.end();
        assert_eq!(log.matches("telemetry cannot be written").count(), 1, "{log}");
    }
}

#[test]
fn a_call_of_a_disconnected_client_is_counted_once() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = FakeServer::start(|_| Reply::Hang);
    connect(folder.path(), &source.url, CREDENTIAL);
    let server = HttpServer::start([
        "--provider-url",
        &source.url,
        "--cache-root",
        text(folder.path()),
        "--state-dir",
        text(state.path()),
    ]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(stream, "GET /v1/search?q=x HTTP/1.1\r\nhost: {}\r\nx-request-id: left\r\n\r\n", server.address)
        .unwrap();
    source.wait_for_request();
    drop(stream);
    source.wait_until_abandoned();
    wait_until("the call was recorded", || health(&server)["telemetry"]["stored"] == 1);
    let rows = tail(state.path(), &[]);
    assert_eq!(
        (rows.len(), &rows[0]["outcome"], &rows[0]["request_id"]),
        (1, &json!("cancelled"), &json!("left"))
    );
    assert_eq!(health(&server)["context_protection"]["total_requests"], 1);
}

#[test]
fn recorded_calls_are_shown_beside_a_running_server() {
    let (_folder, store) = demo_store();
    let state = tempfile::tempdir().unwrap();
    let server = HttpServer::start(["--store", text(&store), "--state-dir", text(state.path())]);
    let missing = fetchwell(["telemetry", "endpoints", "--state-dir", "/no/such/folder"]);
    assert!(stderr(&missing).contains("fetchwell serve") && missing.status.code() == Some(1), "{missing:?}");
    get(&server.address, "/v1/streams");
    get(&server.address, "/v1/search?q=secretive");
    get(&server.address, "/v1/search?q=secretive&cursor=x%20y");
    get(&server.address, "/v1/streams/nowhere/records");
    wait_until("the calls were written", || health(&server)["telemetry"]["stored"] == 4);
    let scraped = Scrape::read(&get(&server.address, "/metrics").text);
    assert_eq!(scraped.value("fetchwell_invalid_cursors_total{reason=\"malformed\"}"), 1.0);
    for (filters, expect) in [
        (&[][..], 4),
        (&["--endpoint", "/v1/search"], 2),
        (&["--outcome", "stream_not_declared"], 1),
        (&["--outcome", "ok", "--since", "1h"], 2),
        (&["--outcome", "cancelled"], 0),
    ] {
        assert_eq!(tail(state.path(), filters).len(), expect, "{filters:?}");
    }
    let shown = fetchwell(["telemetry", "endpoints", "--json", "--state-dir", text(state.path())]);
    let endpoints: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!(endpoints.as_array().unwrap().len(), 3, "{endpoints}");
    assert_eq!((&endpoints[0]["endpoint"], &endpoints[0]["calls"]), (&json!("/v1/search"), &json!(2)));
    let shown = stdout(&fetchwell(["telemetry", "tail", "--state-dir", text(state.path())]));
    assert_eq!(shown.lines().count(), 5, "{shown}");
    // Neither the file nor its write-ahead log contains a query.
    for name in ["telemetry.db", "telemetry.db-wal"] {
        let kept = std::fs::read(state.path().join(name)).unwrap();
        let has = |word: &[u8]| kept.windows(word.len()).any(|window| window == word);
        assert!(!has(b"secretive") && !has(b"nowhere"), "{name}");
    }
    let wrong = fetchwell(["telemetry", "tail", "--since", "yesterday"]);
    assert!(wrong.status.code() == Some(2) && stderr(&wrong).contains("10m"), "{wrong:?}");
}

#[test]
fn servers_of_one_directory_count_together() {
    let (_folder, store) = demo_store();
    let state = tempfile::tempdir().unwrap();
    let start = || HttpServer::start(["--store", text(&store), "--state-dir", text(state.path())]);
    let (one, other) = (start(), start());
    for _ in 0..20 {
        get(&one.address, "/v1/streams");
        get(&other.address, "/v1/streams");
    }
    let rows = || tail(state.path(), &[]).len();
    wait_until("all was written", || rows() == 40);
    assert_eq!(health(&start())["context_protection"]["total_requests"], 40);
}

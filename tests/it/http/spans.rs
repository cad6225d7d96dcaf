//! Calls as OpenTelemetry spans: the spans that a collector receives, and the effect of a collector that does not
//! answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use crate::support::{HttpServer, demo_store, post, text};

/// A collector that takes spans over HTTP, or accepts connections and never answers.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || while take(&stream, &kept, answers).is_some() {});
            }
        });
        Self { url, bodies }
    }

    fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().unwrap().clone()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.bodies().into_iter();
        let requests = requests.map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|of| of.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// Reads one request, keeps its body, and answers it.
fn take(mut stream: &TcpStream, kept: &Mutex<Vec<Vec<u8>>>, answers: bool) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    kept.lock().unwrap().push(body);
    if !answers {
        // The exporter gives up first.
        return stream.read_exact(&mut [0]).ok();
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn call(server: &HttpServer, name: &str, headers: &[&str]) -> u16 {
    let arguments = json!({"query": "invoice", "id": "no handle"});
    let arguments =
        if name == "search" { json!({"query": arguments["query"]}) } else { json!({"id": arguments["id"]}) };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}});
    post(&server.address, "/mcp", headers, &call.to_string()).status
}

/// Returns a configuration of a store with this collector.
fn configured(collector: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, store) = demo_store();
    let path = folder.path().join("fetchwell.toml");
    let settings = format!(
        "[telemetry]\notlp_endpoint = \"{collector}\"\n[[source]]\nname = \"notes\"\nstore = '{}'\n",
        text(&store)
    );
    std::fs::write(&path, settings).unwrap();
    (folder, path)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
#[test]
fn a_call_is_a_child_span_of_its_caller() {
    let collector = Collector::start(true);
    let (_folder, config) = configured(&collector.url);
    let server = HttpServer::start(["--config", text(&config)]);
    let parent = format!("traceparent: 00-{TRACE}-{PARENT}-01");
    assert_eq!(call(&server, "search", &[&parent, "tracestate: vendor=sekret", "Request-Id: traced-1"]), 200);
    assert_eq!(call(&server, "fetch", &["Request-Id: root-1"]), 200);
    let unsampled = format!("traceparent: 00-{TRACE}-{PARENT}-00");
    assert_eq!(call(&server, "search", &[&unsampled]), 200);
    server.stop();

    let spans = collector.spans();
    let [traced, root] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(traced.name, "tool:search");
    assert_eq!((hex(&traced.trace_id), hex(&traced.parent_span_id)), (TRACE.to_owned(), PARENT.to_owned()));
    assert!(traced.start_time_unix_nano < traced.end_time_unix_nano);
    let keys = |span: &Span| span.attributes.iter().map(|of| of.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(traced), ["request_id", "outcome", "response_bytes", "latency_us"]);
    assert_eq!((root.name.as_str(), root.parent_span_id.len()), ("tool:fetch", 0));
    assert_ne!(root.trace_id, traced.trace_id);
    assert_eq!(root.status.as_ref().unwrap().message, "invalid_handle");
    assert!(traced.status.as_ref().is_none_or(|status| status.code == 0), "{traced:?}");
    let sent = collector.bodies().concat();
    let contains = |text: &str| sent.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("traced-1") && contains("fetchwell"));
    for secret in ["invoice", "Invoice", "no handle", "sekret"] {
        assert!(!contains(secret), "{secret}");
    }
}

#[cfg(unix)]
#[test]
fn a_collector_that_does_not_answer_delays_no_call() {
    let hanging = Collector::start(false);
    let (_folder, config) = configured(&hanging.url);
    let server = HttpServer::start(["--config", text(&config)]);
    let waits = Instant::now();
    while hanging.bodies().is_empty() {
        assert_eq!(call(&server, "search", &[]), 200);
        assert!(waits.elapsed() < Duration::from_secs(30), "no span was sent");
    }
    // Spans are queued while the collector holds a batch.
    for _ in 0..50 {
        assert_eq!(call(&server, "search", &[]), 200);
    }
    server.stop();
}

#[cfg(unix)]
#[test]
fn a_missing_collector_causes_one_warning() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_folder, store) = demo_store();
    let mut command = crate::support::binary();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{unused}/"));
    let server = HttpServer::start_with(command, "127.0.0.1:0", ["--store", text(&store)]);
    for _ in 0..3 {
        assert_eq!(call(&server, "search", &[]), 200);
    }
    let log = server.stop();
    assert_eq!(log.matches("the collector takes no spans").count(), 1, "{log}");
}

#[test]
fn an_invalid_collector_is_refused_at_startup() {
    let (_folder, config) = configured("127.0.0.1:4318");
    let refused = crate::support::fetchwell(["serve", "--config", text(&config)]);
    let problem = crate::support::stderr(&refused);
    assert!(
        problem.contains("2: telemetry.otlp_endpoint: write where the collector takes OTLP"),
        "{problem}"
    );
}

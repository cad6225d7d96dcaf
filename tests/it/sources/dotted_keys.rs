//! Record keys with `.` and `..` between separators: handles, imports, and requests to a record server behind servers
//! and proxies that decode paths in different ways.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::support::{
    CREDENTIAL, FakeServer, HttpServer, Model, Reply, Request, connect, demo_store, get, import_records, text,
};

/// Keys of one stream, `documents`, and their handles.
const KEYS: [(&str, &str); 5] = [
    ("../escape", "cin/documents/%2E%2E%2Fescape"),
    ("../../messages/records/m1", "cin/documents/%2E%2E%2F%2E%2E%2Fmessages%2Frecords%2Fm1"),
    ("./a", "cin/documents/%2E%2Fa"),
    ("a/../b c", "cin/documents/a%2F%2E%2E%2Fb%20c"),
    ("..\\a", "cin/documents/%2E%2E%5Ca"),
];

/// The decoding of a path on its way to the handler of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The server decodes each segment once.
    Once,
    /// The server decodes each segment twice, as the reference server does.
    Twice,
    /// A proxy decodes the path and resolves dots, before a server that decodes it once.
    Resolved,
    /// A proxy decodes the path twice and resolves dots.
    ResolvedTwice,
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Resolves `.` and `..` as a proxy does.
fn resolved(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

/// Returns the stream and the key of a request, and true for a request of a window.
fn place(path: &str, way: Way) -> Option<(String, String, bool)> {
    let path = match way {
        Way::Once | Way::Twice => path.to_owned(),
        Way::Resolved => resolved(&decoded(path)),
        Way::ResolvedTwice => resolved(&decoded(&decoded(path))),
    };
    let (path, is_window) = path.strip_suffix("/field-window").map_or((&*path, false), |path| (path, true));
    let (stream, key) = path.strip_prefix("/v1/streams/")?.split_once("/records/")?;
    let key = if way == Way::Twice { decoded(&decoded(key)) } else { decoded(key) };
    (!stream.contains('/')).then(|| (stream.to_owned(), key, is_window))
}

/// Returns the record that the path leads to: any message, or one of the documents.
fn answer(request: &Request, way: Way) -> Reply {
    let line = request.line.trim_start_matches("GET ");
    let path = line.split('?').next().unwrap();
    if path.starts_with("/v1/search") {
        let hit = |(key, _): &(&str, &str)| json!({"stream": "documents", "record_key": key, "connection_id": "cin", "title": key});
        let hits: Vec<Value> = KEYS.iter().chain(&[("..", ""), (".", "")]).map(hit).collect();
        return Reply::Json(200, json!({"data": hits}).to_string());
    }
    let found = place(path, way)
        .filter(|(stream, key, _)| stream == "messages" || KEYS.iter().any(|(known, _)| known == key));
    let Some((stream, key, is_window)) = found else {
        let error = json!({"error": {"code": "not_found", "message": "Record not found"}});
        return Reply::Json(404, error.to_string());
    };
    let body = format!("the text of {key} in {stream}");
    let reply = if is_window {
        json!({"object": "field_window", "stream": stream, "record_id": key,
            "window": {"text": body, "start_chars": 0, "total_chars": body.chars().count()}})
    } else {
        json!({"object": "record", "id": key, "stream": stream, "data": {"body": body}})
    };
    Reply::Json(200, reply.to_string())
}

async fn model_of(url: &str) -> (Model, tempfile::TempDir) {
    let cache = tempfile::tempdir().unwrap();
    connect(cache.path(), url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", url, "--cache-root", text(cache.path())]).await;
    (model, cache)
}

/// Fetches every record by the id that a search prints, whole and as a window.
async fn check_reachable(url: &str, way: &str) {
    let (model, _cache) = model_of(url).await;
    let found = model.call("search", json!({"query": "x", "limit": 20})).await;
    let ids: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, KEYS.map(|(_, handle)| handle), "{way}");
    assert_eq!(found["omitted"], 2, "{way}");
    for (key, handle) in KEYS {
        let expect = format!("the text of {key} in documents");
        let fetched = model.call("fetch", json!({"id": handle})).await;
        assert_eq!((&fetched["id"], &fetched["text"]), (&json!(handle), &json!(expect)), "{way}");
        let window = model.call("read_record_field", json!({"id": handle, "field": "body"})).await;
        assert_eq!(window["text"], expect, "{way}");
    }
}

#[tokio::test]
async fn keys_with_dots_are_read_if_paths_are_decoded_once_or_twice() {
    for way in [Way::Once, Way::Twice, Way::Resolved] {
        let server = FakeServer::start(move |request| answer(request, way));
        check_reachable(&server.url, &format!("{way:?}")).await;
        // Every path has the intended segments.
        for request in server.requests() {
            let url =
                url::Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
            // The last is the metadata of the server, which names its kinds of search.
            let paths =
                ["/v1/search", "/v1/streams/documents/records/", "/.well-known/oauth-protected-resource"];
            assert!(paths.iter().any(|path| url.path().starts_with(path)), "{url}");
            assert!(request.line.ends_with(&url[url::Position::BeforePath..]), "{}", request.line);
        }
    }
}

/// Checks that each fetch returns the record itself or `not_found`, and never another record.
async fn check_never_another(url: &str) {
    let (model, _cache) = model_of(url).await;
    for (_, handle) in KEYS.into_iter().filter(|(key, _)| key.contains('/')) {
        for (tool, arguments) in
            [("fetch", json!({"id": handle})), ("read_record_field", json!({"id": handle, "field": "body"}))]
        {
            let refused = model.refusal(tool, arguments).await;
            assert_eq!(refused["code"], "not_found", "{refused}");
            assert!(!refused.to_string().contains("the text of"), "{refused}");
        }
    }
}

#[tokio::test]
async fn another_record_is_never_given_for_a_key_with_dots() {
    let server = FakeServer::start(|request| answer(request, Way::ResolvedTwice));
    let (model, _cache) = model_of(&server.url).await;
    let handle = KEYS[1].1;
    // The proxy resolves this path to the message `m1` at both attempts.
    let refused = model.refusal("fetch", json!({"id": handle})).await;
    assert!(refused["message"].as_str().unwrap().contains("another record"), "{refused}");
    check_never_another(&server.url).await;
}

#[tokio::test]
async fn keys_with_dots_are_imported_and_served() {
    let (_folder, store) = demo_store();
    let lines: Vec<String> = KEYS
        .iter()
        .map(|(key, _)| {
            json!({"stream": "documents", "key": key, "data": {"body": format!("zebra {key}")}}).to_string()
        })
        .collect();
    import_records(&store, "cin", &lines.join("\n"));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let found = model.call("search", json!({"query": "zebra", "limit": 20})).await;
    let mut ids: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let mut expect = KEYS.map(|(_, handle)| handle);
    expect.sort_unstable();
    assert_eq!(ids, expect);
    for (key, handle) in KEYS {
        let fetched = model.call("fetch", json!({"id": handle})).await;
        assert_eq!(fetched["text"], format!("zebra {key}"));
        let uri = format!("pdpp://record/{handle}");
        assert_eq!(model.call("fetch", json!({"id": uri})).await["id"], handle);
    }
    let refused = model.refusal("fetch", json!({"id": "cin/documents/..%2Fescape"})).await;
    assert!(refused["hint"].as_str().unwrap().contains(KEYS[0].1), "{refused}");
    for dots in ["cin/documents/%2E%2E", "cin/documents/..", "cin/documents:.."] {
        assert_eq!(model.refusal("fetch", json!({"id": dots})).await["code"], "invalid_handle", "{dots}");
    }
    // Over HTTP, the router sees the path as it is sent.
    let server = HttpServer::start(["--store", text(&store)]);
    for (key, handle) in KEYS {
        let encoded = handle.rsplit('/').next().unwrap();
        let record =
            get(&server.address, &format!("/v1/streams/documents/records/{encoded}?connection_id=cin"));
        let record: Value = serde_json::from_str(&record.text).unwrap();
        assert_eq!(record["id"], key, "{record}");
    }
}

/// A process that is killed when it is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a port accepts connections.
fn wait_for(port: u16) {
    let started = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[tokio::test]
#[ignore = "needs nginx on the PATH; run with --ignored"]
async fn keys_with_dots_are_read_through_nginx() {
    for way in [Way::Once, Way::Twice] {
        // With a path in `proxy_pass`, nginx decodes and resolves the path that it forwards.
        for target in ["", "/"] {
            let server = FakeServer::start(move |request| answer(request, way));
            let folder = tempfile::tempdir().unwrap();
            let port = {
                let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                free.local_addr().unwrap().port()
            };
            let config = format!(
                "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log; events {{}} http {{ access_log off; \
                 client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; \
                 scgi_temp_path {0}/s; server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {1}{target}; }} }} }}",
                text(folder.path()),
                server.url
            );
            let path = folder.path().join("nginx.conf");
            std::fs::write(&path, config).unwrap();
            let nginx = Command::new("nginx")
                .args(["-c", text(&path)])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let _nginx = KillOnDrop(nginx.unwrap());
            wait_for(port);
            let url = format!("http://127.0.0.1:{port}");
            if (way, target) == (Way::Once, "/") {
                // nginx escapes again after decoding once, so no path leads to a key with a `/`.
                check_never_another(&url).await;
            } else {
                check_reachable(&url, &format!("{way:?} {target:?}")).await;
            }
        }
    }
}

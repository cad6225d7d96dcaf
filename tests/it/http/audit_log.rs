//! The audit log: which record was read by which call, over stdio, HTTP and pages.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::handbook;
use crate::support::hosted::{ANN, BOB, HEAD, Place, STORES, bearer, call, start, token};
use crate::support::{HttpServer, Model, ask, demo_store, fetchwell, post, text};

/// Returns the lines of a log.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Waits until the log has at least so many lines, and returns them.
fn wait_for(server: &HttpServer, path: &Path, count: usize) -> Vec<Value> {
    server.wait_until("the lines are in the audit log", || {
        fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n') && text.lines().count() >= count)
    });
    lines(path)
}

/// Returns the tool or route, the way of reading, and the address of a line.
fn read(line: &Value) -> [&str; 6] {
    ["endpoint", "read", "source", "connection", "stream", "key"].map(|name| line[name].as_str().unwrap())
}

/// Writes a configuration with an audit log, and returns its path and that of the log.
fn configured(folder: &Path, rest: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let config = folder.join("audited.toml");
    fs::write(&config, format!("[audit]\npath = \"audit.jsonl\"\n{rest}")).unwrap();
    (config, folder.join("audit.jsonl"))
}

#[tokio::test]
async fn reads_over_stdio_are_written_without_texts() {
    let (folder, store) = demo_store();
    let source = format!("[[source]]\nname = \"demo\"\nstore = \"{}\"\n", text(&store));
    let (config, log) = configured(folder.path(), &source);
    let model = Model::over_stdio(["--config", text(&config)]).await;
    let found = model.call("search", json!({"query": "invoice"})).await;
    let hits = found["results"].as_array().unwrap().len();
    model.call("fetch", json!({"id": "cin_home/messages:m1"})).await;
    model.refusal("fetch", json!({"id": "cin_home/messages:none"})).await;
    let rows = model.call("query_records", json!({"stream": "messages", "limit": 2})).await;
    assert_eq!(rows["records"].as_array().unwrap().len(), 2, "{rows}");
    let started = std::time::Instant::now();
    while !fs::read_to_string(&log).unwrap().contains("tool:query_records") {
        assert!(started.elapsed().as_secs() < 60);
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    drop(model);
    let lines = lines(&log);
    let by = |endpoint: &str| lines.iter().filter(|line| line["endpoint"] == endpoint).collect::<Vec<_>>();
    assert!(by("tool:search").len() >= hits && hits > 0, "{lines:?}");
    let fetched = by("tool:fetch");
    assert_eq!(fetched.len(), 1, "a record that does not exist is not read: {fetched:?}");
    assert_eq!(read(fetched[0]), ["tool:fetch", "record", "demo", "cin_home", "messages", "m1"]);
    assert!(by("tool:query_records").len() >= 2 && by("tool:query_records")[0]["read"] == "list");
    assert!(fetched[0]["caller"].is_null() && fetched[0]["request_id"].as_str().unwrap().starts_with("req_"));
    assert!(fetched[0]["time"].as_str().unwrap().ends_with('Z'));
    for mut line in lines {
        // A key can have words of a query, such as the name of a file.
        line["key"].take();
        assert!(!line.to_string().to_lowercase().contains("invoice"), "neither a query nor a title: {line}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn callers_are_named_and_requests_have_their_ids() {
    let place = Place::new();
    let tokens = format!("{}{}", token("ann", ANN), token("bob", BOB));
    let (config, log) = configured(place.path("").as_path(), "");
    let audit = fs::read_to_string(config).unwrap();
    let server = start(&place.configure(&format!("{HEAD}{audit}{tokens}{STORES}")));
    call(&server, ANN, "fetch", &json!({"id": "cin_ann/letters:ann01"}));
    let headers = [bearer(BOB), "x-request-id: of-bob".to_owned()];
    let record = "/v1/streams/letters/records/bob02?connection_id=cin_bob";
    assert_eq!(ask(&server.address, "GET", record, &headers.each_ref().map(String::as_str)).status, 200);
    let listed = "/v1/streams/letters/records?limit=3";
    assert_eq!(ask(&server.address, "GET", listed, &[&bearer(BOB)]).status, 200);
    // Bob may not read what is Ann's, so nothing is read.
    let foreign = "/v1/streams/letters/records/ann01?connection_id=cin_ann";
    assert_eq!(ask(&server.address, "GET", foreign, &[&bearer(BOB)]).status, 404);
    let lines = wait_for(&server, &log, 5);
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0]["caller"], "ann");
    assert_eq!(read(&lines[0]), ["tool:fetch", "record", "ann", "cin_ann", "letters", "ann01"]);
    assert_eq!((&lines[1]["caller"], &lines[1]["request_id"]), (&json!("bob"), &json!("of-bob")));
    assert_eq!(lines[1]["endpoint"], "/v1/streams/{stream}/records/{id}");
    assert!(lines[2..].iter().all(|line| line["caller"] == "bob" && line["read"] == "list"), "{lines:?}");
    let whole = fs::read_to_string(&log).unwrap();
    for secret in [ANN, BOB, "only for", "letter 0"] {
        assert!(!whole.contains(secret), "{secret}: {whole}");
    }
}

#[test]
fn pages_cached_texts_and_documents_are_written() {
    let site = handbook::Site::configured("[audit]\npath = \"audit.jsonl\"\n");
    let log = site.path("audit.jsonl");
    let search = json!({"query": "authentication", "project_id": "handbook"});
    let documents = site.found(&search)["results"].as_array().unwrap().len();
    assert_eq!(site.found(&search)["cache_hit"], true);
    let found = wait_for(&site.server, &log, 2 * documents);
    let (first, cached) = (&found[0], &found[documents]);
    assert_eq!(read(first)[..5], ["/api/v1/search", "search", "own", "handbook", "documents"]);
    assert_eq!(read(first), read(cached), "an answer of the cache is read, too");
    assert_ne!(first["request_id"], cached["request_id"]);
    let before = found.len();
    let page = format!("/records/handbook/documents:{}", first["key"].as_str().unwrap());
    assert_eq!(ask(&site.server.address, "GET", &page, &["accept: text/html"]).status, 200);
    let lines = wait_for(&site.server, &log, before + 1);
    assert_eq!(lines[before]["endpoint"], "/records/{handle}");
    assert_eq!((&lines[before]["read"], &lines[before]["key"]), (&json!("record"), &first["key"]));
}

#[test]
fn a_log_that_cannot_be_written_fails_no_call() {
    let (folder, store) = demo_store();
    let source = format!("[[source]]\nname = \"demo\"\nstore = \"{}\"\n", text(&store));
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let config = folder.path().join("fetchwell.toml");
    fs::write(&config, format!("[audit]\npath = \"logs/audit.jsonl\"\n{source}")).unwrap();
    let server = HttpServer::start(["--config", text(&config)]);
    fs::remove_dir_all(&logs).unwrap();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "fetch", "arguments": {"id": "cin_home/messages:m1"}}});
    for _ in 0..2 {
        let answer = post(&server.address, "/mcp", &[], &message.to_string()).json();
        assert_eq!(answer["result"]["structuredContent"]["id"], "cin_home/messages:m1", "{answer}");
    }
    let lost =
        || ask(&server.address, "GET", "/metrics", &[]).text.contains("fetchwell_audit_lines_lost_total 2\n");
    server.wait_until("both lines are counted as lost", lost);
    assert_eq!(server.log().matches("the audit log cannot be written").count(), 1, "{}", server.log());
}

#[test]
fn a_log_in_no_folder_stops_the_server_at_its_start() {
    let (folder, store) = demo_store();
    let config = folder.path().join("fetchwell.toml");
    let source = format!("[[source]]\nname = \"demo\"\nstore = \"{}\"\n", text(&store));
    fs::write(&config, format!("[audit]\npath = \"nowhere/audit.jsonl\"\n{source}")).unwrap();
    let refused = fetchwell(["serve", "--config", text(&config), "--stdio"]);
    let error = crate::support::stderr(&refused);
    assert!(refused.status.code() == Some(2) && error.contains("create its folder"), "{refused:?}");
}

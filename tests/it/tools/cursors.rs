//! Cursors as clients and operators see them: the built binary over HTTP, its state directory, and `fetchwell cursor`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    HttpServer, Model, binary, demo_store, fetchwell, get, import_records, stderr, stdout, text,
};

/// A store and a state directory, for servers that are started and stopped.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        let line = |key: usize| {
            let status = if key.is_multiple_of(2) { "confirmed" } else { "open" };
            let data = json!({"title": format!("Invoice {key}"), "status": status, "n": key});
            json!({"stream": "bookings", "key": format!("b{key:03}"), "data": data}).to_string()
        };
        let lines: Vec<String> = (0..120).map(line).collect();
        import_records(&place.path("store.db"), "cin_a", &lines.join("\n"));
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn serve(&self, more: &[&str]) -> HttpServer {
        let (store, state) = (self.path("store.db"), self.path("state"));
        // The arms differ in the types of their arrays; the tests use no others.
        match more {
            [] => HttpServer::start(["--store", text(&store), "--state-dir", text(&state)]),
            [one] => HttpServer::start(["--store", text(&store), "--state-dir", text(&state), one]),
            _ => panic!("{more:?}"),
        }
    }

    fn cursor(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = binary();
        command.args(["cursor", "--json", "--state-dir", text(&self.path("state"))]).args(arguments);
        command.output().unwrap()
    }

    fn cursor_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&stdout(&self.cursor(arguments))).unwrap()
    }

    fn inspect(&self, cursor: &str) -> Value {
        self.cursor_json(&["inspect", cursor])
    }
}

/// Calls a tool with plain HTTP, and returns its payload or its error.
#[track_caller]
fn call(server: &HttpServer, tool: &str, arguments: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let body = body.to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let result = &answer["result"];
    let structured = &result["structuredContent"];
    assert!(result["content"][0]["text"].is_string(), "{answer}");
    if result["isError"] == true { structured["error"].clone() } else { structured.clone() }
}

#[track_caller]
fn next(page: &Value) -> String {
    page["next_cursor"].as_str().unwrap_or_else(|| panic!("no cursor: {page}")).to_owned()
}

fn ids(page: &Value) -> Vec<String> {
    let rows = page.get("results").or(page.get("records")).unwrap().as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the reason that a cursor is refused for.
#[track_caller]
fn reason(server: &HttpServer, tool: &str, arguments: &Value) -> String {
    let refused = call(server, tool, arguments);
    assert_eq!(refused["code"], "invalid_cursor", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("without"), "{refused}");
    refused["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_cursor_alone_continues_with_all_arguments() {
    let place = Place::new();
    let server = place.serve(&[]);
    let asked = json!({"stream": "bookings", "filter": {"status": "confirmed"}, "fields": ["status", "n"],
        "order": "asc", "limit": 7});
    let first = call(&server, "query_records", &asked);
    let cursor = next(&first);
    assert!(cursor.len() <= 96, "{cursor}");
    assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{cursor}");
    let second = call(&server, "query_records", &json!({"cursor": cursor}));
    let rows = second["records"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    assert!(
        rows.iter().all(|row| row["data"]["status"] == "confirmed" && row["data"].get("title").is_none())
    );
    // Repeating all arguments, repeating some of them, or adding empty ones gives the same page.
    let mut same = asked.clone();
    same["cursor"] = json!(cursor);
    for arguments in [
        same,
        json!({"stream": "bookings", "cursor": cursor, "limit": 7.0}),
        json!({"stream": "", "cursor": cursor, "fields": "", "connection_id": "", "filter": null, "limit": 0}),
    ] {
        let again = call(&server, "query_records", &arguments);
        assert_eq!(ids(&again), ids(&second));
    }
    // Other arguments conflict with the cursor.
    for (name, value) in [
        ("order", json!("desc")),
        ("filter", json!({"status": "open"})),
        ("fields", json!(["n"])),
        ("stream", json!("rooms")),
        ("connection_id", json!("cin_b")),
        ("view", json!("brief")),
    ] {
        assert_eq!(
            reason(&server, "query_records", &json!({"cursor": cursor, name: value})),
            "mismatched",
            "{name}"
        );
    }
    assert_eq!(reason(&server, "search", &json!({"cursor": cursor})), "mismatched");
    // An invalid argument has its own error.
    for (arguments, param) in [
        (json!({"cursor": cursor, "limit": -1}), "limit"),
        (json!({"cursor": cursor, "colour": 1}), "colour"),
        (json!({"cursor": cursor, "changes_since": "beginning"}), "cursor"),
        (json!({"stream": "bookings", "cursor": "junk", "limit": "seven"}), "limit"),
    ] {
        let refused = call(&server, "query_records", &arguments);
        assert_eq!(
            (&refused["code"], &refused["param"]),
            (&json!("invalid_argument"), &json!(param)),
            "{refused}"
        );
    }
    // Another page size is allowed, and holds for the pages after it.
    let wider = call(&server, "query_records", &json!({"cursor": cursor, "limit": 20}));
    assert_eq!(ids(&wider).len(), 20);
    assert_eq!(ids(&call(&server, "query_records", &json!({"cursor": next(&wider)}))).len(), 20);
}

#[test]
fn a_search_continues_by_its_cursor_without_loss() {
    let place = Place::new();
    let server = place.serve(&[]);
    let whole = ids(&call(&server, "search", &json!({"query": "invoice", "limit": 100})));
    assert_eq!(whole.len(), 100);
    let mut page = call(&server, "search", &json!({"q": "invoice", "streams": ["bookings"], "limit": 9}));
    let mut seen = ids(&page);
    while seen.len() < 99 {
        assert_eq!(place.inspect(&next(&page))["offset"], seen.len());
        page = call(&server, "search", &json!({"cursor": next(&page)}));
        seen.extend(ids(&page));
    }
    assert_eq!(seen, whole[..99]);
    let cursor = next(&page);
    for (arguments, expect) in [
        (json!({"cursor": cursor, "query": "other"}), "mismatched"),
        (json!({"cursor": cursor, "mode": "semantic"}), "mismatched"),
        (json!({"cursor": cursor, "streams": ["rooms"]}), "mismatched"),
    ] {
        assert_eq!(reason(&server, "search", &arguments), expect, "{arguments}");
    }
    assert_eq!(reason(&server, "query_records", &json!({"cursor": cursor})), "mismatched");
}

#[test]
fn a_cursor_survives_kill_and_is_shared_by_two_servers() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    let cursor = next(&call(&server, "search", &json!({"query": "invoice", "limit": 5})));
    let expect = ids(&call(&server, "search", &json!({"cursor": cursor})));
    // `kill` sends SIGKILL, so the server cannot shut down in order.
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let (one, other) = (place.serve(&[]), place.serve(&[]));
    for server in [&one, &other] {
        assert_eq!(ids(&call(server, "search", &json!({"cursor": cursor}))), expect);
    }
    let theirs = next(&call(&one, "search", &json!({"query": "invoice", "limit": 5})));
    assert_eq!(ids(&call(&other, "search", &json!({"cursor": theirs}))), expect);
    // A cursor of `/v1`, which contains its position, survives as well.
    let page = get(&one.address, "/v1/search?q=invoice&limit=5").json();
    let target = format!("/v1/search?q=invoice&limit=5&cursor={}", next(&page));
    assert_eq!(get(&other.address, &target).status, 200);
}

#[test]
fn a_rotated_key_keeps_cursors_valid() {
    let place = Place::new();
    let (one, other) = (place.serve(&[]), place.serve(&[]));
    let page = |server: &HttpServer| next(&call(server, "search", &json!({"query": "invoice", "limit": 5})));
    let before = page(&one);
    let rotated = place.cursor_json(&["rotate"]);
    assert_eq!(rotated["keys"], 2);
    let restarted = place.serve(&[]);
    let after = page(&restarted);
    assert_eq!(place.inspect(&after)["key_id"], rotated["key_id"]);
    assert_ne!(place.inspect(&before)["key_id"], rotated["key_id"]);
    for server in [&one, &other, &restarted] {
        for cursor in [&before, &after] {
            assert!(call(server, "search", &json!({"cursor": cursor})).get("results").is_some());
        }
    }
    // A server that was started before signs with the new key, too.
    assert_eq!(place.inspect(&page(&one))["key_id"], rotated["key_id"]);
}

#[test]
fn a_cursor_expires_after_ten_minutes_with_any_clock() {
    let place = Place::new();
    let cursor = next(&call(&place.serve(&[]), "search", &json!({"query": "invoice", "limit": 5})));
    let arguments = json!({"cursor": cursor});
    assert!(call(&place.serve(&["--clock=+599s"]), "search", &arguments).get("results").is_some());
    assert_eq!(place.inspect(&cursor)["state"], "active");
    for clock in ["--clock=+601s", "--clock=-1h", "--clock=+0s"] {
        let server = place.serve(&[clock]);
        assert_eq!(reason(&server, "search", &arguments), "expired", "{clock}");
        // A new cursor is valid, and its position is the only one that is kept.
        let new = next(&call(&server, "search", &json!({"query": "invoice", "limit": 5})));
        assert!(call(&server, "search", &json!({"cursor": new})).get("results").is_some());
    }
    let inspected = place.inspect(&cursor);
    assert_eq!((&inspected["signature"], &inspected["reason"]), (&json!("valid"), &json!("expired")));
    assert!(inspected.get("arguments").is_none(), "{inspected}");
    let listed = place.cursor_json(&["list"]);
    assert!(
        listed.as_array().unwrap().iter().all(|row| row["reference"] != inspected["reference"]),
        "{listed}"
    );
}

#[test]
fn inspect_and_list_show_cursors() {
    let place = Place::new();
    assert_eq!(place.cursor_json(&["list"]), json!([]));
    assert!(!place.path("state").exists());
    let server = place.serve(&[]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let page = call(&server, "query_records", &json!({"stream": "bookings", "order": "desc", "limit": 50}));
    let cursor = next(&page);
    let inspected = place.inspect(&cursor);
    assert_eq!(
        (&inspected["kind"], &inspected["offset"], &inspected["signature"], &inspected["state"]),
        (&json!("query_records"), &json!(50), &json!("valid"), &json!("created"))
    );
    assert_eq!((&inspected["limit"], &inspected["arguments"]["stream"]), (&json!(50), &json!("bookings")));
    assert!(inspected["order_by"] == "desc" && inspected["filters"].is_null(), "{inspected}");
    let timestamp = inspected["timestamp"].as_f64().unwrap();
    assert!((timestamp - now).abs() < 60.0, "{inspected} {now}");
    assert!((inspected["expires_at"].as_f64().unwrap() - timestamp - 600.0).abs() < 0.001);
    call(&server, "query_records", &json!({"cursor": cursor}));
    call(&server, "search", &json!({"query": "invoice"}));
    let states = |arguments: &[&str]| -> Vec<String> {
        let listed = place.cursor_json(arguments);
        listed.as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect()
    };
    // The second page has a cursor of its own, and so does the search.
    server.wait_until("positions are stored", || states(&["list"]) == ["created", "created", "active"]);
    assert_eq!(states(&["list", "--clock", "+601s"]), ["expired"; 3]);
    let human = fetchwell(["cursor", "inspect", &cursor, "--state-dir", text(&place.path("state"))]);
    assert!(stdout(&human).contains("offset              50"), "{human:?}");
    let human = stdout(&fetchwell(["cursor", "list", "--state-dir", text(&place.path("state"))]));
    assert_eq!(human.lines().count(), 4, "{human}");
    std::fs::write(
        place.path("fetchwell.toml"),
        "state_dir = \"state\"\n[[source]]\nname = \"s\"\nstore = \"store.db\"\n",
    )
    .unwrap();
    let by_file = fetchwell(["cursor", "list", "--json", "--config", text(&place.path("fetchwell.toml"))]);
    assert_eq!(stdout(&by_file).matches("\"reference\"").count(), 3);
    // Another state directory does not know the cursors.
    let elsewhere =
        fetchwell(["cursor", "inspect", "--json", &cursor, "--state-dir", text(&place.path("none"))]);
    let elsewhere: Value = serde_json::from_str(&stdout(&elsewhere)).unwrap();
    assert_eq!((&elsewhere["signature"], &elsewhere["offset"]), (&json!("unknown_key"), &json!(50)));
    assert!(!place.path("none").exists());
    for junk in ["junk", "fw1.AAAA", ""] {
        let refused = place.cursor(&["inspect", junk]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("malformed"), "{refused:?}");
    }
}

/// Signs the claims of a cursor with another secret.
fn forged(cursor: &str, secret: &[u8; 32]) -> String {
    use fetchwell_state::cursor::{Key, UnverifiedCursor, seal};
    let sealed = UnverifiedCursor::read(cursor).unwrap();
    seal(&Key::new(sealed.key(), secret), &sealed.unverified())
}

#[test]
fn forged_and_malformed_cursors_are_refused_with_the_reason() {
    let place = Place::new();
    let server = place.serve(&[]);
    let cursor = next(&call(&server, "search", &json!({"query": "invoice", "limit": 5})));
    let mut published = [0; 32];
    published[..25].copy_from_slice(b"default-secret-change-me!");
    for secret in [[0; 32], [7; 32], published] {
        let forged = forged(&cursor, &secret);
        assert_eq!(reason(&server, "search", &json!({"cursor": forged})), "tampered");
        assert_eq!(place.inspect(&forged)["signature"], "invalid");
        assert!(place.inspect(&forged).get("arguments").is_none());
    }
    // The contract's own cursors are base64 of JSON without a signature.
    for junk in [
        "eyJvZmZzZXQiOjUwLCJ0aW1lc3RhbXAiOjE3MzAwMDAwMDAuMCwib3JkZXJfYnkiOiJjcmVhdGVkX2Rlc2MifQ==",
        "eyJvZmZzZXQiOjUwfQ",
        "fw1.AQEAAAAA",
        "junk",
        &format!("{cursor}="),
        &format!("{cursor}\u{0}"),
        &cursor.to_lowercase(),
        &"A".repeat(100_000),
    ] {
        assert_eq!(reason(&server, "search", &json!({"cursor": junk})), "malformed");
    }
    for at in (4..cursor.len()).step_by(7) {
        let mut changed = cursor.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        let why = reason(&server, "search", &json!({"cursor": changed}));
        assert!(["tampered", "malformed", "expired"].contains(&why.as_str()), "{why}");
    }
}

#[test]
fn a_cursor_of_other_sources_is_refused() {
    let place = Place::new();
    let cursor = next(&call(&place.serve(&[]), "search", &json!({"query": "invoice", "limit": 5})));
    let (_demo, other) = demo_store();
    let server = HttpServer::start(["--store", text(&other), "--state-dir", text(&place.path("state"))]);
    let refused = call(&server, "search", &json!({"cursor": cursor}));
    assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("changed")));
    assert!(refused["message"].as_str().unwrap().contains("sources changed"), "{refused}");
    assert!(call(&place.serve(&[]), "search", &json!({"cursor": cursor})).get("results").is_some());
}

#[cfg(unix)]
#[test]
fn state_files_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let server = place.serve(&[]);
    call(&server, "search", &json!({"query": "invoice", "limit": 5}));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.path("state")), 0o700);
    let keys = place.path("state/cursor-keys.json");
    for name in ["state/cursors.db", "state/cursors.db-wal", "state/cursor-keys.json"] {
        assert_eq!(mode(&place.path(name)), 0o600, "{name}");
    }
    drop(server);
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    refuses_to_start(&place, "chmod 600");
}

#[track_caller]
fn refuses_to_start(place: &Place, remedy: &str) {
    let (store, state) = (place.path("store.db"), place.path("state"));
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--store", text(&store), "--state-dir", text(&state)];
    let output = fetchwell(arguments);
    assert_eq!(output.status.code(), Some(1));
    let problem = stderr(&output);
    assert!(problem.contains(text(&state)) && problem.contains(remedy), "{problem}");
}

#[test]
fn an_unusable_state_directory_is_an_error_with_a_remedy() {
    let place = Place::new();
    std::fs::write(place.path("state"), "a file").unwrap();
    refuses_to_start(&place, "--state-dir");
    std::fs::remove_file(place.path("state")).unwrap();
    std::fs::create_dir(place.path("state")).unwrap();
    std::fs::write(place.path("state/cursors.db"), "x".repeat(200)).unwrap();
    refuses_to_start(&place, "move it away");
    std::fs::copy(place.path("store.db"), place.path("state/cursors.db")).unwrap();
    refuses_to_start(&place, "move it away");
    std::fs::remove_file(place.path("state/cursors.db")).unwrap();
    drop(place.serve(&[]));
    std::fs::write(place.path("state/cursor-keys.json"), "{").unwrap();
    refuses_to_start(&place, "delete it");
}

#[test]
fn pages_continue_within_the_process_while_their_file_cannot_be_written() {
    let place = Place::new();
    let server = place.serve(&[]);
    let search = json!({"query": "invoice", "limit": 5});
    let list = json!({"stream": "bookings", "limit": 5});
    let cursor = next(&call(&server, "search", &search));
    let locking = rusqlite::Connection::open(place.path("state/cursors.db")).unwrap();
    locking.execute_batch("BEGIN IMMEDIATE").unwrap();
    for (tool, arguments) in [("search", &search), ("query_records", &list)] {
        let page = call(&server, tool, arguments);
        let second = call(&server, tool, &json!({"cursor": next(&page)}));
        assert_eq!((ids(&page).len(), ids(&second).len()), (5, 5));
        assert!(!page["warnings"].to_string().contains("cursor"), "{page}");
    }
    server.wait_until("the lock is logged", || server.log().contains("is locked by another program"));
    call(&server, "search", &search);
    // An existing cursor can still be read.
    assert_eq!(ids(&call(&server, "search", &json!({"cursor": cursor}))).len(), 5);
    locking.execute_batch("COMMIT").unwrap();
    drop(locking);
    let stored = next(&call(&server, "search", &search));
    server.wait_until("cursors are stored again", || server.log().contains("cursors are stored again"));
    assert_eq!(server.log().matches("cursors are kept in memory").count(), 1, "{}", server.log());
    server.wait_until("the position is stored", || place.inspect(&stored)["state"] == "created");
    // A deleted directory is created again, without its earlier contents.
    // The server may be writing in it.
    let remove = || std::fs::remove_dir_all(place.path("state")).is_ok();
    server.wait_until("the state directory is removed", remove);
    assert_eq!(reason(&server, "search", &json!({"cursor": cursor})), "expired");
    let new = next(&call(&server, "search", &search));
    assert_eq!(ids(&call(&server, "search", &json!({"cursor": new}))).len(), 5);
    server.wait_until("the position is stored", || place.inspect(&new)["state"] == "active");
    server.wait_until("the state directory is removed", remove);
    std::fs::write(place.path("state"), "a file").unwrap();
    let page = call(&server, "search", &search);
    assert_eq!(ids(&call(&server, "search", &json!({"cursor": next(&page)}))).len(), 5);
    server.wait_until("the directory is logged", || server.log().contains("cannot be made"));
    let refused = call(&server, "search", &json!({"cursor": new}));
    assert_eq!(refused["code"], "state_unavailable", "{refused}");
    assert!(server.end().contains("--state-dir"));
}

#[tokio::test]
async fn pages_over_stdio_may_come_from_different_processes() {
    let place = Place::new();
    let (store, state) = (place.path("store.db"), place.path("state"));
    let start = || Model::over_stdio(["--store", text(&store), "--state-dir", text(&state)]);
    let first = start().await.call("search", json!({"query": "invoice", "limit": 5})).await;
    let mut seen = ids(&first);
    let mut cursor = next(&first);
    for _ in 0..3 {
        let page = start().await.call("search", json!({"cursor": cursor, "limit": 5})).await;
        seen.extend(ids(&page));
        cursor = next(&page);
    }
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), unique.len()), (20, 20), "{seen:?}");
    // The files do not contain the query.
    for file in std::fs::read_dir(&state).unwrap().map(|file| file.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(7).any(|bytes| bytes == b"invoice"), "{}", file.display());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", file.display());
        }
    }
    // The owner of the directory can read it.
    let inspected = place.cursor_json(&["inspect", &cursor]);
    assert_eq!(inspected["arguments"]["query"], "invoice", "{inspected}");
}

#[tokio::test]
async fn pages_of_a_list_may_come_from_different_processes() {
    let place = Place::new();
    let (store, state) = (place.path("store.db"), place.path("state"));
    let start = || Model::over_stdio(["--store", text(&store), "--state-dir", text(&state)]);
    let mut page = start().await.call("query_records", json!({"stream": "bookings", "limit": 30})).await;
    let mut seen = ids(&page);
    for _ in 0..3 {
        page = start().await.call("query_records", json!({"cursor": next(&page)})).await;
        seen.extend(ids(&page));
    }
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), unique.len()), (120, 120), "{seen:?}");
    assert!(page.get("next_cursor").is_none(), "{page}");
}

/// The clock that processes share sets the time of issue, so the cursor differs from the one that the page was fitted with.
#[test]
fn a_list_has_the_cursor_of_a_shared_clock_that_is_ahead() {
    let place = Place::new();
    let server = place.serve(&[]);
    let list = json!({"stream": "bookings", "limit": 5});
    next(&call(&place.serve(&["--clock=+5m"]), "query_records", &list));
    let cursor = next(&call(&server, "query_records", &list));
    let second = ids(&call(&server, "query_records", &json!({"cursor": cursor})));
    assert_eq!(second.len(), 5);
    // Ten minutes after the time of the shared clock, and not of its own.
    for (clock, is_valid) in [("--clock=+14m", true), ("--clock=+16m", false)] {
        let page = call(&place.serve(&[clock]), "query_records", &json!({"cursor": cursor}));
        assert_eq!(page.get("records").is_some(), is_valid, "{clock}: {page}");
        assert!(!is_valid || ids(&page) == second, "{page}");
    }
}

#[tokio::test]
async fn the_state_directory_is_created_with_the_first_cursor() {
    let place = Place::new();
    let (store, state) = (place.path("store.db"), place.path("state"));
    let model = Model::over_stdio(["--store", text(&store), "--state-dir", text(&state)]).await;
    model.call("schema", json!({})).await;
    assert!(!state.exists());
    // With `none`, or if the directory cannot be created, cursors are valid in their own process only.
    std::fs::write(place.path("file"), "").unwrap();
    for (directory, is_file) in [("none".to_owned(), false), (text(&place.path("file")).to_owned(), true)] {
        let model = Model::over_stdio(["--store", text(&store), "--state-dir", &directory]).await;
        let first = model.call("search", json!({"query": "invoice", "limit": 5})).await;
        let second = model.call("search", json!({"cursor": next(&first)})).await;
        assert_eq!(ids(&second).len(), 5);
        let other = Model::over_stdio(["--store", text(&store), "--state-dir", &directory]).await;
        assert_eq!(other.refusal("search", json!({"cursor": next(&first)})).await["code"], "invalid_cursor");
        assert!(!is_file || place.path("file").is_file());
    }
    assert!(!Path::new("none").exists());
}

/// `none` is not accepted as a directory by commands that read the state.
#[test]
fn commands_about_state_refuse_the_directory_none() {
    let folder = tempfile::tempdir().unwrap();
    for command in [["cursor", "list"], ["cursor", "rotate"], ["telemetry", "endpoints"]] {
        let output =
            binary().args(command).args(["--state-dir", "none"]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("stores nothing"), "{output:?}");
    }
    assert!(!folder.path().join("none").exists());
}

//! Records that are read in parts to their end, without loss.

use std::fmt::Write;

use fetchwell_core::fit::count_tokens;
use fetchwell_core::handle::Handle;
use fetchwell_source::{BoundSource, WindowQuery, WindowStart};
use fetchwell_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Model, Reply, StdioServer, connect, import_records, text};

/// Reads a record to its end with `fetch(id)` alone. Returns the text and the number of parts.
async fn read_to_the_end(model: &Model, id: &str) -> (String, usize) {
    let mut whole = String::new();
    let mut next = id.to_owned();
    for parts in 1.. {
        let part = model.call("fetch", json!({"id": next})).await;
        let json = part.to_string();
        assert!(json.len() <= 48_000, "{} bytes", json.len());
        assert!(json.len() <= 12_000 || count_tokens(&json) <= 12_000, "{} tokens", count_tokens(&json));
        assert_eq!(part["id"], next);
        whole.push_str(part["text"].as_str().unwrap());
        match part["metadata"].get("next") {
            Some(handle) => next = handle.as_str().unwrap().to_owned(),
            None => return (whole, parts),
        }
    }
    unreachable!()
}

/// Returns a text of many kinds of characters, of about this many bytes.
fn mixed_text(bytes: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            return text;
        }
        match number % 7 {
            0 => writeln!(text, "Line {number}: please pay the invoice, \"thanks\" \\ and so on.").unwrap(),
            1 => text.push_str(&"e\u{301}\u{327}👩‍👩‍👧🏽 ".repeat(20)),
            2 => text.push_str("日本語の文章がここに続きます。改行はありません。"),
            3 => text.push_str("مرحبا بالعالم \u{202e}abc\u{202c} "),
            4 => write!(text, "{:x}{:x}", number * 2_654_435_761_u64, number * 40_503).unwrap(),
            5 => text.push_str(&"\t\r\n\u{1}\u{7f}\u{2028}".repeat(5)),
            _ => text.push_str(&"x".repeat(300)),
        }
    }
    text
}

#[tokio::test]
async fn a_record_of_five_megabytes_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let body = mixed_text(5_000_000);
    import_records(
        &store,
        "c",
        &json!({"stream": "s", "key": "a/b", "data": {"title": "Long", "body": body}}).to_string(),
    );
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--store", text(&store), "--profile", profile]).await;
        let (whole, parts) = read_to_the_end(&model, "c/s/a%2Fb").await;
        assert_eq!(whole, format!("title: Long\n\nbody:\n{body}"));
        assert!(parts > 100, "{parts} parts");
    }
}

/// Reads a field by windows of several sizes.
#[tokio::test]
async fn windows_of_a_field_join_to_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windows.db");
    let texts = [
        mixed_text(300_000),
        mixed_text(5_000_000),
        "👩‍👩‍👧🏽".repeat(20_000),
        format!("e{}", "\u{301}".repeat(50_000)),
    ];
    for (number, body) in texts.iter().enumerate() {
        import_records(
            &path,
            "c",
            &json!({"stream": "s", "key": number, "data": {"body": body, "n": 1}}).to_string(),
        );
    }
    let model = Model::over_stdio(["--store", text(&path)]).await;
    for (number, body) in texts.iter().enumerate() {
        // The longest field is read from the source itself, in larger steps than a model may request.
        if body.len() > 1_000_000 {
            let store = BoundSource::from(SqliteStore::open("store".parse().unwrap(), &path).unwrap());
            let address = format!("c/s:{number}").parse::<Handle>().unwrap().address().clone();
            let (mut whole, mut offset) = (String::new(), 0);
            while offset == 0 || whole.len() < body.len() {
                let start = WindowStart::Offset(offset);
                let field = "body".to_owned();
                let query = WindowQuery { address: address.clone(), field, start, limit_chars: 99_991 };
                let window = store.window(&query).await.unwrap();
                assert!(!window.text.is_empty());
                offset = window.end_chars();
                whole.push_str(&window.text);
            }
            assert!(whole == *body);
            continue;
        }
        let mut next = json!({"id": format!("c/s:{number}"), "field": "body", "limit_chars": 16_384});
        let mut whole = String::new();
        while !next.is_null() {
            let window = model.call("read_record_field", next).await;
            let json = window.to_string();
            assert!(json.len() <= 48_000 && count_tokens(&json) <= 12_000, "{}", json.len());
            assert_eq!(window["start_chars"], whole.chars().count());
            whole.push_str(window["text"].as_str().unwrap());
            next = window["next"].clone();
        }
        assert!(whole == *body, "text {number}");
    }
}

#[tokio::test]
async fn parts_can_be_read_in_any_order_by_any_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let body = mixed_text(300_000);
    import_records(&store, "c", &json!({"stream": "s", "key": "r", "data": {"body": body}}).to_string());
    let first = Model::over_stdio(["--store", text(&store)]).await;
    let (whole, parts) = read_to_the_end(&first, "c/s:r").await;
    assert_eq!(whole, body);
    // Another process without cached parts gives the same parts, from the last to the first.
    let other = Model::over_stdio(["--store", text(&store)]).await;
    let mut pieces = Vec::new();
    for number in (0..parts).rev() {
        let part = other.call("fetch", json!({"id": format!("c/s/r/p{number}")})).await;
        assert_eq!(part["metadata"]["total_chars"], body.chars().count().to_string());
        pieces.push(part["text"].as_str().unwrap().to_owned());
    }
    pieces.reverse();
    assert_eq!(pieces.concat(), body);
    let refused = other.refusal("fetch", json!({"id": format!("c/s/r/p{parts}")})).await;
    assert_eq!(refused["code"], "invalid_handle");
    assert!(refused["hint"].as_str().unwrap().contains(&format!("c/s/r/p{}", parts - 1)), "{refused}");
}

#[tokio::test]
async fn selected_fields_that_are_too_long_say_how_to_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let data = json!({"title": "T", "body": "word ".repeat(40_000), "note": "short\ntext"});
    import_records(&store, "c", &json!({"stream": "s", "key": "r", "data": data}).to_string());
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let note = model.call("fetch", json!({"id": "c/s:r", "fields": ["note"]})).await;
    assert_eq!(note["text"], "short\ntext");
    let refused = model.refusal("fetch", json!({"id": "c/s:r", "fields": ["body"]})).await;
    assert_eq!(refused["code"], "response_too_large");
    assert!(refused["hint"].as_str().unwrap().contains("`c/s:r` without `fields`"), "{refused}");
    let refused = model.refusal("fetch", json!({"id": "c/s:r", "fields": ["nope"]})).await;
    assert_eq!(refused["code"], "unknown_field");
    assert!(refused["hint"].as_str().unwrap().contains("body, note, title"), "{refused}");
    let refused = model.refusal("fetch", json!({"id": "c/s/r/p1", "fields": ["note"]})).await;
    assert_eq!((&refused["code"], &refused["param"]), (&json!("invalid_argument"), &json!("fields")));
}

#[tokio::test]
async fn a_remote_record_is_read_in_parts_too() {
    let folder = tempfile::tempdir().unwrap();
    let body = mixed_text(200_000);
    let reply =
        json!({"object": "record", "id": "r", "stream": "s", "connection_id": "c", "data": {"body": body}})
            .to_string();
    let source = FakeServer::start(move |_| Reply::Json(200, reply.clone()));
    connect(folder.path(), &source.url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", &source.url, "--cache-root", text(folder.path())]).await;
    assert_eq!(read_to_the_end(&model, "c/s:r").await.0, body);
    // With a legacy handle the server gives the connection, so parts have handles.
    let first = model.call("fetch", json!({"id": "s:r"})).await;
    assert_eq!(first["id"], "c/s:r");
    let next = first["metadata"]["next"].as_str().unwrap();
    assert_eq!(next, "c/s/r/p1");
    let second: Value = model.call("fetch", json!({"id": next})).await;
    assert!(body.contains(second["text"].as_str().unwrap()));
}

/// Starts a remote source that gives the same record for every request.
async fn remote(
    data: Value,
    connection: Option<&str>,
    profile: &str,
) -> (Model, FakeServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut reply = json!({"object": "record", "id": "r", "stream": "s", "data": data});
    if let Some(connection) = connection {
        reply["connection_id"] = json!(connection);
    }
    let source = FakeServer::start(move |_| Reply::Json(200, reply.to_string()));
    connect(folder.path(), &source.url, CREDENTIAL);
    let cache = text(folder.path());
    let place = ["--provider-url", &source.url, "--cache-root", cache, "--profile", profile];
    (Model::over_stdio(place).await, source, folder)
}

#[tokio::test]
async fn a_long_record_without_handles_for_parts_is_refused() {
    let data = json!({"title": "T", "body": "word ".repeat(40_000), "note": "short"});
    // The server does not name the connection of the record.
    let (model, _source, _folder) = remote(data.clone(), None, "standard").await;
    let refused = model.refusal("fetch", json!({"id": "s:r"})).await;
    assert_eq!(refused["code"], "response_too_large");
    assert!(refused["hint"].as_str().unwrap().contains("fetch the id of the result"), "{refused}");
    // The key leaves no room for a part number in either form of the handle.
    for key in ["k".repeat(2_044), ":".repeat(700)] {
        for profile in ["standard", "openai"] {
            let (model, _source, _folder) = remote(data.clone(), Some("c"), profile).await;
            let refused = model.refusal("fetch", json!({"id": format!("c/s:{key}")})).await;
            assert_eq!(refused["code"], "response_too_large");
            if profile == "standard" {
                let hint = refused["hint"].as_str().unwrap();
                assert!(hint.contains("the largest are `body` (200000 bytes), "), "{hint}");
            }
        }
    }
    let (model, _source, _folder) = remote(json!({"note": "short"}), Some("c"), "openai").await;
    let short = model.call("fetch", json!({"id": format!("c/s:{}", "k".repeat(2_044))})).await;
    assert_eq!(short["text"], "short");
}

#[tokio::test]
async fn the_address_of_a_record_that_needs_a_token_is_no_metadata_for_openai() {
    for (profile, has_address) in [("standard", true), ("openai", false)] {
        let (model, _source, _folder) = remote(json!({"note": "short"}), Some("c"), profile).await;
        let fetched = model.call("fetch", json!({"id": "c/s:r"})).await;
        assert_eq!(fetched["metadata"].get("record_url").is_some(), has_address, "{fetched}");
    }
}

#[tokio::test]
async fn errors_about_a_long_handle_fit_and_never_shorten_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let key = "k".repeat(1_970);
    let data = json!({"body": "word ".repeat(20_000)});
    import_records(&store, "cin_long", &json!({"stream": "messages", "key": key, "data": data}).to_string());
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let handle = format!("cin_long/messages/{key}");
    let first = model.call("fetch", json!({"id": format!("cin_long/messages:{key}")})).await;
    assert_eq!(first["metadata"]["next"], format!("{handle}/p1"));
    for arguments in [
        json!({"id": format!("{handle}/p99")}),
        json!({"id": format!("{handle}/p4294967295")}),
        json!({"id": format!("cin_long/messages:{key}"), "fields": ["body"]}),
        json!({"id": handle}),
    ] {
        // `Model::refusal` checks the size.
        let refused = model.refusal("fetch", arguments).await;
        let shown = refused.to_string();
        assert!(shown.contains(&key) || !shown.contains(&"k".repeat(250)), "{shown}");
        assert!(!refused["hint"].as_str().unwrap().contains('…'), "{shown}");
    }
}

#[test]
fn a_late_part_of_a_long_record_delays_no_other_call() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let body = mixed_text(3_000_000);
    import_records(&store, "c", &json!({"stream": "s", "key": "r", "data": {"body": body}}).to_string());
    let mut server = StdioServer::start(["--store", text(&store)]);
    server.initialize("2025-06-18");
    let call = |id: u32, part: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "fetch", "arguments": {"id": format!("c/s/r/p{part}")}}})
        .to_string()
    };
    // More calls than the server has threads for short work, which the ping would otherwise wait for.
    const CALLS: u32 = 8;
    let calls: String = (1..=CALLS).map(|id| call(id, 50 + id) + "\n").collect();
    server.send(&(calls + r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#));
    assert_eq!(server.receive()["id"], 0);
    let mut answered: Vec<u64> = (0..CALLS).map(|_| server.receive()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1..=u64::from(CALLS)));
    // A number that no part can have is refused without splitting the text.
    server.send(&call(CALLS + 1, u32::MAX));
    let answer = server.receive();
    let refused = &answer["result"]["structuredContent"]["error"];
    assert_eq!(refused["code"], "invalid_handle");
    assert!(refused["hint"].as_str().unwrap().starts_with("Fetch `c/s:r`"), "{refused}");
    assert!(server.end().1.success());
}

//! Records that are read in parts, to their end, without loss.

use std::fmt::Write;

use fetchwell::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Model, Reply, connect, import_records, text};

/// Reads a record as a client that has only `fetch(id)`.
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

/// Text of many kinds, of about so many bytes.
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

#[tokio::test]
async fn parts_can_be_read_in_any_order_by_anybody() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("long.db");
    let body = mixed_text(300_000);
    import_records(&store, "c", &json!({"stream": "s", "key": "r", "data": {"body": body}}).to_string());
    let first = Model::over_stdio(["--store", text(&store)]).await;
    let (whole, parts) = read_to_the_end(&first, "c/s:r").await;
    assert_eq!(whole, body);
    // Another process, which has read nothing before, gives the same parts from the last to the first.
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
    assert!(refused["hint"].as_str().unwrap().contains("title, body, note"), "{refused}");
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
    // A legacy handle: the connection is what the server says, so the parts have handles.
    let first = model.call("fetch", json!({"id": "s:r"})).await;
    assert_eq!(first["id"], "c/s:r");
    let next = first["metadata"]["next"].as_str().unwrap();
    assert_eq!(next, "c/s/r/p1");
    let second: Value = model.call("fetch", json!({"id": next})).await;
    assert!(body.contains(second["text"].as_str().unwrap()));
}

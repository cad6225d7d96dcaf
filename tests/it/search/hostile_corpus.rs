//! Every handle that `search` prints is fetched.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::{Model, import_records, text};

/// Returns keys of records that occur in practice, and stranger ones.
fn hostile_key(number: usize) -> Value {
    let n = number;
    match number % 24 {
        0 => json!(format!("m{n}")),
        1 => json!(format!("Projects/2026/Q{n}")),
        2 => json!(format!("[Gmail]/All Mail {n}")),
        3 => json!(format!("my label {n}")),
        4 => json!(format!("say \"{n}\" and 'that'")),
        5 => json!(format!("<CAF{n}=x@mail.example>")),
        6 => json!(format!("😀👩‍👩‍👧 {n}")),
        7 => json!(format!("100% of {n}")),
        8 => json!(format!("%2F%2E%2E{n}")),
        9 => json!(format!("line\nbreak\t{n}")),
        10 => json!(format!("{n}{}", "k".repeat(1_490))),
        11 => json!([format!("user_{n}"), "2026-04-01"]),
        12 => json!(format!("https://example.com/a?b={n}#c")),
        13 => json!(format!("v1..v{n}")),
        14 => json!(format!("a:b:c:{n}")),
        15 => json!(format!("C:\\dir\\{n}")),
        16 => json!(format!("{n}/p1")),
        17 => json!(format!("日本語キー{n}")),
        18 => json!(format!("e\u{301}\u{202e}rtl{n}")),
        19 => json!(n),
        20 => json!(format!("`code` {n}")),
        21 => json!(format!(" {n} ")),
        22 => json!(format!("{n}?x=1&y=2;z")),
        _ => json!(format!("pdpp://record/{n}")),
    }
}

/// The number of a record with a handle that alone is longer than a page without a limit.
const TOO_LONG: usize = 18 * 24;

fn hostile_corpus(connection: &str) -> String {
    let streams = ["messages", "files:v2", "däten", "my stream", "labels/all", "s"];
    let mut lines = String::new();
    for number in 0..500 {
        let data = json!({
            "title": format!("Title \"{number}\" <b>&amp;</b>\n{}", "long ".repeat(number % 60)),
            "body": format!("needle in {connection} {}", "\u{1}\u{2028}\u{301}😀 \\\" ".repeat(number % 40)),
        });
        let (mut key, mut data) = (hostile_key(number), data);
        if number == TOO_LONG {
            // With the highest part number the handle is just shorter than 2,048 bytes.
            key = json!("k".repeat(1_990));
        } else if number % 24 == 10 {
            data["url"] = json!(format!("https://example.com/{}", "a".repeat(980)));
        }
        let line = json!({"stream": streams[number % streams.len()], "key": key, "data": data});
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

#[tokio::test]
async fn handles_of_a_thousand_hostile_records_can_be_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("hostile.db");
    let connections = ["cin_4f2a", "acct:9/ü x"];
    for connection in connections {
        import_records(&store, connection, &hostile_corpus(connection));
    }
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for limit in [None, Some(100), Some(7)] {
        let (mut handles, mut omitted) = (Vec::new(), 0);
        let mut cursor = None;
        loop {
            let mut arguments = json!({"query": "needle"});
            if let Some(limit) = limit {
                arguments["limit"] = json!(limit);
            }
            if let Some(cursor) = cursor {
                arguments["cursor"] = cursor;
            }
            let page = model.call("search", arguments).await;
            let budget = limit.map_or(1_800, |limit| (256 * limit).clamp(1_800, 16_384));
            assert!(page.to_string().len() <= budget, "{} bytes", page.to_string().len());
            omitted += page.get("omitted").and_then(Value::as_u64).unwrap_or(0);
            let results = page["results"].as_array().unwrap();
            assert!(!results.is_empty());
            handles.extend(results.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()));
            cursor = page.get("next_cursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        // Every hit comes once; only a handle that fills a page by itself is counted and not shown.
        let too_long = if limit == Some(100) { 0 } else { 2 };
        assert_eq!((handles.len(), omitted), (1_000 - too_long, too_long as u64), "{limit:?}");
        assert_eq!(handles.iter().collect::<HashSet<_>>().len(), handles.len());
        if limit == Some(7) {
            continue;
        }
        if limit == Some(100) {
            handles.retain(|handle| handle.len() > 1_500);
            assert!(handles.iter().any(|handle| handle.len() > 2_000) && handles.len() > 40);
        }
        for handle in &handles {
            let fetched = model.call("fetch", json!({"id": handle})).await;
            assert_eq!(fetched["id"], *handle);
            let connection = fetched["metadata"]["connection_id"].as_str().unwrap();
            assert!(fetched["text"].as_str().unwrap().contains(&format!("needle in {connection}")));
        }
    }
}

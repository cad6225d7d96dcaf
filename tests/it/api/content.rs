//! Long texts of `/api/v1/content`, by chunks and by lines, and the same texts over MCP.

use fetchwell_core::fit::count_tokens;
use serde_json::{Value, json};

use crate::support::{Api, fetchwell, import, stdout, text};

/// Returns a log of 50 KB in 10,000 lines.
fn log() -> String {
    (0..10_000).map(|number| format!("{number:04}\n")).collect()
}

/// Reads all chunks of a field and checks the rules that hold for every chunk.
#[track_caller]
fn rule_chunks(api: &Api, key: &str, field: &str) -> Vec<Value> {
    let target = format!("/api/v1/content/things%3A{key}?field={field}");
    let (mut chunks, mut next): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let answer = match &next {
            None => api.get(&target),
            Some(next) => api.get(&format!("{target}&cursor={next}")),
        };
        assert_eq!(answer.status, 200, "{}", answer.text);
        // A token has at least one byte.
        assert!(answer.text.len() <= 12_000 || count_tokens(&answer.text) <= 12_000, "{key}");
        let chunk = answer.json();
        let metadata = &chunk["metadata"];
        let number = |name: &str| metadata[name].as_u64().unwrap();
        assert_eq!(chunk["chunkIndex"], chunks.len(), "{key}");
        assert!(chunk["chunkIndex"].as_u64() < chunk["totalChunks"].as_u64(), "{key}: {metadata}");
        assert_eq!(metadata["bytesInChunk"], chunk["content"].as_str().unwrap().len(), "{key}");
        assert!(number("startLine") <= number("endLine"), "{key}: {metadata}");
        if let Some(before) = chunks.last() {
            assert_eq!(chunk["totalChunks"], before["totalChunks"]);
            assert_eq!(metadata["totalLines"], before["metadata"]["totalLines"]);
            let ended = before["content"].as_str().unwrap().ends_with('\n');
            let end = before["metadata"]["endLine"].as_u64().unwrap();
            assert_eq!(number("startLine"), end + u64::from(ended), "{key}: {metadata}");
            // A line that is split over chunks is marked as split.
            assert!(ended || before["metadata"]["hardSplit"] == true, "{key}: {before}");
        }
        next = chunk["nextCursor"].as_str().map(str::to_owned);
        assert_eq!(
            next.is_some(),
            chunk["chunkIndex"].as_u64().unwrap() + 1 < chunk["totalChunks"].as_u64().unwrap()
        );
        chunks.push(chunk);
        if next.is_none() {
            return chunks;
        }
    }
}

fn whole(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| chunk["content"].as_str().unwrap()).collect()
}

/// Reads all chunks of a field over MCP.
#[track_caller]
fn chunks_of_the_tool(api: &Api, key: &str, field: &str) -> Vec<Value> {
    let mut call = json!({"id": format!("things:{key}"), "field": field, "unit": "chunk"});
    let mut chunks = Vec::new();
    loop {
        let chunk = api.tool("read_record_field", &call);
        assert!(chunk["text"].is_string(), "{chunk}");
        let next = chunk.get("next").cloned();
        chunks.push(chunk);
        let Some(next) = next else { return chunks };
        call = next;
    }
}

#[test]
fn a_log_comes_two_hundred_lines_at_a_time() {
    let log = log();
    assert_eq!(log.len(), 50_000);
    let (_folder, api) = log_api();
    let chunks = rule_chunks(&api, "log", "text");
    assert_eq!(chunks.len(), 50);
    let first = &chunks[0];
    assert_eq!(first["content"].as_str().unwrap().lines().count(), 200);
    assert_eq!((&first["metadata"]["startLine"], &first["metadata"]["endLine"]), (&json!(0), &json!(199)));
    assert_eq!(first["metadata"]["totalLines"], 10_000);
    assert_eq!(whole(&chunks), log);
    assert!(chunks.iter().all(|chunk| chunk["metadata"].get("hardSplit").is_none()));
    let of_tool = chunks_of_the_tool(&api, "log", "text");
    for (one, other) in chunks.iter().zip(&of_tool) {
        assert_eq!(
            (&one["content"], &one["chunkIndex"], &one["metadata"]["startLine"]),
            (&other["text"], &other["chunk_index"], &other["start_line"])
        );
    }
    assert_eq!(of_tool.len(), 50);
}

/// Returns a server over a store with the log.
fn log_api() -> (tempfile::TempDir, Api) {
    Api::records(&[("things", "log", json!({"id": "log", "text": log()}))], "")
}

const LOG: &str = "/api/v1/content/things%3Alog?field=text";

#[test]
fn chunks_and_lines_are_read_in_any_order() {
    let (log, (_folder, api)) = (log(), log_api());
    let chunks = rule_chunks(&api, "log", "text");
    let target = LOG;
    let mut jumped = api.ok(&format!("{target}&chunkIndex=31"));
    assert!(jumped["nextCursor"].is_string() && jumped["nextCursor"] != chunks[31]["nextCursor"]);
    jumped["nextCursor"] = chunks[31]["nextCursor"].clone();
    assert_eq!(jumped, chunks[31]);
    let lines = api.ok(&format!("{target}&startLine=100&endLine=200"));
    let expect: String = log.split_inclusive('\n').skip(100).take(101).collect();
    assert_eq!(lines["content"], expect);
    // Line 200 is the first line of chunk 1; the response holds the rest of that chunk.
    assert_eq!((&lines["chunkIndex"], &lines["totalChunks"]), (&json!(1), &json!(50)));
    let rest = api.ok(&format!("{LOG}&cursor={}", lines["nextCursor"].as_str().unwrap()));
    let expect_rest: String = log.split_inclusive('\n').skip(201).take(199).collect();
    assert_eq!((&rest["content"], &rest["chunkIndex"]), (&json!(expect_rest), &json!(1)));
    assert_eq!((&rest["metadata"]["startLine"], &rest["metadata"]["endLine"]), (&json!(201), &json!(399)));
    let after = api.ok(&format!("{LOG}&cursor={}", rest["nextCursor"].as_str().unwrap()));
    assert_eq!((&after["content"], &after["chunkIndex"]), (&chunks[2]["content"], &json!(2)));
    // The same cursor continues over MCP, with chunks of the same size.
    let call = json!({"id": "things:log", "field": "text", "unit": "chunk", "cursor": lines["nextCursor"]});
    let of_tool = api.tool("read_record_field", &call);
    assert_eq!((&of_tool["text"], &of_tool["start_line"]), (&json!(expect_rest), &json!(201)));
    assert_eq!(of_tool["start_chars"], 1_005);
    let last = api.ok(&format!("{target}&startLine=9990"));
    assert_eq!((&last["chunkIndex"], &last["nextCursor"]), (&json!(49), &Value::Null));
    assert_eq!((&lines["metadata"]["startLine"], &lines["metadata"]["endLine"]), (&json!(100), &json!(200)));
    assert_eq!(lines["metadata"]["bytesInChunk"], expect.len());
    for (range, first, last) in [
        ("startLine=9999", 9_999, 9_999),
        ("startLine=9998&endLine=99999999999", 9_998, 9_999),
        ("endLine=0", 0, 0),
        ("startLine=18446744073709551&endLine=18446744073709551615", 0, 0),
    ] {
        let answer = api.get(&format!("{target}&{range}"));
        if range.starts_with("startLine=1844") {
            assert_eq!(answer.status, 400);
            continue;
        }
        let metadata = answer.json()["metadata"].clone();
        assert_eq!((&metadata["startLine"], &metadata["endLine"]), (&json!(first), &json!(last)), "{range}");
    }
}

#[test]
fn a_line_over_several_chunks_and_an_empty_text_have_line_numbers_that_agree() {
    let long = format!("first\n{}\nlast\n", "It goes on and on. ".repeat(1_000));
    let (_folder, api) = Api::records(
        &[
            ("things", "long", json!({"id": "long", "text": long})),
            ("things", "none", json!({"id": "none", "text": ""})),
        ],
        "",
    );
    let chunks = rule_chunks(&api, "long", "text");
    let lines: Vec<(u64, u64, bool)> = chunks
        .iter()
        .map(|chunk| {
            let metadata = &chunk["metadata"];
            let number = |name: &str| metadata[name].as_u64().unwrap();
            (number("startLine"), number("endLine"), metadata["hardSplit"] == true)
        })
        .collect();
    assert_eq!(lines, [(0, 1, true), (1, 1, true), (1, 2, false)]);
    let of_tool = chunks_of_the_tool(&api, "long", "text");
    assert_eq!((&of_tool[0]["hard_split"], of_tool[2].get("hard_split")), (&json!(true), None));
    let one = api.ok("/api/v1/content/things%3Along?field=text&startLine=1&endLine=1");
    assert_eq!((&one["chunkIndex"], &one["metadata"]["totalLines"]), (&json!(2), &json!(3)));
    let rest =
        api.ok(&format!("/api/v1/content/things%3Along?cursor={}", one["nextCursor"].as_str().unwrap()));
    assert_eq!((&rest["content"], &rest["nextCursor"]), (&json!("last\n"), &Value::Null));

    let none = &rule_chunks(&api, "none", "text")[0];
    assert_eq!((&none["metadata"]["totalLines"], &none["totalChunks"]), (&json!(0), &json!(1)));
    let of_tool = &chunks_of_the_tool(&api, "none", "text")[0];
    assert_eq!((&of_tool["total_lines"], &of_tool["total_chars"]), (&json!(0), &json!(0)));
    let by_lines = api.ok("/api/v1/content/things%3Anone?field=text&startLine=0&endLine=5");
    assert_eq!((&by_lines["metadata"]["totalLines"], &by_lines["nextCursor"]), (&json!(0), &Value::Null));
}

#[test]
fn chunks_and_lines_out_of_range_are_refused_by_parameter() {
    let (_folder, api) = log_api();
    let target = LOG;
    let first = api.ok(target);
    for (wrong, param) in [
        ("startLine=10000", "startLine"),
        ("startLine=5&endLine=4", "endLine"),
        ("startLine=-1", "startLine"),
        ("endLine=x", "endLine"),
        ("chunkIndex=50", "chunkIndex"),
        ("chunkIndex=1&startLine=1", "chunkIndex"),
        ("chunkIndex=1e1", "chunkIndex"),
        ("limit=1", "limit"),
    ] {
        let body = api.refused(&format!("{target}&{wrong}"), 400, "INVALID_ARGUMENT");
        assert_eq!(body["param"], param, "{wrong}");
    }
    let cursor = first["nextCursor"].as_str().unwrap();
    let both = api.refused(&format!("{target}&chunkIndex=1&cursor={cursor}"), 400, "INVALID_ARGUMENT");
    assert_eq!(both["param"], "cursor");
    assert_eq!(api.cursor_fault(&format!("/api/v1/content/things%3Aother?cursor={cursor}")), "mismatched");
    assert_eq!(
        api.cursor_fault(&format!("/api/v1/content/things%3Alog?field=id&cursor={cursor}")),
        "mismatched"
    );
    api.refused("/api/v1/content/things%3Alog?field=nope", 404, "FIELD_NOT_FOUND");
    api.refused("/api/v1/content/things%3Anone", 404, "NOT_FOUND");
    api.refused("/api/v1/content/nonsense", 400, "INVALID_HANDLE");
}

#[test]
fn cursor_of_an_earlier_version_of_a_record_is_refused() {
    let (log, (folder, api)) = (log(), log_api());
    let target = LOG;
    let first = api.ok(target);
    let cursor = first["nextCursor"].as_str().unwrap();
    let of_tool = chunks_of_the_tool(&api, "log", "text");
    let inspected = fetchwell([
        "cursor",
        "--json",
        "--state-dir",
        text(&api.folder.path().join("state")),
        "inspect",
        cursor,
    ]);
    let inspected: Value = serde_json::from_str(&stdout(&inspected)).unwrap();
    assert_eq!((&inspected["kind"], &inspected["offset"]), (&json!("chunk"), &json!(1)), "{inspected}");

    // Chunks of two versions of a record must not be put together.
    import(
        &folder.path().join("own.db"),
        &[("things", "log", json!({"id": "log", "text": log.replace("0042", "0043")}))],
    );
    assert_eq!(api.cursor_fault(&format!("{target}&cursor={cursor}")), "changed");
    let next = &of_tool[0]["next"];
    let refused = api.tool("read_record_field", next);
    assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("changed")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("the record changed since it was given"), "{message}");
    assert!(whole(&rule_chunks(&api, "log", "text")).contains("0043\n0043\n"));
}

#[test]
fn texts_of_every_kind_come_back_byte_for_byte() {
    let texts = [
        ("prose", "This is a sentence of a letter. And \"another one\" follows it!\n\n".repeat(900), false),
        (
            "markdown",
            "## A heading\n\nA paragraph of some length, which ends here.\n\n- a point\n".repeat(700),
            false,
        ),
        ("trace", "2025-11-01T10:00:00Z ERROR it broke\n  at one\n  at two\n".repeat(900), false),
        ("base64", "QUJDREVGR0hJSktM+/9".repeat(8_000), true),
        ("cjk", "漢字仮名交じり文".repeat(6_000), true),
        ("emoji", "👩‍👩‍👧🏽🎉".repeat(3_000), true),
        ("control", "\u{1}\u{2}".repeat(9_000), true),
        ("crlf", "A line, with its end.\r\nAnother line.\r\n".repeat(1_500), false),
        ("accents", format!("e{}", "\u{301}".repeat(9_000)), true),
        ("short", "a".to_owned(), false),
    ];
    let records: Vec<(&str, &str, Value)> =
        texts.iter().map(|(key, text, _)| ("things", *key, json!({"id": key, "text": text}))).collect();
    let (_folder, api) = Api::records(&records, "");
    for (key, text, splits_hard) in &texts {
        let chunks = rule_chunks(&api, key, "text");
        assert_eq!(whole(&chunks), *text, "{key}");
        let (last, others) = chunks.split_last().unwrap();
        let hard = others.iter().filter(|chunk| chunk["metadata"]["hardSplit"] == true).count();
        assert_eq!(hard, if *splits_hard { others.len() } else { 0 }, "{key}");
        assert!(last["metadata"].get("hardSplit").is_none(), "{key}");
        let of_tool = chunks_of_the_tool(&api, key, "text");
        let texts: Vec<&Value> = of_tool.iter().map(|chunk| &chunk["text"]).collect();
        assert_eq!(texts, chunks.iter().map(|chunk| &chunk["content"]).collect::<Vec<_>>(), "{key}");
    }
    // All lines of a text that does not fit are refused; those of a text that fits are given.
    let target = |key: &str| format!("/api/v1/content/things%3A{key}?field=text&startLine=0");
    api.refused(&target("base64"), 413, "RESPONSE_TOO_LARGE");
    api.refused(&target("prose"), 413, "RESPONSE_TOO_LARGE");
    assert_eq!(api.ok(&target("short"))["content"], "a");
}

#[test]
fn fields_other_than_text_are_read_as_json() {
    let list: Vec<usize> = (0..30_000).collect();
    let fields: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("field {n}"), json!(n))).collect();
    let records = [(
        "things",
        "x",
        json!({"id": "x", "list": list, "wide": fields, "empty": "", "none": null, "n": 5}),
    )];
    let (_folder, api) = Api::records(&records, "");
    for field in ["list", "wide", "none", "n"] {
        let text = whole(&rule_chunks(&api, "x", field));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), records[0].2[field], "{field}");
    }
    let empty = rule_chunks(&api, "x", "empty");
    assert_eq!((&empty[0]["content"], &empty[0]["totalChunks"]), (&json!(""), &json!(1)));
    // The whole record can be read as a text, too.
    let mut chunk = api.ok("/api/v1/content/things%3Ax");
    let mut text = String::new();
    loop {
        text.push_str(chunk["content"].as_str().unwrap());
        let Some(next) = chunk["nextCursor"].as_str() else { break };
        chunk = api.ok(&format!("/api/v1/content/things%3Ax?cursor={next}"));
    }
    assert!(text.contains("29999") && text.contains("field 9999"));
}

#[test]
fn ten_megabytes_in_one_line_are_read_like_any_text() {
    let giant = "QUJDREVGR0hJSktM+/9x".repeat(500_000);
    assert_eq!(giant.len(), 10_000_000);
    let (_folder, api) = Api::records(&[("things", "giant", json!({"id": "giant", "text": giant}))], "");
    let chunks = rule_chunks(&api, "giant", "text");
    assert!(whole(&chunks) == giant, "not the same");
    let last = chunks.len() - 1;
    assert!(chunks[..last].iter().all(|chunk| chunk["metadata"]["hardSplit"] == true));
    let jumped = api.ok(&format!("/api/v1/content/things%3Agiant?field=text&chunkIndex={last}"));
    assert_eq!(jumped, chunks[last]);
    let fetched = api.get("/api/v1/things/giant?fields=all");
    assert!(count_tokens(&fetched.text) <= 12_000 && fetched.json()["text"]["chars"] == 10_000_000);
}

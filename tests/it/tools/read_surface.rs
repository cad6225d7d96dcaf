//! The tools other than `search` and `fetch`, used with values that earlier answers printed.

use std::collections::HashSet;

use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::sources::conformance::corpus;
use crate::support::{Model, import_records, text};

async fn model() -> (tempfile::TempDir, Model) {
    let (folder, store) = corpus();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    (folder, model)
}

#[tokio::test]
async fn a_model_starts_with_the_schema_and_reads_a_record() {
    let (_folder, model) = model().await;
    let overview = model.call("schema", json!({})).await;
    let connections = overview["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2);
    let (stream, count) = connections[0]["streams"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(count, 40);
    let detail = model.call("schema", json!({"stream": stream})).await;
    let [variant] = detail["variants"].as_array().unwrap().as_slice() else { panic!("{detail}") };
    assert_eq!(variant["connections"].as_array().unwrap().len(), 2);
    assert_eq!(variant["fields"]["amount"], "number eq range group sum min max distinct");
    assert_eq!(variant["fields"]["subject"], "string eq lex group min max distinct");
    let words: Vec<&str> = variant["fields"]["amount"].as_str().unwrap().split(' ').skip(1).collect();
    let legend = detail["legend"].as_str().unwrap();
    assert!(words.iter().all(|word| legend.contains(word)), "{legend}");
    let refused = model.refusal("schema", json!({"stream": stream, "detail": "full"})).await;
    assert_eq!(refused["code"], "ambiguous_schema_detail");
    let connection = &refused["available_connections"][0]["connection_id"];
    let full =
        model.call("schema", json!({"stream": stream, "detail": "full", "connection_id": connection})).await;
    assert_eq!(full["variants"][0]["declaration"]["cursor_field"], "received_at");
    let refused = model.refusal("schema", json!({"stream": "nope"})).await;
    assert_eq!(refused["code"], "stream_not_declared");
    assert!(refused["hint"].as_str().unwrap().contains("messages"), "{refused}");
    let refused = model.refusal("schema", json!({"connection_id": "nope"})).await;
    assert_eq!(refused["code"], "connection_not_found");
}

#[tokio::test]
async fn every_record_of_every_page_can_be_fetched() {
    let (_folder, model) = model().await;
    let arguments = json!({"stream": "messages", "order": "asc"});
    let (mut ids, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut arguments = arguments.clone();
        arguments["cursor"] = cursor;
        let page = model.call("query_records", arguments).await;
        let records = page["records"].as_array().unwrap();
        assert!(records.iter().all(|record| record["data"].is_object()), "{page}");
        ids.extend(records.iter().map(|record| record["id"].as_str().unwrap().to_owned()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(ids.len(), 80);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 80);
    for id in &ids {
        assert_eq!(model.call("fetch", json!({"id": id})).await["id"], *id);
    }
}

#[tokio::test]
async fn a_truncated_text_is_read_to_its_end_by_printed_calls() {
    let (_folder, model) = model().await;
    let page = model.call("query_records", json!({"stream": "messages", "limit": 100})).await;
    let record = &page["records"][17];
    let mark = &record["data"]["body"];
    let chars = usize::try_from(mark["chars"].as_u64().unwrap()).unwrap();
    assert!(mark["preview"].as_str().unwrap().starts_with("Please pay"));
    let mut arguments = json!({"id": record["id"], "field": "body", "limit_chars": 1_000});
    let mut whole = String::new();
    loop {
        let window = model.call("read_record_field", arguments).await;
        assert_eq!(window["total_chars"], chars);
        whole.push_str(window["text"].as_str().unwrap());
        assert_eq!(window["end_chars"], whole.chars().count());
        arguments = window["next"].clone();
        if arguments.is_null() {
            break;
        }
    }
    assert_eq!(whole.chars().count(), chars);
    assert!(whole.ends_with("👩‍👩‍👧 é"));
    let around =
        json!({"id": record["id"], "field": "body", "q": "INVOICE", "before_chars": 4, "after_chars": 2});
    let window = model.call("read_record_field", around).await;
    assert_eq!(window["text"], "the invoice n");
    let back = model.call("read_record_field", window["previous"].clone()).await;
    assert_eq!(back["text"], "Please pay ");
    // The record can also be named by connection, stream and key.
    let by_parts =
        json!({"connection_id": "cin_work", "stream": "messages", "record_id": "m3", "field": "subject"});
    assert_eq!(model.call("read_record_field", by_parts).await["id"], "cin_work/messages:m3");
    for (arguments, code) in [
        (json!({"id": "messages:m1", "field": "body"}), "ambiguous_connection"),
        (json!({"id": record["id"], "field": "amount"}), "field_not_text"),
        (json!({"id": record["id"], "field": "nope"}), "field_not_found"),
        (json!({"id": record["id"], "field": "body", "q": "zzz"}), "query_not_found"),
        (json!({"id": record["id"], "connection_id": "other", "field": "body"}), "conflicting_connection_id"),
        (json!({"id": "../x", "field": "body"}), "invalid_handle"),
    ] {
        assert_eq!(model.refusal("read_record_field", arguments.clone()).await["code"], code, "{arguments}");
    }
}

#[tokio::test]
async fn lists_filter_count_and_expand() {
    let (_folder, model) = model().await;
    let arguments = json!({"stream": "messages", "filter": {"from_email": "billing1@acme.test", "amount": {"gte": 100}},
        "count": "exact", "fields": ["amount"], "limit": 2});
    let page = model.call("query_records", arguments).await;
    assert_eq!(page["count"], 20);
    assert_eq!(page["records"][0]["data"], json!({"amount": 388.5}));
    let expanded = json!({"stream": "messages", "order": "asc", "limit": 2, "connection_id": "cin_home", "view": "preview",
        "expand": ["attachments"], "expand_limit": {"attachments": 3}});
    let page = model.call("query_records", expanded).await;
    let brought = page["records"][0]["expanded"]["attachments"].as_array().unwrap();
    assert_eq!(brought.len(), 3, "{page}");
    assert_eq!(page["records"][0]["expanded_more"], json!(["attachments"]));
    let id = brought[0]["id"].as_str().unwrap();
    assert_eq!(model.call("fetch", json!({"id": id})).await["id"], id);
    let fetched = model.call("fetch", json!({"id": "cin_home/messages:m0", "expand": ["attachments"]})).await;
    assert!(fetched["text"].as_str().unwrap().contains("- cin_home/attachments:a3 {"), "{fetched}");
    for (arguments, code) in [
        (json!({"stream": "messages", "filter": {"subject": {"gt": "a"}}}), "invalid_filter"),
        (json!({"stream": "messages", "expand": ["nope"]}), "invalid_expand"),
        (json!({"stream": "messages", "sort": "-labels"}), "invalid_sort"),
        (json!({"stream": "messages", "view": "nope"}), "invalid_argument"),
        (json!({"stream": "messages", "fields": ["nope"]}), "unknown_field"),
        (json!({"stream": "messages", "cursor": "fw1_nonsense"}), "invalid_cursor"),
        (json!({"stream": "messages", "changes_since": "beginning"}), "invalid_argument"),
        (
            json!({"stream": "messages", "connection_id": "cin_work", "changes_since": "nonsense"}),
            "invalid_cursor",
        ),
    ] {
        assert_eq!(model.refusal("query_records", arguments.clone()).await["code"], code, "{arguments}");
    }
    let page = model.call("query_records", json!({"stream": "messages"})).await;
    let other = json!({"stream": "messages", "order": "asc", "cursor": page["next_cursor"]});
    let refused = model.refusal("query_records", other).await;
    assert_eq!((&refused["code"], &refused["reason"]), (&json!("invalid_cursor"), &json!("mismatched")));
}

#[tokio::test]
async fn changes_include_deletions() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("changes.db");
    let line = |key: usize| json!({"stream": "s", "key": key, "data": {"n": key}}).to_string();
    import_records(&store, "c", &(0..5).map(line).collect::<Vec<_>>().join("\n"));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let all = model.call("query_records", json!({"stream": "s", "changes_since": "beginning"})).await;
    assert_eq!(all["records"].as_array().unwrap().len(), 5);
    let since = all["next_changes_since"].clone();
    let gone = json!({"stream": "s", "key": 2, "op": "delete", "emitted_at": "2026-05-01T00:00:00Z"});
    import_records(&store, "c", &[gone.to_string(), line(9)].join("\n"));
    let news = model.call("query_records", json!({"stream": "s", "changes_since": since})).await;
    let deleted = json!({"id": "c/s:2", "deleted": true, "deleted_at": "2026-05-01T00:00:00Z"});
    assert_eq!(news["records"], json!([deleted, {"id": "c/s:9", "data": {"n": 9}}]));
    let later = model
        .call("query_records", json!({"stream": "s", "changes_since": news["next_changes_since"]}))
        .await;
    assert_eq!(later["records"], json!([]));
    // A token of a store that was replaced.
    for file in ["changes.db", "changes.db-wal", "changes.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(file));
    }
    let _ = std::fs::remove_dir_all(folder.path().join("changes.db-index"));
    import_records(&store, "c", &line(1));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    let refused = model.refusal("query_records", json!({"stream": "s", "changes_since": since})).await;
    assert_eq!(refused["code"], "cursor_expired");
}

#[tokio::test]
async fn aggregates_report_their_number_of_records() {
    let (_folder, model) = model().await;
    let of = |arguments: Value| model.call("aggregate", arguments);
    let total =
        of(json!({"stream": "messages", "metric": "sum", "field": "amount", "connection_id": "cin_work"}))
            .await;
    assert_eq!((&total["value"], &total["records"]), (&json!(8190.0), &json!(40)));
    let groups =
        of(json!({"stream": "messages", "metric": "count", "group_by": "from_email", "limit": 2})).await;
    let expect =
        json!([{"key": "billing0@acme.test", "value": 28}, {"key": "billing1@acme.test", "value": 26}]);
    assert_eq!((&groups["groups"], &groups["other_count"]), (&expect, &json!(26)));
    let days = json!({"stream": "messages", "metric": "count", "group_by_time": "received_at", "granularity": "week", "time_zone": "Asia/Tokyo"});
    let weeks = of(days).await;
    let expect = json!([{"key": "2026-03-30", "value": 38}, {"key": "2026-04-06", "value": 42}]);
    assert_eq!(weeks["groups"], expect, "{weeks}");
    let refused =
        model.refusal("aggregate", json!({"stream": "messages", "metric": "sum", "field": "subject"})).await;
    assert_eq!(refused["code"], "invalid_argument");
    assert!(refused["hint"].as_str().unwrap().contains("amount"), "{refused}");
}

#[tokio::test]
async fn resources_give_the_bytes_of_the_tools() {
    let (_folder, model) = model().await;
    let templates = model.client().list_all_resource_templates().await.unwrap();
    let uris: Vec<&str> = templates.iter().map(|template| template.uri_template.as_str()).collect();
    assert_eq!(uris.len(), 5, "{uris:?}");
    for (uri, tool, arguments) in [
        ("pdpp://stream/messages", "schema", json!({"stream": "messages"})),
        ("pdpp://record/cin_work/messages:m1", "fetch", json!({"id": "cin_work/messages:m1"})),
        ("pdpp://record/cin_work%2Fmessages%3Am1", "fetch", json!({"id": "cin_work/messages:m1"})),
        (
            "pdpp://field-window/cin_work/messages:m1?field=body&limit_chars=50",
            "read_record_field",
            json!({"id": "cin_work/messages:m1", "field": "body", "limit_chars": 50}),
        ),
    ] {
        let read = model.client().read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        let contents = serde_json::to_value(&read.contents[0]).unwrap();
        assert_eq!(contents["text"], model.call(tool, arguments).await.to_string(), "{uri}");
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
    }
    for uri in ["pdpp://nothing/x", "pdpp://record/messages:m1", "file:///etc/passwd"] {
        let refused = model.client().read_resource(ReadResourceRequestParams::new(uri)).await.unwrap_err();
        assert!(
            refused.to_string().contains("-32002") || refused.to_string().contains("connection"),
            "{refused}"
        );
    }
}

/// Returns a store of one stream `s` in connection `c`, with a model over it.
async fn model_of(lines: &[String]) -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("own.db");
    import_records(&store, "c", &lines.join("\n"));
    let model = Model::over_stdio(["--store", text(&store)]).await;
    (folder, model)
}

fn line(key: &str, data: &Value) -> String {
    json!({"stream": "s", "key": key, "data": data}).to_string()
}

#[tokio::test]
async fn omitted_fields_are_counted_and_small_records_are_whole() {
    let wide: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("f{n}"), json!(n))).collect();
    let small = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "status": "open", "items": [1, 2]});
    let mut lines: Vec<String> = (0..5).map(|n| line(&format!("k{n}"), &small)).collect();
    lines.push(line("wide", &Value::Object(wide)));
    let (_folder, model) = model_of(&lines).await;
    let page = model.call("query_records", json!({"stream": "s"})).await;
    for record in page["records"].as_array().unwrap() {
        if record["id"] == "c/s:wide" {
            let shown = record["data"].as_object().map_or(0, serde_json::Map::len);
            assert_eq!(record["more_fields"], 10_000 - shown);
        } else {
            assert_eq!((&record["data"], &record["more_fields"]), (&small, &Value::Null));
        }
    }
}

#[tokio::test]
async fn pages_with_very_long_ids_lose_no_record() {
    let lines: Vec<String> = (0..30)
        .map(|n| line(&format!("{n:02}{}", "k".repeat(1_800)), &json!({"body": "x".repeat(350_000)})))
        .collect();
    let (_folder, model) = model_of(&lines).await;
    let mut arguments = json!({"stream": "s", "limit": 100});
    let mut ids = HashSet::new();
    loop {
        let page = model.call("query_records", arguments.clone()).await;
        for record in page["records"].as_array().unwrap() {
            assert!(ids.insert(record["id"].to_string()));
        }
        // Other calls in between change nothing.
        model.call("query_records", json!({"stream": "s", "limit": 1})).await;
        if page["next_cursor"].is_null() {
            break;
        }
        arguments["cursor"] = page["next_cursor"].clone();
    }
    assert_eq!(ids.len(), 30);
    let (mut since, mut told) = (json!("beginning"), HashSet::new());
    loop {
        let page =
            model.call("query_records", json!({"stream": "s", "limit": 100, "changes_since": since})).await;
        for record in page["records"].as_array().unwrap() {
            assert!(told.insert(record["id"].to_string()));
        }
        since = page["next_changes_since"].clone();
        if page["has_more"].is_null() {
            break;
        }
    }
    assert_eq!(told, ids);
    let refused = model
        .refusal("query_records", json!({"stream": "s", "changes_since": "beginning", "expand": ["x"]}))
        .await;
    assert_eq!((&refused["code"], &refused["param"]), (&json!("invalid_argument"), &json!("expand")));
}

#[tokio::test]
async fn a_field_is_read_backwards_and_around_a_word_without_gaps() {
    // Flags take many tokens for each character.
    let heavy = "🇳🇴🇸🇪🇩🇰🇫🇮".repeat(3_000);
    let body = format!("{heavy}needle{heavy}");
    let (_folder, model) = model_of(&[line("1", &json!({"body": body, "n": 1}))]).await;
    let around =
        json!({"id": "c/s:1", "field": "body", "q": "NEEDLE", "before_chars": 8_192, "after_chars": 8_192});
    let window = model.call("read_record_field", around).await;
    assert!(window["text"].as_str().unwrap().contains("needle"), "{}", window["start_chars"]);
    assert_eq!(window["match_start_chars"], heavy.chars().count());
    // Not everything fits, so both sides are shortened.
    let number = |window: &Value, name: &str| window[name].as_u64().unwrap();
    let beside = |window: &Value| {
        let lead = number(window, "match_start_chars") - number(window, "start_chars");
        (lead, number(window, "end_chars") - number(window, "match_end_chars"))
    };
    let (lead, tail) = beside(&window);
    assert!(lead == tail && (100..8_192).contains(&lead), "{lead} {tail}");
    // With a limit, the match is in the middle of the window, and the next window has the same length.
    for limit in [375, 4_000] {
        let arguments = json!({"id": "c/s:1", "field": "body", "q": "Needle", "limit_chars": limit});
        let window = model.call("read_record_field", arguments).await;
        let (lead, tail) = beside(&window);
        assert!(tail - lead <= 1 && lead + tail == limit - 6, "{lead} {tail}");
        assert_eq!(window["next"]["limit_chars"], limit);
        assert_eq!(window["next"]["offset_chars"], window["end_chars"]);
    }
    let unlimited =
        model.call("read_record_field", json!({"id": "c/s:1", "field": "body", "q": "needle"})).await;
    assert_eq!((beside(&unlimited), &unlimited["next"]["limit_chars"]), ((500, 500), &json!(4_096)));
    let narrow = json!({"id": "c/s:1", "field": "body", "q": "needle", "limit_chars": 3});
    assert_eq!(model.call("read_record_field", narrow).await["text"], "needle");
    let total = body.chars().count();
    let mut piece = model
        .call("read_record_field", json!({"id": "c/s:1", "field": "body", "offset_chars": total - 100}))
        .await;
    let mut whole = piece["text"].as_str().unwrap().to_owned();
    while !piece["previous"].is_null() {
        let before = piece["start_chars"].clone();
        piece = model.call("read_record_field", piece["previous"].clone()).await;
        assert_eq!(piece["end_chars"], before);
        whole.insert_str(0, piece["text"].as_str().unwrap());
    }
    assert!(whole == body);
}

#[tokio::test]
async fn a_has_one_relation_shows_one_of_several_records() {
    let manifest = json!({"streams": [
        {"name": "p", "primary_key": ["id"], "relationships": [
            {"name": "kid", "stream": "k", "foreign_key": "p", "cardinality": "has_one"}]},
        {"name": "k", "primary_key": ["id"]}]});
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("manifest.json"), manifest.to_string()).unwrap();
    let lines = [
        json!({"stream": "p", "data": {"id": "1", "name": "x", "seen": true}}),
        json!({"stream": "p", "data": {"id": "2"}}),
        json!({"stream": "k", "data": {"id": "a", "p": "1"}}),
        json!({"stream": "k", "data": {"id": "b", "p": "1"}}),
    ];
    std::fs::write(path("lines.ndjson"), lines.map(|line| line.to_string()).join("\n")).unwrap();
    let output = crate::support::fetchwell([
        "import",
        "records",
        text(&path("lines.ndjson")),
        "--store",
        text(&path("p.db")),
        "--connection",
        "c",
        "--manifest",
        text(&path("manifest.json")),
    ]);
    assert!(output.status.success(), "{output:?}");
    let model = Model::over_stdio(["--store", text(&path("p.db"))]).await;
    let page =
        model.call("query_records", json!({"stream": "p", "expand": ["kid", "kid"], "order": "asc"})).await;
    assert_eq!(page["records"][0]["expanded"]["kid"]["data"]["p"], "1", "{page}");
    assert_eq!(page["records"][1]["expanded"]["kid"], Value::Null);
    // A field that only this record lacks is no error.
    let fetched = model.call("fetch", json!({"id": "c/p:2", "fields": ["id", "name"]})).await;
    assert_eq!(fetched["text"], "2");
    let refused = model.refusal("fetch", json!({"id": "c/p:2", "fields": ["nope"]})).await;
    assert_eq!(refused["code"], "unknown_field");
}

#[tokio::test]
async fn very_many_streams_are_shown_as_far_as_they_fit() {
    let lines: Vec<String> = (0..3_001)
        .map(|n| json!({"stream": format!("stream_{n}"), "key": 1, "data": {"a": 1}}).to_string())
        .collect();
    let (_folder, model) = model_of(&lines).await;
    for arguments in [json!({}), json!({"connection_id": "c"})] {
        let overview = model.call("schema", arguments).await;
        let connection = &overview["connections"][0];
        let shown = connection["streams"].as_object().unwrap().len();
        assert!(shown > 500 && connection["more_streams"] == 3_001 - shown, "{shown}");
    }
}

#[tokio::test]
async fn wide_records_fit_their_budget_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("wide.db");
    let line = |key: usize| {
        let mut data = serde_json::Map::new();
        for field in 0..key * 7 {
            data.insert(format!("field {field} \"quoted\""), "😀 é\u{301} שלום ".repeat(field).into());
        }
        data.insert("deep".to_owned(), (0..60).fold(json!(1), |inner, _| json!([inner])));
        data.insert("nul".to_owned(), json!("a\u{0}b"));
        json!({"stream": "s", "key": format!("key/{key}"), "data": data}).to_string()
    };
    let huge: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("f{n}"), json!(n))).collect();
    let mut lines: Vec<String> = (0..40).map(line).collect();
    lines.push(json!({"stream": "s", "key": "huge", "data": huge}).to_string());
    lines.push(json!({"stream": "s", "key": "long", "data": {"body": "x".repeat(10_000_000)}}).to_string());
    import_records(&store, "c", &lines.join("\n"));
    // A removal in another test deletes all cursors of its state directory, and this walk is long.
    let state = folder.path().join("state");
    let model = Model::over_stdio(["--store", text(&store), "--state-dir", text(&state)]).await;
    for limit in [None, Some(1), Some(10), Some(100)] {
        let (mut ids, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut arguments = json!({"stream": "s", "cursor": cursor});
            if let Some(limit) = limit {
                arguments["limit"] = json!(limit);
            }
            let page = model.call("query_records", arguments).await;
            let bytes = page.to_string().len();
            assert!(bytes <= if limit.is_some() { 48_000 } else { 16_000 }, "{limit:?}: {bytes}");
            assert!(
                fetchwell_core::fit::count_tokens(&page.to_string())
                    <= if limit.is_some() { 12_000 } else { 4_000 }
            );
            ids.extend(
                page["records"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap().to_owned()),
            );
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(ids.len(), 42, "{limit:?}");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 42, "{limit:?}");
    }
    let stream = model.call("schema", json!({"stream": "s"})).await;
    assert!(stream.to_string().len() <= 48_000);
    let window = model
        .call(
            "read_record_field",
            json!({"id": "c/s:long", "field": "body", "limit_chars": 16_384, "offset_chars": 9_990_000}),
        )
        .await;
    assert_eq!(window["end_chars"], 10_000_000);
    assert!(window["next"].is_null());
}

//! The schemas that clients are given, and the arguments that are taken, agree.

use fetchwell::record::RecordData;
use fetchwell::source::pdpp::{Recorded, fat_records_reply, fat_search_reply, long_record_reply};
use fetchwell::tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
use serde_json::{Value, json};

fn toolbox() -> Toolbox {
    let source = Recorded {
        name: "fixture".parse().unwrap(),
        search: fat_search_reply(),
        record: long_record_reply("text"),
        records: fat_records_reply(),
        schema: String::new(),
    };
    Toolbox::new(std::sync::Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn a_schema_accepts_and_refuses_what_the_tool_does() {
    let toolbox = toolbox();
    let cases = [
        ("search", json!({"query": "x"})),
        ("search", json!({"query": "x", "limit": 1})),
        ("search", json!({"query": "x", "limit": 100, "connection_id": "c"})),
        ("search", json!({"query": "x", "limit": 0})),
        ("search", json!({"query": "x", "limit": 101})),
        ("search", json!({"query": "x", "limit": 1.5})),
        ("search", json!({"query": "x", "limit": "1"})),
        ("search", json!({"query": ""})),
        ("search", json!({"query": "é".repeat(1_000)})),
        ("search", json!({"query": "é".repeat(1_001)})),
        ("search", json!({"query": ["x"]})),
        ("search", json!({"query": "x", "cursor": 1})),
        ("search", json!({"query": "x", "other": 1})),
        ("search", json!({})),
        ("fetch", json!({"id": "c/s:r"})),
        ("fetch", json!({"id": "s:r", "connection_id": "c"})),
        ("fetch", json!({"id": "c/s:r", "fields": ["a", "b"]})),
        ("fetch", json!({"id": "c/s:r", "fields": []})),
        ("fetch", json!({"id": "c/s:r", "fields": [""]})),
        ("fetch", json!({"id": "c/s:r", "fields": "a"})),
        ("fetch", json!({"id": "c/s:r", "fields": [1]})),
        ("fetch", json!({"id": ""})),
        ("fetch", json!({"id": 1})),
        ("fetch", json!({"id": "c/s:r", "other": 1})),
        ("fetch", json!({})),
        ("fetch", json!({"id": "c/s:r", "expand": ["a"], "expand_limit": {"a": 2}})),
        ("fetch", json!({"id": "c/s:r", "expand": ["a"], "expand_limit": {"a": 0}})),
        ("search", json!({"query": "x", "mode": "hybrid", "streams": ["s"], "filter": {"a": 1}})),
        ("search", json!({"query": "x", "mode": "other"})),
        ("search", json!({"query": "x", "filter": {}})),
        ("schema", json!({})),
        ("schema", json!({"stream": "s", "connection_id": "c", "detail": "full"})),
        ("schema", json!({"stream": "s", "detail": "most"})),
        ("schema", json!({"stream": 1})),
        ("schema", json!({"other": 1})),
        ("query_records", json!({"stream": "s"})),
        ("query_records", json!({})),
        (
            "query_records",
            json!({"stream": "s", "limit": 100, "order": "asc", "sort": "t", "count": "exact"}),
        ),
        ("query_records", json!({"stream": "s", "limit": 101})),
        ("query_records", json!({"stream": "s", "limit": 0})),
        ("query_records", json!({"stream": "s", "order": "up"})),
        ("query_records", json!({"stream": "s", "count": true})),
        (
            "query_records",
            json!({"stream": "s", "filter": {"a": "x", "b": true, "n": {"gte": 1, "lt": "2"}}}),
        ),
        ("query_records", json!({"stream": "s", "filter": "a=x"})),
        ("query_records", json!({"stream": "s", "filter": {}})),
        ("query_records", json!({"stream": "s", "filter": {"a": {}}})),
        ("query_records", json!({"stream": "s", "filter": {"a": {"like": 1}}})),
        ("query_records", json!({"stream": "s", "filter": {"a": [1]}})),
        ("query_records", json!({"stream": "s", "filter": {"a": null}})),
        ("query_records", json!({"stream": "s", "fields": ["a"], "expand": ["r"], "expand_limit": {"r": 3}})),
        ("query_records", json!({"stream": "s", "expand": ["r"], "expand_limit": {"r": 0}})),
        ("query_records", json!({"stream": "s", "fields": "a"})),
        ("query_records", json!({"stream": "s", "changes_since": "beginning"})),
        ("query_records", json!({"stream": "s", "other": 1})),
        ("aggregate", json!({"stream": "s", "metric": "count"})),
        ("aggregate", json!({"stream": "s", "metric": "sum", "field": "n", "group_by": "a", "limit": 100})),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "day", "time_zone": "Europe/Oslo"}),
        ),
        ("aggregate", json!({"stream": "s", "metric": "avg"})),
        ("aggregate", json!({"stream": "s"})),
        ("aggregate", json!({"stream": "s", "metric": "count", "limit": 101})),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "decade"}),
        ),
        ("read_record_field", json!({"id": "c/s:r", "field": "body"})),
        (
            "read_record_field",
            json!({"id": "c/s:r", "field": "body", "offset_chars": 10, "limit_chars": 16_384}),
        ),
        ("read_record_field", json!({"id": "c/s:r", "field": "body", "limit_chars": 16_385})),
        ("read_record_field", json!({"id": "c/s:r", "field": "body", "offset_chars": -1})),
        (
            "read_record_field",
            json!({"id": "c/s:r", "field": "body", "q": "x", "before_chars": 8_192, "after_chars": 0}),
        ),
        ("read_record_field", json!({"id": "c/s:r", "field": "body", "q": "x", "before_chars": 8_193})),
        ("read_record_field", json!({"id": "c/s:r", "field": ""})),
        ("read_record_field", json!({"id": "c/s:r"})),
    ];
    for profile in [Profile::Standard, Profile::OpenAi] {
        for (tool, arguments) in &cases {
            let Some(spec) = profile.tools().iter().find(|spec| spec.name == *tool) else { continue };
            let schema: Value = serde_json::from_str(spec.input_schema).unwrap();
            let allowed = jsonschema::is_valid(&schema, arguments);
            let sent: RecordData = serde_json::from_value(arguments.clone()).unwrap();
            let answer = toolbox.call(profile, tool, sent).await.unwrap();
            // Whether the arguments were understood, not whether there is such a record.
            let taken = answer.as_ref().is_ok_and(|_| true)
                || answer
                    .as_ref()
                    .is_err_and(|error| !matches!(error.code(), "invalid_argument" | "invalid_handle"));
            // The openai schema has no lengths, to be as plain as it is documented.
            let lengths = profile == Profile::OpenAi && !taken && allowed;
            assert!(
                taken == allowed || lengths,
                "{profile:?} {tool} {arguments}: schema {allowed}, tool {taken}"
            );
        }
    }
}

/// What goes together and what does not is more than a schema says.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn arguments_that_contradict_each_other_are_refused_with_the_corrected_call() {
    let toolbox = toolbox();
    for (tool, arguments, param, part) in [
        ("schema", json!({"detail": "full"}), "detail", "no"),
        (
            "query_records",
            json!({"stream": "s", "fields": ["a"], "view": "v"}),
            "view",
            "does not go with `fields`",
        ),
        (
            "query_records",
            json!({"stream": "s", "cursor": "c", "changes_since": "x"}),
            "cursor",
            "changes_since",
        ),
        ("query_records", json!({"stream": "s", "order": "asc", "sort": "-t"}), "sort", "direction"),
        ("query_records", json!({"stream": "s", "expand_limit": {"r": 1}}), "expand_limit", "does not name"),
        (
            "query_records",
            json!({"stream": "s", "filter": {"n[gte]": 1}}),
            "filter",
            "{\"n\": {\"gte\": value}}",
        ),
        ("aggregate", json!({"stream": "s", "metric": "sum"}), "field", "needs one"),
        ("aggregate", json!({"stream": "s", "metric": "count", "field": "a"}), "field", "count_distinct"),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "group_by": "a", "group_by_time": "t"}),
            "group_by_time",
            "group_by",
        ),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "group_by_time": "t"}),
            "granularity",
            "minute",
        ),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "granularity": "day"}),
            "granularity",
            "group_by_time",
        ),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "time_zone": "UTC"}),
            "time_zone",
            "group_by_time",
        ),
        (
            "aggregate",
            json!({"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "day", "time_zone": "Mars"}),
            "time_zone",
            "Europe/Oslo",
        ),
        ("read_record_field", json!({"field": "body"}), "id", "record_id"),
        (
            "read_record_field",
            json!({"id": "c/s:r", "stream": "s", "field": "body"}),
            "id",
            "does not go with",
        ),
        ("read_record_field", json!({"id": "c/s/r/p1", "field": "body"}), "id", "part"),
        (
            "read_record_field",
            json!({"id": "c/s:r", "field": "body", "q": "x", "offset_chars": 1}),
            "q",
            "offset_chars",
        ),
        (
            "read_record_field",
            json!({"id": "c/s:r", "field": "body", "before_chars": 1}),
            "before_chars",
            "`q`",
        ),
    ] {
        let sent: RecordData = serde_json::from_value(arguments.clone()).unwrap();
        let refused = toolbox.call(Profile::Standard, tool, sent).await.unwrap().unwrap_err().body();
        assert_eq!(
            (refused.code.as_str(), refused.param.as_deref()),
            ("invalid_argument", Some(param)),
            "{arguments}: {refused:?}"
        );
        assert!(refused.message.contains(part), "{arguments}: {refused:?}");
        assert!(refused.hint.contains(tool) || refused.hint.contains("filter"), "{arguments}: {refused:?}");
    }
}

#[test]
fn schemas_are_what_strict_clients_take() {
    for profile in [Profile::Standard, Profile::OpenAi] {
        for tool in profile.tools() {
            for schema in [tool.input_schema, tool.output_schema] {
                let schema: Value = serde_json::from_str(schema).unwrap();
                assert!(jsonschema::meta::is_valid(&schema), "{}", tool.name);
                assert_eq!(schema["type"], "object");
                assert!(!schema.to_string().contains("null"), "{}: a union with null", tool.name);
            }
            assert!(tool.description.chars().count() <= 1_000);
            assert!(tool.input_schema.len() <= 4_096);
        }
    }
}

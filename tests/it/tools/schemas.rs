//! Agreement between the schemas that clients get and the arguments that tools accept.

use fetchwell_core::record::RecordData;
use fetchwell_lab::recorded::{RecordedSource, fat_records_reply, fat_search_reply, long_record_reply};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, Toolbox};
use serde_json::{Value, json};

fn toolbox() -> Toolbox {
    let source = RecordedSource {
        name: "fixture".parse().unwrap(),
        search: fat_search_reply(),
        record: long_record_reply("text"),
        records: fat_records_reply(),
        schema: String::new(),
    };
    Toolbox::new(std::sync::Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap()
}

/// The expected result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// The schema allows it, so a client that validates can send it.
    Documented,
    /// The schema does not allow it, and it is accepted because models and clients send it.
    Understood,
    /// The tool refuses it.
    Refused,
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn schemas_allow_all_documented_calls() {
    use Call::{Documented, Refused, Understood};
    let toolbox = toolbox();
    let cases = [
        ("search", Documented, json!({"query": "x"})),
        ("search", Documented, json!({"query": "x", "limit": 1})),
        ("search", Documented, json!({"query": "x", "limit": 100, "connection_id": "c"})),
        ("search", Understood, json!({"query": "x", "limit": 0})),
        ("search", Understood, json!({"query": "x", "limit": 101})),
        ("search", Refused, json!({"query": "x", "limit": 1.5})),
        ("search", Understood, json!({"query": "x", "limit": "1"})),
        ("search", Refused, json!({"query": ""})),
        ("search", Documented, json!({"query": "é".repeat(1_000)})),
        ("search", Documented, json!({"query": "é".repeat(5_000)})),
        ("search", Refused, json!({"query": ["x"]})),
        ("search", Refused, json!({"query": "x", "cursor": 1})),
        ("search", Refused, json!({"query": "x", "other": 1})),
        ("search", Refused, json!({})),
        ("search", Documented, json!({"query": "x", "mode": "hybrid", "streams": ["s"], "filter": {"a": 1}})),
        ("search", Refused, json!({"query": "x", "mode": "other"})),
        ("search", Documented, json!({"query": "x", "filter": {}})),
        ("fetch", Documented, json!({"id": "c/s:r"})),
        ("fetch", Documented, json!({"id": "s:r", "connection_id": "c"})),
        ("fetch", Documented, json!({"id": "c/s:r", "fields": ["a", "b"]})),
        ("fetch", Documented, json!({"id": "c/s:r", "fields": []})),
        ("fetch", Refused, json!({"id": "c/s:r", "fields": [""]})),
        ("fetch", Understood, json!({"id": "c/s:r", "fields": "a"})),
        ("fetch", Refused, json!({"id": "c/s:r", "fields": [1]})),
        ("fetch", Refused, json!({"id": ""})),
        ("fetch", Refused, json!({"id": 1})),
        ("fetch", Refused, json!({"id": "c/s:r", "other": 1})),
        ("fetch", Refused, json!({})),
        ("fetch", Documented, json!({"id": "c/s:r", "expand": ["a"], "expand_limit": {"a": 2}})),
        ("fetch", Understood, json!({"id": "c/s:r", "expand": ["a"], "expand_limit": {"a": 0}})),
        ("fetch", Refused, json!({"id": "c/s:r", "expand": ["a"], "expand_limit": {"a": "many"}})),
        ("schema", Documented, json!({})),
        ("schema", Documented, json!({"stream": "s", "connection_id": "c", "detail": "full"})),
        ("schema", Refused, json!({"stream": "s", "detail": "most"})),
        ("schema", Refused, json!({"stream": 1})),
        ("schema", Refused, json!({"other": 1})),
        ("query_records", Documented, json!({"stream": "s"})),
        ("query_records", Refused, json!({})),
        (
            "query_records",
            Documented,
            json!({"stream": "s", "limit": 100, "order": "asc", "sort": "t", "count": "exact"}),
        ),
        ("query_records", Understood, json!({"stream": "s", "limit": 101})),
        ("query_records", Understood, json!({"stream": "s", "limit": 0})),
        ("query_records", Refused, json!({"stream": "s", "order": "up"})),
        ("query_records", Refused, json!({"stream": "s", "count": true})),
        (
            "query_records",
            Documented,
            json!({"stream": "s", "filter": {"a": "", "b": true, "n": {"gte": 1, "lt": "2"}}}),
        ),
        ("query_records", Documented, json!({"stream": "s", "q": "acme", "filter": {"a": "b"}})),
        ("query_records", Refused, json!({"stream": "s", "filter": "a=x"})),
        ("query_records", Documented, json!({"stream": "s", "filter": {}})),
        ("query_records", Refused, json!({"stream": "s", "filter": {"a": {}}})),
        ("query_records", Refused, json!({"stream": "s", "filter": {"a": {"like": 1}}})),
        ("query_records", Documented, json!({"stream": "s", "filter": {"a": [1], "b": {"contains": "x"}}})),
        ("query_records", Refused, json!({"stream": "s", "filter": {"a": [[1]]}})),
        ("query_records", Refused, json!({"stream": "s", "filter": {"a": null}})),
        (
            "query_records",
            Documented,
            json!({"stream": "s", "fields": ["a"], "expand": ["r"], "expand_limit": {"r": 3}}),
        ),
        ("query_records", Understood, json!({"stream": "s", "fields": "a", "expand": "r"})),
        ("query_records", Documented, json!({"stream": "s", "changes_since": "beginning"})),
        ("query_records", Refused, json!({"stream": "s", "other": 1})),
        ("aggregate", Documented, json!({"stream": "s", "metric": "count"})),
        (
            "aggregate",
            Documented,
            json!({"stream": "s", "metric": "sum", "field": "n", "group_by": "a", "limit": 100}),
        ),
        (
            "aggregate",
            Documented,
            json!({"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "day", "time_zone": "Europe/Oslo"}),
        ),
        ("aggregate", Refused, json!({"stream": "s", "metric": "avg"})),
        ("aggregate", Refused, json!({"stream": "s"})),
        ("aggregate", Understood, json!({"stream": "s", "metric": "count", "limit": 101})),
        (
            "aggregate",
            Refused,
            json!({"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "decade"}),
        ),
        ("read_record_field", Documented, json!({"id": "c/s:r", "field": "body"})),
        (
            "read_record_field",
            Documented,
            json!({"id": "c/s:r", "field": "body", "offset_chars": 10, "limit_chars": 16_384}),
        ),
        ("read_record_field", Understood, json!({"id": "c/s:r", "field": "body", "limit_chars": 16_385})),
        ("read_record_field", Refused, json!({"id": "c/s:r", "field": "body", "offset_chars": -1})),
        (
            "read_record_field",
            Documented,
            json!({"id": "c/s:r", "field": "body", "q": "x", "before_chars": 8_192, "after_chars": 0}),
        ),
        (
            "read_record_field",
            Understood,
            json!({"id": "c/s:r", "field": "body", "q": "x", "before_chars": 8_193}),
        ),
        ("read_record_field", Refused, json!({"id": "c/s:r", "field": ""})),
        ("read_record_field", Refused, json!({"id": "c/s:r"})),
    ];
    for profile in [Profile::Standard, Profile::OpenAi] {
        for (tool, meant, arguments) in &cases {
            let Some(spec) = profile.tools().iter().find(|spec| spec.name == *tool) else { continue };
            let schema: Value = serde_json::from_str(spec.input_schema).unwrap();
            let declared = |name: &String| schema["properties"].get(name).is_some();
            let is_declared = arguments.as_object().unwrap().keys().all(declared);
            let sent: RecordData = serde_json::from_value(arguments.clone()).unwrap();
            let answer = toolbox.call(profile, tool, sent).await.unwrap();
            // Counts arguments as accepted even if the record does not exist.
            let taken = match &answer {
                Ok(_) => true,
                Err(error) => !matches!(error.code(), "invalid_argument" | "invalid_handle"),
            };
            assert_eq!(taken, is_declared && *meant != Refused, "{profile:?} {tool} {arguments}: {answer:?}");
            let is_valid = jsonschema::is_valid(&schema, arguments);
            if *meant == Documented {
                assert!(is_valid, "{profile:?} {tool} {arguments}");
            }
            if let Err(error) = answer {
                let body = error.body();
                for word in ["expected", "invalid type", "unknown field", "unknown variant", "missing field"]
                {
                    assert!(!body.message.contains(word), "{arguments}: {}", body.message);
                }
            }
        }
    }
}

/// Rules about combinations of arguments are not in the schema.
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
        ("query_records", json!({"stream": "s", "q": "a", "changes_since": "x"}), "q", "changes_since"),
        ("query_records", json!({"stream": "s", "q": "a title:b"}), "q", "operator of `search`"),
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
            json!({"stream": "s", "metric": "count", "group_by": "a,b", "group_by_time": "t", "granularity": "day"}),
            "group_by",
            "one field",
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

/// google-genai fails on a boolean `additionalProperties`, the Gemini CLI and Inspector on arrays of types. Clients
/// that validate could not send `{"cursor": ...}` if other arguments of a page were required.
#[test]
fn schemas_avoid_keywords_that_converters_reject() {
    fn check(schema: &Value, place: &str) {
        assert!(!schema["additionalProperties"].is_boolean(), "{place}");
        assert!(schema.get("type").is_none_or(Value::is_string), "{place}: {}", schema["type"]);
        for word in ["anyOf", "oneOf", "allOf", "not", "$ref", "nullable", "const"] {
            assert!(schema.get(word).is_none(), "{place}: {word}");
        }
        for inner in schema["properties"].as_object().into_iter().flatten() {
            check(inner.1, &format!("{place}.{}", inner.0));
        }
        for word in ["items", "additionalProperties"] {
            if schema.get(word).is_some_and(Value::is_object) {
                check(&schema[word], &format!("{place}.{word}"));
            }
        }
    }
    for profile in [Profile::Standard, Profile::OpenAi] {
        for tool in profile.tools() {
            for schema in [tool.input_schema, tool.output_schema] {
                let schema: Value = serde_json::from_str(schema).unwrap();
                assert!(jsonschema::meta::is_valid(&schema), "{}", tool.name);
                assert_eq!(schema["type"], "object");
                check(&schema, tool.name);
            }
            let schema: Value = serde_json::from_str(tool.input_schema).unwrap();
            for (name, argument) in schema["properties"].as_object().unwrap() {
                assert!(
                    argument["description"].as_str().is_some_and(|text| !text.is_empty()),
                    "{}.{name}",
                    tool.name
                );
            }
            assert!(tool.description.chars().count() <= 1_000);
            assert!(tool.input_schema.len() <= 4_096);
            if profile == Profile::Standard && ["search", "query_records"].contains(&tool.name) {
                assert!(jsonschema::is_valid(&schema, &json!({"cursor": "fw1_x"})), "{}", tool.name);
            }
        }
    }
}

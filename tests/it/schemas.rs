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
    };
    Toolbox::new(std::sync::Arc::new(source), DEFAULT_CALL_DEADLINE).unwrap()
}

#[tokio::test]
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
    ];
    for profile in [Profile::Standard, Profile::OpenAi] {
        for (tool, arguments) in &cases {
            let spec = profile.tools().iter().find(|spec| spec.name == *tool).unwrap();
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

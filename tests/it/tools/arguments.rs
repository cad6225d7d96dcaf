//! Arguments as models and clients send them, for every tool and every optional argument, over the built binary.

use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, Model, Reply, connect, demo_store, text};

const MAIL: &str = "cin_work/messages:m1";

/// Returns a call of each tool with required arguments only.
fn shortest(tool: &str) -> (&'static str, Value) {
    match tool {
        "search" => ("search", json!({"query": "invoice"})),
        "fetch" => ("fetch", json!({"id": MAIL})),
        "schema" => ("schema", json!({})),
        "query_records" => ("query_records", json!({"stream": "messages"})),
        "aggregate" => ("aggregate", json!({"stream": "messages", "metric": "count"})),
        "read_record_field" => ("read_record_field", json!({"id": MAIL, "field": "body"})),
        other => panic!("a new tool, {other}, has no call here"),
    }
}

/// Returns values that models send for an absent argument of this schema.
fn empty_values(schema: &Value) -> Vec<Value> {
    let mut empty_values = vec![json!(null), json!(""), json!(" ")];
    match schema["type"].as_str().unwrap() {
        "array" => empty_values.extend([json!([]), json!("[]"), json!("null")]),
        "object" => empty_values.extend([json!({}), json!("{}"), json!("null")]),
        "integer" if schema["minimum"] == 0 => empty_values.push(json!(0)),
        "integer" if schema["minimum"] == 1 => {
            empty_values.extend([json!(0), json!(0.0), json!("0"), json!("null")]);
        }
        _ => {}
    }
    empty_values
}

fn optional(tool: &Tool, given: &Value) -> Vec<(String, Value)> {
    let properties = tool.input_schema["properties"].as_object().unwrap();
    let is_optional = |(name, _): &(&String, &Value)| given.get(name.as_str()).is_none();
    properties.iter().filter(is_optional).map(|(name, schema)| (name.clone(), schema.clone())).collect()
}

fn with(arguments: &Value, name: &str, value: Value) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value;
    arguments
}

/// Replaces the cursor, which is random.
fn without_cursor(mut answer: Value) -> Value {
    if let Some(cursor) = answer.get_mut("next_cursor") {
        *cursor = json!("fw1_");
    }
    answer
}

#[tokio::test]
async fn an_empty_optional_argument_counts_as_absent() {
    let (_folder, store) = demo_store();
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--store", text(&store), "--profile", profile]).await;
        for tool in model.tools().await {
            let (name, base) = shortest(&tool.name);
            let expect = without_cursor(model.call(name, base.clone()).await);
            // CrewAI's adapter sends every optional argument as null; strict modes fill each one with an empty value of
            // its type.
            let (mut all, mut filled) = (base.clone(), base.clone());
            for (argument, schema) in optional(&tool, &base) {
                all[&argument] = json!(null);
                filled[&argument] = match schema["type"].as_str().unwrap() {
                    "integer" => json!(0),
                    "array" => json!([]),
                    "object" => json!({}),
                    _ if argument == "unit" => json!("chars"),
                    _ => json!(""),
                };
                for value in empty_values(&schema) {
                    let sent = with(&base, &argument, value);
                    let answer = without_cursor(model.call(name, sent.clone()).await);
                    assert_eq!(answer, expect, "{name} {sent}");
                }
            }
            for sent in [all, filled] {
                assert_eq!(without_cursor(model.call(name, sent.clone()).await), expect, "{name} {sent}");
            }
        }
    }
}

#[tokio::test]
async fn json_in_a_string_is_parsed() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for (tool, arguments) in [
        (
            "search",
            json!({"query": "invoice", "limit": 1, "streams": ["messages"], "filter": {"subject": ""}}),
        ),
        ("fetch", json!({"id": MAIL, "fields": ["subject", "from"]})),
        (
            "query_records",
            json!({"stream": "messages", "limit": 2, "fields": ["subject"], "filter": {"from": "x"}}),
        ),
        ("aggregate", json!({"stream": "messages", "metric": "count", "group_by": "from", "limit": 1})),
        ("read_record_field", json!({"id": MAIL, "field": "body", "offset_chars": 3, "limit_chars": 5})),
    ] {
        let expect = without_cursor(model.call(tool, arguments.clone()).await);
        for (name, value) in arguments.as_object().unwrap().iter().filter(|(_, value)| !value.is_string()) {
            let sent = with(&arguments, name, json!(value.to_string()));
            assert_eq!(without_cursor(model.call(tool, sent.clone()).await), expect, "{tool} {sent}");
        }
    }
    // A string is not parsed if the schema declares a string.
    let list = model.call("query_records", json!({"stream": "messages", "filter": {"subject": "{}"}})).await;
    assert_eq!(list["records"], json!([]));
    for (tool, arguments, same) in [
        ("fetch", json!({"id": MAIL, "fields": "subject"}), json!({"id": MAIL, "fields": ["subject"]})),
        (
            "search",
            json!({"query": "invoice", "streams": "messages"}),
            json!({"query": "invoice", "streams": ["messages"]}),
        ),
    ] {
        assert_eq!(
            without_cursor(model.call(tool, arguments).await),
            without_cursor(model.call(tool, same).await)
        );
    }
    // `""` inside a filter is a value: no message has it as its subject.
    let all = model.call("aggregate", json!({"stream": "messages", "metric": "count"})).await;
    let none = model
        .call("aggregate", json!({"stream": "messages", "metric": "count", "filter": {"subject": ""}}))
        .await;
    assert!(all["value"].as_u64().unwrap() > 0 && none["value"] == 0, "{all} {none}");
}

#[tokio::test]
async fn a_limit_over_the_maximum_is_clamped_with_a_warning() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for tool in model.tools().await {
        let (name, base) = shortest(&tool.name);
        let base = if name == "read_record_field" { with(&base, "q", json!("e")) } else { base };
        for (argument, schema) in optional(&tool, &base) {
            let Some(maximum) = schema["maximum"].as_u64() else { continue };
            let largest = model.call(name, with(&base, &argument, json!(maximum))).await;
            for sent in [json!(maximum + 1), json!("90000"), json!(1e30)] {
                let mut clamped = model.call(name, with(&base, &argument, sent.clone())).await;
                let warnings = clamped["warnings"].take();
                let expect = format!("is over the maximum: {maximum} used");
                assert!(
                    warnings[0]
                        .as_str()
                        .is_some_and(|text| text.contains(&argument) && text.contains(&expect)),
                    "{name} {argument} {sent}: {warnings}"
                );
                clamped.as_object_mut().unwrap().remove("warnings");
                assert_eq!(
                    without_cursor(clamped),
                    without_cursor(largest.clone()),
                    "{name} {argument} {sent}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_argument_is_refused_with_the_known_ones() {
    let (_folder, store) = demo_store();
    for profile in ["standard", "openai"] {
        let model = Model::over_stdio(["--store", text(&store), "--profile", profile]).await;
        for tool in model.tools().await {
            let (name, base) = shortest(&tool.name);
            for value in [json!("x"), json!(null)] {
                let refused = model.refusal(name, with(&base, "nonsense", value)).await;
                assert_eq!(
                    (&refused["code"], &refused["param"]),
                    (&json!("invalid_argument"), &json!("nonsense"))
                );
                let message = refused["message"].as_str().unwrap();
                for argument in tool.input_schema["properties"].as_object().unwrap().keys() {
                    assert!(message.contains(argument), "{message}");
                }
                assert!(
                    refused["hint"].as_str().unwrap().starts_with(&format!("Call {name} with {{")),
                    "{refused}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_argument_is_refused_with_an_example() {
    let (_folder, store) = demo_store();
    let model = Model::over_stdio(["--store", text(&store)]).await;
    for tool in model.tools().await {
        let (name, base) = shortest(&tool.name);
        for (argument, schema) in tool.input_schema["properties"].as_object().unwrap() {
            let wrong = if schema["type"] == "string" { json!(7) } else { json!(true) };
            let refused = model.refusal(name, with(&base, argument, wrong)).await;
            assert_eq!((&refused["code"], &refused["param"]), (&json!("invalid_argument"), &json!(argument)));
            let hint = refused["hint"].as_str().unwrap();
            let shows = hint.contains(&format!("\"{argument}\": "));
            assert!(shows || argument == "source", "{name} {argument}: {hint}");
            assert!(!refused["message"].as_str().unwrap().contains("expected"), "{refused}");
        }
    }
}

/// Requests to a record server are the same: an empty argument never becomes a parameter.
#[tokio::test]
async fn empty_arguments_change_no_request_to_a_record_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|_| {
        Reply::Json(
            200,
            json!({"object": "list", "data": [], "has_more": false, "connectors": []}).to_string(),
        )
    });
    connect(folder.path(), &server.url, CREDENTIAL);
    let model = Model::over_stdio(["--provider-url", &server.url, "--cache-root", text(folder.path())]).await;
    for tool in model.tools().await {
        let (name, base) = shortest(&tool.name);
        let asked = async |arguments: Value| {
            let before = server.requests().len();
            model.call_raw(name, arguments).await;
            let mut lines: Vec<String> =
                server.requests().split_off(before).into_iter().map(|request| request.line).collect();
            lines.sort();
            lines
        };
        // The first call reads schemas and connections, which are cached.
        asked(base.clone()).await;
        let expect = asked(base.clone()).await;
        assert!(!expect.is_empty(), "{name}");
        let mut all = base.clone();
        for (argument, schema) in optional(&tool, &base) {
            all[&argument] = json!(null);
            for value in empty_values(&schema) {
                let sent = with(&base, &argument, value);
                assert_eq!(asked(sent.clone()).await, expect, "{name} {sent}");
            }
        }
        assert_eq!(asked(all).await, expect, "{name}");
    }
}

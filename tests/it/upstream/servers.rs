//! The servers of the tests themselves, with the client of rmcp: what the recordings say, and what the settings change.

use std::process::Command;

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::Model;
use crate::support::mcp_servers::{EventLog, McpServer, recorded_reply};

async fn over_stdio(server: McpServer, settings: &[(&str, &str)]) -> Model {
    let words = server.stdio_command(settings);
    let (program, arguments) = words.split_first().unwrap();
    let mut command = Command::new(program);
    command.env_clear().args(arguments);
    Model::over_command(command).await
}

/// Returns the result of a call as JSON, without the metadata that depends on the transport.
async fn result_of(model: &Model, tool: &'static str, arguments: Value) -> Value {
    let mut result = serde_json::to_value(model.call_raw(tool, arguments).await).unwrap();
    for name in ["_meta", "resultType"] {
        result.as_object_mut().unwrap().remove(name);
    }
    result
}

fn recorded_result(name: &str) -> Value {
    let mut result = recorded_reply(name)["result"].clone();
    result.as_object_mut().unwrap().remove("_meta");
    result
}

#[tokio::test]
#[ignore = "needs MCP servers: tests/mcp/run"]
async fn openai_sample_answers_as_recorded() {
    let server = McpServer::OpenAiSample;
    let http = server.start(&[]);
    let over_http = Model::over_http(http.url.clone(), ClientLifecycleMode::Initialize).await;
    for model in [over_stdio(server, &[]).await, over_http] {
        let found = result_of(&model, "search", json!({"query": "lemon velvet"})).await;
        assert_eq!(found, recorded_result("openai-sample/search"));
        for hit in found["structuredContent"]["results"].as_array().unwrap() {
            let record = result_of(&model, "fetch", json!({"id": hit["id"]})).await;
            assert_eq!(record["structuredContent"]["title"], hit["title"]);
        }
        let unknown = result_of(&model, "fetch", json!({"id": "no-such-order"})).await;
        assert_eq!(unknown, recorded_result("openai-sample/fetch-unknown"));
    }
}

#[tokio::test]
#[ignore = "needs MCP servers: tests/mcp/run"]
async fn basic_memory_answers_as_recorded() {
    let server = McpServer::BasicMemory;
    if !server.is_installed() {
        return;
    }
    let http = server.start(&[]);
    let over_http = Model::over_http(http.url.clone(), ClientLifecycleMode::Initialize).await;
    for model in [over_stdio(server, &[]).await, over_http] {
        let refused = result_of(&model, "search", json!({"query": "invoice"})).await;
        assert_eq!(refused, recorded_result("basic-memory/search-refused"));
        let arguments = json!({"query": "invoice", "output_format": "json"});
        let found = result_of(&model, "search_notes", arguments).await;
        assert_eq!(found["structuredContent"]["result"]["total"], 2);
        for hit in found["structuredContent"]["result"]["results"].as_array().unwrap() {
            let arguments = json!({"identifier": hit["permalink"], "output_format": "json"});
            let note = result_of(&model, "read_note", arguments).await;
            assert_eq!(note["structuredContent"]["result"]["title"], hit["title"]);
        }
        let arguments = json!({"identifier": "home/water-leak.2026", "output_format": "json"});
        let note = result_of(&model, "read_note", arguments).await;
        assert_eq!(note, recorded_result("basic-memory/read-note-dotted"));
    }
}

/// Fetches all special records of an awkward server that have an id of text, and returns how many these are.
async fn fetched_specials(model: &Model) -> usize {
    let found = result_of(model, "search", json!({"query": "special"})).await;
    let hits = found["structuredContent"]["results"].as_array().unwrap();
    let mut count = 0;
    for hit in hits {
        let Some(id @ 1..) = hit["id"].as_str().map(str::len) else { continue };
        let record = result_of(model, "fetch", json!({"id": hit["id"]})).await;
        if hit["id"] == "gone" {
            assert_eq!(record["isError"], true, "{record}");
            continue;
        }
        if hit["id"] != "moved" {
            assert_eq!(record["structuredContent"]["id"], hit["id"], "an id of {id} bytes");
        }
        count += 1;
    }
    count
}

#[tokio::test]
#[ignore = "needs MCP servers: tests/mcp/run"]
async fn awkward_servers_have_the_same_records() {
    for server in [McpServer::AwkwardPython, McpServer::AwkwardTypescript] {
        let http = server.start(&[]);
        let over_http = Model::over_http(http.url.clone(), ClientLifecycleMode::Initialize).await;
        for model in [over_stdio(server, &[]).await, over_http] {
            assert_eq!(fetched_specials(&model).await, 24);
        }
    }
}

#[tokio::test]
#[ignore = "needs MCP servers: tests/mcp/run"]
async fn awkward_servers_read_settings_of_the_url_and_log_calls() {
    for server in [McpServer::AwkwardPython, McpServer::AwkwardTypescript] {
        let log = EventLog::new();
        let http = server.start(&[("AWKWARD_CALLS", &log.path())]);
        let url = format!("{}?limit=3", http.url);
        let model = Model::over_http(url, ClientLifecycleMode::Initialize).await;
        let found = result_of(&model, "search", json!({"query": "ledger"})).await;
        assert_eq!(found["structuredContent"]["results"].as_array().unwrap().len(), 3);
        assert_eq!(log.calls("search"), [json!({"query": "ledger"})]);
    }
}

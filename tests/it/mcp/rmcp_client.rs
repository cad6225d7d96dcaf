//! Checks rmcp's own client in the way in which `tests/clients/run` checks other clients.

use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::support::{HttpServer, Model, demo_store, text};

const TOOLS: [&str; 6] = ["search", "fetch", "schema", "query_records", "aggregate", "read_record_field"];

/// Lists the tools, searches, fetches a printed id, and reads the hint of an error.
async fn converse(model: &Model) {
    let info = model.client().peer_info().unwrap();
    assert!(info.instructions.as_ref().unwrap().starts_with("Search and read"));
    let tools = model.tools().await;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, TOOLS);

    let found = model.call("search", json!({"query": "invoice"})).await;
    let hits = found["results"].as_array().unwrap();
    assert!(hits.len() > 1);
    for hit in hits {
        let record = model.call("fetch", json!({"id": hit["id"]})).await;
        assert_eq!((&record["id"], &record["title"]), (&hit["id"], &hit["title"]));
        assert_ne!(record["text"], "");
    }

    // The TypeScript SDK validates errors against the output schema, too, and drops invalid ones.
    for (tool, name) in tools.iter().zip(TOOLS) {
        let refused = model.call_raw(name, json!({"id": 7, "nonsense": true})).await;
        assert_eq!(refused.is_error, Some(true));
        let value = refused.structured_content.unwrap();
        assert_ne!(value["error"]["hint"], "", "{name}: {value}");
        let schema = Value::Object(tool.output_schema.as_deref().unwrap().clone());
        jsonschema::validate(&schema, &value).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

#[tokio::test]
async fn rmcps_own_client_reaches_every_record_over_stdio_and_over_http() {
    let (_folder, store) = demo_store();
    let server = HttpServer::start(["--store", text(&store)]);
    let modern = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        converse(&Model::over_stdio_with(["--store", text(&store)], lifecycle.clone()).await).await;
        converse(&Model::over_http(server.url("/mcp"), lifecycle).await).await;
    }
}

//! Description of the document-search API in `/openapi.json`: the models of the contract.

use serde_json::{Map, Value, json};

use crate::http::description::describe_response;

/// Returns the paths with their descriptions.
pub(in crate::http) fn paths() -> Vec<(&'static str, Value)> {
    let search = json!({"requestBody": body(&request()), "operationId": "searchDocuments",
        "summary": "Search the documents of a project",
        "responses": responses("200", "Chunks, the best first", "application/json", search_response())});
    let stream = json!({"parameters": query_parameters(), "operationId": "streamSearch",
        "summary": "Search the documents of a project, with an event for each stage",
        "responses": responses("200", "Server-sent events", "text/event-stream", json!({"type": "string"}))});
    let feedback = json!({"parameters": [path_parameter("Header `Search-Id` of a search")],
        "operationId": "rateSearch", "summary": "Set or withdraw the feedback on a search",
        "requestBody": body(&object(&json!({"feedback": {"enum": ["helpful", "not_helpful", null]}}), &["feedback"])),
        "responses": responses("204", "The feedback is stored", "application/json", json!({}))});
    let list = object(&json!({"projects": {"type": "array", "items": project()}}), &["projects"]);
    let projects = json!({"operationId": "listProjects", "summary": "The projects of the caller",
        "responses": responses("200", "Projects in the order of their slugs", "application/json", list)});
    let one = json!({"parameters": [path_parameter("Slug or id of a project")], "operationId": "getProject",
        "summary": "One project", "responses": responses("200", "The project", "application/json", project())});
    vec![
        ("/api/v1/search", json!({"post": search})),
        ("/api/v1/search/stream", json!({"get": stream})),
        ("/api/v1/search/{id}/feedback", json!({"post": feedback})),
        ("/api/v1/projects", json!({"get": projects})),
        ("/api/v1/projects/{id}", json!({"get": one})),
    ]
}

fn body(schema: &Value) -> Value {
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn path_parameter(about: &str) -> Value {
    json!({"name": "id", "in": "path", "required": true, "description": about, "schema": {"type": "string"}})
}

/// Describes the answer of an operation, and its errors.
fn responses(status: &str, about: &str, media: &str, schema: Value) -> Value {
    let mut responses = Map::from_iter([(status.to_owned(), describe_response(about, media, schema))]);
    for (status, about) in [
        ("400", "A parameter is invalid"),
        ("403", "`Host` or `Origin` is not allowed"),
        ("404", "There is no such project or search, or the caller may not read it"),
        ("405", "The path takes another method"),
        ("413", "The body is too large"),
        ("415", "The body is not JSON"),
        ("429", "Too many requests"),
        ("500", "Internal error"),
        ("503", "No source can be read"),
        ("504", "No answer in time"),
    ] {
        responses.insert(status.to_owned(), describe_response(about, "application/json", error()));
    }
    Value::Object(responses)
}

fn request() -> Value {
    let properties = json!({
        "query": {"type": "string", "minLength": 1, "maxLength": 1_000},
        "project_id": {"type": "string", "minLength": 1, "maxLength": 100},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "category": {"type": ["string", "null"], "maxLength": 50},
        "use_reranker": {"type": "boolean", "default": true},
        "include_metadata": {"type": "boolean", "default": false},
    });
    object(&properties, &["query", "project_id"])
}

fn query_parameters() -> Value {
    let request = request();
    let properties = request.get("properties").and_then(Value::as_object).into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        let is_required = name == "query" || name == "project_id";
        json!({"name": name, "in": "query", "required": is_required, "schema": schema})
    };
    properties.map(parameter).collect()
}

fn search_response() -> Value {
    let chunk = json!({
        "id": uuid(), "document_id": uuid(), "content": {"type": "string"},
        "score": {"type": "number", "minimum": 0, "maximum": 1}, "document_path": {"type": "string"},
        "document_title": {"type": ["string", "null"]}, "category": {"type": "string"},
        "chunk_index": {"type": "integer", "minimum": 0}, "metadata": {"type": "object"},
    });
    let of_chunk =
        ["id", "document_id", "content", "score", "document_path", "category", "chunk_index", "metadata"];
    let properties = json!({
        "results": {"type": "array", "items": object(&chunk, &of_chunk)},
        "query": {"type": "string"}, "project_id": {"type": "string"}, "total_found": {"type": "integer"},
        "latency_ms": {"type": "integer"}, "cache_hit": {"type": "boolean"}, "corpus_version": {"type": "integer"},
    });
    let required =
        ["results", "query", "project_id", "total_found", "latency_ms", "cache_hit", "corpus_version"];
    object(&properties, &required)
}

fn project() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let properties = json!({
        "id": uuid(), "slug": {"type": "string"}, "name": {"type": "string"}, "settings": {"type": "object"},
        "corpus_version": {"type": "integer"}, "created_at": time, "updated_at": time,
    });
    object(&properties, &["id", "slug", "name", "settings", "corpus_version", "created_at", "updated_at"])
}

fn error() -> Value {
    let problem = json!({
        "loc": {"type": "array", "items": {"type": "string"}}, "msg": {"type": "string"}, "type": {"type": "string"},
    });
    let properties = json!({
        "error": {"type": "string"}, "detail": {"type": "string"}, "code": {"type": "string"},
        "request_id": {"type": "string"}, "errors": {"type": "array", "items": object(&problem, &["loc", "msg", "type"])},
    });
    object(&properties, &["error", "detail", "code", "request_id"])
}

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

//! Description of the document-search API in `/openapi.json`: the models of the contract.

use fetchwell_source::documents::Category;
use serde_json::{Map, Value, json};

use super::route::SEARCH_STREAM;
use crate::description::describe_response;

/// Returns the paths with their descriptions.
pub(crate) fn paths() -> Vec<(&'static str, Value)> {
    let mut found = responses("200", "Chunks, the best first", "application/json", search_response());
    add_search_headers(&mut found);
    let search = json!({"requestBody": body(&request()), "operationId": "searchDocuments",
        "summary": "Search the documents of a project", "responses": found});
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
    let documents = json!({"parameters": document_parameters(), "operationId": "listDocuments",
        "summary": "The documents of a project in the order of their paths, or with `path` or `id` one of them",
        "responses": responses("200", "Documents", "application/json",
            json!({"anyOf": [document_page(), document()]}))});
    let limit = query_parameter("limit", false, &json!({"type": "integer", "minimum": 1, "maximum": 1_000}));
    let history = json!({"parameters": [path_parameter("Slug or id of a project"), limit],
        "operationId": "listSearches",
        "summary": "The last searches of a project, the newest first; needs a token with `admin = true`",
        "responses": responses("200", "Searches", "application/json", searches())});
    let group_by = query_parameter("group_by", true, &json!({"enum": ["cache_hit", "feedback", "day"]}));
    let grouped = json!({"parameters": [path_parameter("Slug or id of a project"), group_by],
        "operationId": "groupSearches",
        "summary": "Numbers and latencies of the searches of a project; needs a token with `admin = true`",
        "responses": responses("200", "Groups", "application/json", search_groups())});
    let cleared = object(&json!({"cleared": {"type": "integer", "minimum": 0}}), &["cleared"]);
    let clear = json!({
        "parameters": [query_parameter("project_id", false, &project_id())], "operationId": "clearCache",
        "summary": "Remove cached answers of one project or of all; needs a token with `admin = true`",
        "responses": responses("200", "Number of removed answers", "application/json", cleared)});
    vec![
        ("/api/v1/search", json!({"post": search})),
        (SEARCH_STREAM, json!({"get": stream})),
        ("/api/v1/search/{id}/feedback", json!({"post": feedback})),
        ("/api/v1/projects", json!({"get": projects})),
        ("/api/v1/projects/{id}", json!({"get": one})),
        ("/api/v1/projects/{id}/history", json!({"get": history})),
        ("/api/v1/projects/{id}/searches", json!({"get": grouped})),
        ("/api/v1/documents", json!({"get": documents})),
        ("/api/v1/admin/cache/clear", json!({"post": clear})),
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

fn query_parameter(name: &str, is_required: bool, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "required": is_required, "schema": schema})
}

/// Adds the headers of the answer to a search.
fn add_search_headers(responses: &mut Value) {
    let headers = [
        ("Search-Id", "Id for feedback; missing if the search is not remembered", false),
        ("Reranked", "Model or provider that reranked the results, or `none`", true),
        ("Search-Warning", "Why the answer is less than was asked for, and what to do", false),
    ];
    if let Some(described) = responses.pointer_mut("/200/headers").and_then(Value::as_object_mut) {
        for (name, about, is_required) in headers {
            let header = json!({"description": about, "required": is_required, "schema": {"type": "string"}});
            described.insert(name.to_owned(), header);
        }
    }
}

/// Describes the answer of an operation, and its errors.
fn responses(status: &str, about: &str, media: &str, schema: Value) -> Value {
    let mut responses = Map::from_iter([(status.to_owned(), describe_response(about, media, schema))]);
    for (status, about) in [
        ("400", "A parameter is invalid"),
        ("401", "The token is missing, unknown or expired"),
        ("403", "`Host` or `Origin` is not allowed, or the token has no `admin = true`"),
        ("404", "There is no such project, document or search, or the caller may not read it"),
        ("405", "The path takes another method"),
        ("413", "The body is too large"),
        ("415", "The body is not JSON"),
        ("429", "Too many requests"),
        ("500", "Internal error"),
        ("502", "A service or a record server answered with something else than expected"),
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
        "project_id": project_id(),
        "top_k": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "category": {"enum": categories(&[Value::Null])},
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
        let schema = if name == "category" { query_category() } else { schema.clone() };
        query_parameter(name, is_required, &schema)
    };
    properties.map(parameter).collect()
}

fn document_parameters() -> Vec<Value> {
    let text = |max: usize| json!({"type": "string", "minLength": 1, "maxLength": max});
    vec![
        query_parameter("project_id", true, &project_id()),
        query_parameter("category", false, &query_category()),
        query_parameter("path", false, &text(1_000)),
        query_parameter("id", false, &uuid()),
        query_parameter("cursor", false, &text(10_000)),
        query_parameter("limit", false, &json!({"type": "integer", "minimum": 1, "maximum": 1_000})),
    ]
}

fn project_id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 100})
}

/// Returns the names of the categories, and further values.
fn categories(more: &[Value]) -> Vec<Value> {
    Category::KNOWN.iter().map(|known| json!(known)).chain(more.iter().cloned()).collect()
}

/// Describes a category in a query string, in which an empty value is none.
fn query_category() -> Value {
    json!({"enum": categories(&[json!("")])})
}

fn document() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let properties = json!({
        "id": uuid(), "project_id": uuid(), "path": {"type": "string"}, "title": {"type": ["string", "null"]},
        "content_hash": {"type": "string"}, "category": {"type": "string"}, "metadata": {"type": "object"},
        "created_at": time, "updated_at": time,
    });
    let required =
        ["id", "project_id", "path", "content_hash", "category", "metadata", "created_at", "updated_at"];
    object(&properties, &required)
}

fn document_page() -> Value {
    let properties = json!({
        "documents": {"type": "array", "items": document()}, "next_cursor": {"type": ["string", "null"]},
    });
    object(&properties, &["documents", "next_cursor"])
}

fn searches() -> Value {
    let search = json!({
        "id": uuid(), "project_id": uuid(), "query": {"type": "string"},
        "result_ids": {"type": "array", "items": uuid()},
        "feedback": {"enum": ["helpful", "not_helpful", null]}, "latency_ms": {"type": "integer"},
        "cache_hit": {"type": "boolean"}, "created_at": {"type": "string", "format": "date-time"},
    });
    let required =
        ["id", "project_id", "query", "result_ids", "feedback", "latency_ms", "cache_hit", "created_at"];
    object(&json!({"searches": {"type": "array", "items": object(&search, &required)}}), &["searches"])
}

fn search_groups() -> Value {
    let number = json!({"type": "integer", "minimum": 0});
    let group = json!({
        "value": {"type": ["boolean", "string", "null"], "description": "Value of the property; days are those of UTC"},
        "count": {"type": "integer", "minimum": 1},
        "latency_ms": object(&json!({"p50": number, "p95": number}), &["p50", "p95"]),
    });
    let properties = json!({
        "group_by": {"enum": ["cache_hit", "feedback", "day"]},
        "groups": {"type": "array", "items": object(&group, &["value", "count", "latency_ms"])},
    });
    object(&properties, &["group_by", "groups"])
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
        "source": {"type": "string", "description": "In a list of projects of several sources, the source"},
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
    // Errors of the path of documents can be of the API of streams, which have further members.
    json!({"type": "object", "properties": properties, "required": ["error", "detail", "code", "request_id"]})
}

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

//! Description of `/v1` in `/openapi.json`, generated from the response types and the tables of parameters that requests
//! are parsed with.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::envelope::VERSION;
use super::error::ErrorEnvelope;
use super::operation::Operation;
use super::routes::OPERATIONS;
use super::table::{DEFAULT_LIMIT, MAX_LIMIT, Parameter, ParameterType};

/// Status codes of errors that every route can return.
const COMMON_STATUSES: [u16; 6] = [403, 429, 500, 502, 503, 504];

/// Returns the paths with their descriptions; adds their schemas to `generator`.
pub(crate) fn paths(generator: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    let error = generator.subschema_for::<ErrorEnvelope>();
    let described = |operation: Operation| {
        let described = describe(&operation, generator, &error);
        (operation.path, json!({ "get": described }))
    };
    OPERATIONS.into_iter().map(described).collect()
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator, error: &Schema) -> Value {
    let mut responses = Map::new();
    let answer = (operation.answer)(generator);
    responses.insert("200".to_owned(), response("The answer", &answer, &[]));
    let mut statuses: Vec<u16> = operation.statuses.iter().copied().chain(COMMON_STATUSES).collect();
    statuses.sort_unstable();
    for status in statuses {
        let extra: &[&str] = if [429, 503].contains(&status) { &["Retry-After"] } else { &[] };
        responses.insert(status.to_string(), response(meaning(status), error, extra));
    }
    let mut parameters: Vec<Value> = Vec::new();
    for (name, about) in [("stream", "The name of a stream."), ("id", "The canonical key of a record.")] {
        if operation.path.contains(&format!("{{{name}}}")) {
            let schema = json!({ "type": "string", "minLength": 1 });
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema }));
        }
    }
    parameters.extend(operation.parameters.iter().map(parameter));
    json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    })
}

fn response(about: &str, schema: &Schema, extra: &[&str]) -> Value {
    let text = json!({ "schema": { "type": "string" } });
    let mut headers = Map::new();
    for name in ["Request-Id", "X-Correlation-ID"] {
        headers.insert(name.to_owned(), json!({ "required": true, "schema": { "type": "string" } }));
    }
    headers.insert("PDPP-Version".to_owned(), json!({ "required": true, "schema": { "const": VERSION } }));
    headers.extend(extra.iter().map(|name| ((*name).to_owned(), text.clone())));
    json!({ "description": about, "headers": headers, "content": { "application/json": { "schema": schema } } })
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "A parameter is unknown, missing or invalid, or a cursor belongs to another request",
        403 => "`Host` or `Origin` is not allowed, or the upstream record server refused the request",
        404 => "The stream, record, connection, field or text does not exist",
        409 => "More than one connection has it: `ambiguous_connection` or `ambiguous_schema_detail`",
        410 => "`changes_since` is too old: `cursor_expired`",
        422 => "The field is not text: `field_not_text`",
        429 => "The client exceeded its rate limit: `rate_limited`",
        502 => "The upstream record server sent an unexpected response: `source_protocol`, `reauthorize`",
        503 => "The source is unavailable: `source_unavailable`, `source_rate_limited`",
        504 => "The source did not answer in time: `source_timeout`",
        _ => "An internal error: `internal_error`",
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let Parameter { name, takes, about } = *parameter;
    let mut described = json!({
        "name": name,
        "in": "query",
        "description": about,
        "required": matches!(takes, ParameterType::NeededText | ParameterType::NeededChoice(_)),
        "schema": schema_of(takes),
    });
    let more = match takes {
        ParameterType::Names | ParameterType::Repeated => json!({ "style": "form", "explode": true }),
        ParameterType::Keyed | ParameterType::KeyedCounts => {
            json!({ "style": "deepObject", "explode": true })
        }
        ParameterType::ConnectionAlias => json!({ "deprecated": true }),
        ParameterType::Text
        | ParameterType::NeededText
        | ParameterType::Choice(_)
        | ParameterType::NeededChoice(_)
        | ParameterType::PageLimit
        | ParameterType::Whole { .. } => json!({}),
    };
    if let (Some(described), Value::Object(more)) = (described.as_object_mut(), more) {
        described.extend(more);
    }
    described
}

fn schema_of(takes: ParameterType) -> Value {
    match takes {
        ParameterType::Text | ParameterType::ConnectionAlias => json!({ "type": "string" }),
        ParameterType::NeededText => json!({ "type": "string", "minLength": 1 }),
        ParameterType::Choice(words) | ParameterType::NeededChoice(words) => {
            json!({ "type": "string", "enum": words })
        }
        ParameterType::PageLimit => json!({
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT }, { "type": "string" }],
            "default": DEFAULT_LIMIT,
        }),
        ParameterType::Whole { min, max, default } => {
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!("integer"));
            schema.insert("minimum".to_owned(), json!(min));
            schema.extend(max.map(|max| ("maximum".to_owned(), json!(max))));
            schema.extend(default.map(|default| ("default".to_owned(), json!(default))));
            Value::Object(schema)
        }
        ParameterType::Names => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "^[^,]+(,[^,]+)*$" } })
        }
        ParameterType::Repeated => json!({ "type": "array", "items": { "type": "string" } }),
        ParameterType::Keyed => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ParameterType::KeyedCounts => {
            json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } })
        }
    }
}

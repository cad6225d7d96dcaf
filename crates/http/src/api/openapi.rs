//! Description of `/api/v1` in `/openapi.json`, generated from the response types.
//!
//! The collections depend on the data that is served, so paths are described as templates; `/api/v1` itself lists the
//! current collections.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::content::ContentChunk;
use super::detail::SummaryResponse;
use super::error::ErrorBody;
use super::page::PaginatedResponse;
use super::routes::Index;
use crate::description::describe_response;

/// Upper limit for `limit` that no configuration exceeds.
const MAX_LIMIT: usize = 200;

/// Status codes of errors that every path can return.
const COMMON_STATUSES: [u16; 9] = [400, 403, 404, 405, 429, 500, 502, 503, 504];

/// Returns the paths with their descriptions; adds their schemas to `generator`.
pub(crate) fn paths(generator: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    let error = generator.subschema_for::<ErrorBody>();
    let index = generator.subschema_for::<Index<'_>>();
    let list = generator.subschema_for::<PaginatedResponse>();
    let summary = generator.subschema_for::<SummaryResponse<'_>>();
    let chunk = generator.subschema_for::<ContentChunk<'_>>();
    let record = json!({
        "description": "The record with its own fields; a `SummaryResponse` if the record is over the threshold, or with `meta=1`.",
        "anyOf": [summary, { "type": "object" }],
    });
    let collection =
        path_parameter("collection", "A path below `/api/v1`, such as `bookings`, or the name of a stream.");
    let described = |id: &str, about: &str, parameters: Vec<Value>, answer: Value, own: &[u16]| {
        let mut responses = Map::from_iter([("200".to_owned(), response("The answer", answer, 200))]);
        let mut statuses = [&COMMON_STATUSES, own].concat();
        statuses.sort_unstable();
        for status in statuses {
            responses.insert(status.to_string(), response(meaning(status), error.clone().into(), status));
        }
        json!({ "get": { "operationId": id, "summary": about, "parameters": parameters, "responses": responses } })
    };
    let record_id = path_parameter("id", "The `id` of a record.");
    let handle = path_parameter("id", "The handle of a record as tools print it, percent-encoded.");
    vec![
        ("/api/v1", described("listCollections", "The available routes", Vec::new(), index.into(), &[])),
        (
            "/api/v1/{collection}",
            described(
                "listCollection",
                "A page of records, newest first",
                [vec![collection.clone()], list_parameters()].concat(),
                list.into(),
                &[409, 410, 413],
            ),
        ),
        (
            "/api/v1/{collection}/{id}",
            described(
                "getCollectionRecord",
                "One record, complete or as a preview with the calls for the rest",
                [vec![collection, record_id], record_parameters()].concat(),
                record,
                &[409, 413],
            ),
        ),
        (
            "/api/v1/content/{id}",
            described(
                "getContent",
                "A long text, by chunks or by lines",
                [vec![handle], content_parameters()].concat(),
                chunk.into(),
                &[409, 413],
            ),
        ),
    ]
}

fn list_parameters() -> Vec<Value> {
    vec![
        query(
            "limit",
            "Maximum number of records. Default: `default_page_size`; at most `max_page_size`.",
            &or_empty(&json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT })),
        ),
        cursor(
            "The `nextCursor` of the previous page. It continues the request alone; parameters sent with it must match the original request.",
        ),
        fields(
            "`all` for complete records, possibly fewer of them; otherwise comma-separated names and paths.",
        ),
        flag("summary", "Only the most informative fields of each record."),
        query(
            "order_by",
            "`created_desc` (the default), `created_asc`, or the stream's cursor field with `_desc` or `_asc`.",
            &text(),
        ),
        connection(),
        json!({
            "name": "filter",
            "in": "query",
            "description": "Only records that match: `filter[status]=confirmed`. `status=confirmed` is equivalent unless the field has the name of a parameter; `totalPrice[gte]=100` (`gt`, `lte`, `lt`) or `filter[totalPrice][gte]=100` is a range.",
            "style": "deepObject",
            "explode": true,
            "schema": { "type": "object", "additionalProperties": { "type": "string" } },
        }),
    ]
}

fn record_parameters() -> Vec<Value> {
    vec![
        fields(
            "`all` for the complete record, up to the hard cap; otherwise comma-separated names and paths.",
        ),
        flag("meta", "`1` for an envelope around the record, with its size."),
        flag("summary", "Ignored for a single record; applies to lists."),
        connection(),
    ]
}

fn content_parameters() -> Vec<Value> {
    let line = |name, about| query(name, about, &or_empty(&json!({ "type": "integer", "minimum": 0 })));
    vec![
        query("field", "A field of the record. Default: the complete record as one text.", &text()),
        cursor("The `nextCursor` of the previous chunk."),
        line("chunkIndex", "The index of the chunk, from 0."),
        line("startLine", "The first line, from 0."),
        line("endLine", "The last line, inclusive."),
    ]
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Allows the empty string, because an empty parameter counts as not sent.
fn or_empty(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "string", "maxLength": 0 }] })
}

fn cursor(about: &str) -> Value {
    query("cursor", about, &text())
}

fn fields(about: &str) -> Value {
    query("fields", about, &text())
}

fn connection() -> Value {
    query("connection_id", "The connection, if more than one has such records.", &text())
}

fn flag(name: &str, about: &str) -> Value {
    query(name, about, &json!({ "type": "string", "enum": ["true", "1", "", "false", "0"] }))
}

fn query(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": about, "required": false, "schema": schema })
}

fn path_parameter(name: &str, about: &str) -> Value {
    let schema = json!({ "type": "string", "minLength": 1 });
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

fn response(about: &str, schema: Value, status: u16) -> Value {
    let described = describe_response(about, "application/json", schema);
    let extra: &[&str] = match status {
        429 => &["Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
        503 => &["Retry-After"],
        200 => &["X-Context-Original-Tokens", "X-Context-Returned-Tokens"],
        _ => &[],
    };
    with_headers(described, extra)
}

fn with_headers(mut response: Value, names: &[&str]) -> Value {
    if let Some(headers) = response.get_mut("headers").and_then(Value::as_object_mut) {
        headers.extend(names.iter().map(|name| ((*name).to_owned(), json!({ "schema": text() }))));
    }
    response
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => {
            "A parameter or cursor is invalid: `INVALID_ARGUMENT`, `INVALID_FILTER`, `INVALID_SORT`, `INVALID_CURSOR`, `UNKNOWN_FIELD`, `INVALID_HANDLE`"
        }
        403 => {
            "`Host` or `Origin` is not allowed, a proxy forwarded the request, or the upstream record server refused it"
        }
        404 => "The collection, record, connection or field does not exist",
        405 => "Records are read with GET",
        409 => "More than one connection has it: `AMBIGUOUS_CONNECTION`, with `available_connections`",
        410 => "The store was replaced: `CURSOR_EXPIRED`",
        413 => "The response does not fit under the hard cap: `RESPONSE_TOO_LARGE`",
        429 => "The client exceeded its rate limit: `RATE_LIMITED`",
        502 => "The upstream record server sent an unexpected response: `SOURCE_PROTOCOL`, `REAUTHORIZE`",
        503 => "The source is unavailable: `SOURCE_UNAVAILABLE`, `SOURCE_RATE_LIMITED`, `STATE_UNAVAILABLE`",
        504 => "The source did not answer in time: `SOURCE_TIMEOUT`",
        _ => "An internal error: `INTERNAL_ERROR`",
    }
}

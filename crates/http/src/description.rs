//! Descriptions of responses in `/openapi.json`, as all endpoints but those of `/v1` have them.

use serde_json::{Map, Value, json};

/// Describes a response of a media type, with the headers that every response has.
pub(crate) fn describe_response(about: &str, media: &str, schema: impl Into<Value>) -> Value {
    let mut headers = Map::new();
    for name in ["Request-Id", "X-Correlation-ID"] {
        headers.insert(name.to_owned(), json!({ "required": true, "schema": { "type": "string" } }));
    }
    let mut content = Map::new();
    content.insert(media.to_owned(), json!({ "schema": schema.into() }));
    json!({ "description": about, "headers": headers, "content": content })
}

//! `/openapi.json`: the `OpenAPI` 3.1 description of everything that is served over HTTP.
//!
//! Each API and the operations endpoints describe their own paths; this file assembles them.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::ops::{health, metrics};
use super::{api, documents, v1};

/// The document, serialized once.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

/// Returns the document as JSON.
pub(crate) fn json() -> &'static str {
    &DOCUMENT
}

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.with_transform(RecursiveTransform(close)).into_generator();
    let paths = paths(&mut generator);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fetchwell",
            "version": v1::VERSION,
            "description": "Read access to the records of connected accounts: the PDPP read contract at `/v1`, and at `/api/v1` the same records under the paths of their connectors, within token budgets.",
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

/// Describes all paths; adds their schemas to `generator`.
fn paths(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths = v1::openapi::paths(generator);
    paths.extend(api::openapi::paths(generator));
    paths.extend(documents::openapi::paths());
    paths.push(("/health", health::described(generator)));
    paths.push(("/metrics", metrics::described()));
    paths.into_iter().map(|(path, described)| (path.to_owned(), described)).collect()
}

/// Sets `additionalProperties` to false for objects with known members, because the response types have no others.
fn close(schema: &mut Schema) {
    let has = |name: &str| schema.get(name).is_some();
    if has("properties") && !has("additionalProperties") {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

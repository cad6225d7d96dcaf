//! Resources: the answers of tools under URIs, with the same bytes and the same bounds.

use rmcp::model::{
    CacheScope, ErrorData, ListResourceTemplatesResult, ReadResourceResult, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};

use crate::fit::clip;
use crate::tools::{Payload, RESOURCE_TEMPLATES, ResourceCall, ToolError, resource_call};

const JSON: &str = "application/json";

/// How long a client may keep a record, in milliseconds: not at all.
const RESOURCE_TTL_MS: u64 = 0;

/// The longest URI, in bytes, that a refusal says again.
const LONGEST_SAID: usize = 4_096;

/// The templates; they never change.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |template: &crate::tools::ResourceTemplate| {
        ResourceTemplate::new(template.uri_template, template.name)
            .with_description(template.description)
            .with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(RESOURCE_TEMPLATES.iter().map(template).collect())
}

/// The call that a URI stands for.
pub(super) fn call_of(uri: &str) -> Result<ResourceCall, ErrorData> {
    resource_call(uri).ok_or_else(|| {
        let templates: Vec<&str> = RESOURCE_TEMPLATES.iter().map(|template| template.uri_template).collect();
        let message =
            format!("No such resource: {}. The templates are: {}.", clip(uri, 200), templates.join(", "));
        ErrorData::resource_not_found(message, asked_for(uri))
    })
}

/// The URI, as the specification wants it said beside the refusal; one that could not be a handle's is too long to say.
fn asked_for(uri: &str) -> Option<Value> {
    (uri.len() <= LONGEST_SAID).then(|| json!({ "uri": uri }))
}

/// What a call answered, as the contents of a resource.
pub(super) fn contents(
    uri: &str,
    answer: Result<Payload, ToolError>,
    knows_hints: bool,
) -> Result<ReadResourceResult, ErrorData> {
    // Errors of resources have no result to stand in; the text is the same as a tool's.
    let payload =
        answer.map_err(|error| ErrorData::resource_not_found(error.body().json(), asked_for(uri)))?;
    let text = ResourceContents::text(payload.into_parts().0, uri).with_mime_type(JSON);
    let result = ReadResourceResult::new(vec![text]);
    if knows_hints {
        return Ok(result.with_ttl_ms(RESOURCE_TTL_MS).with_cache_scope(CacheScope::Private));
    }
    Ok(result)
}

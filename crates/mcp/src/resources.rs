//! Resources: the results of tools under URIs, with the same bytes and the same limits, and projects of documents.

use fetchwell_core::fit::clip;
use fetchwell_tools::{
    PROJECT_TEMPLATES, Payload, Profile, RESOURCE_TEMPLATES, ResourceCall, ToolError, resource_call,
};
use rmcp::model::{
    CacheScope, ErrorData, ListResourceTemplatesResult, ReadResourceResult, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};

const JSON: &str = "application/json";

/// Time for which a client may cache a record, in milliseconds: it may not.
const RESOURCE_TTL_MS: u64 = 0;

/// Maximum length, in bytes, of a URI that an error repeats.
const MAX_ECHOED_URI_BYTES: usize = 4_096;

/// Returns the resource templates of a profile, which never change.
pub(crate) fn templates(profile: Profile) -> ListResourceTemplatesResult {
    let templates: &[fetchwell_tools::ResourceTemplate] = match profile {
        Profile::Standard => &RESOURCE_TEMPLATES,
        Profile::Docs => &PROJECT_TEMPLATES,
        Profile::OpenAi => &[],
    };
    let template = |template: &fetchwell_tools::ResourceTemplate| {
        ResourceTemplate::new(template.uri_template, template.name)
            .with_description(template.description)
            .with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(templates.iter().map(template).collect())
}

/// Parses a URI into the read that it stands for.
pub(crate) fn parse_uri(uri: &str) -> Result<ResourceCall, ErrorData> {
    resource_call(uri).ok_or_else(|| {
        let templates: Vec<&str> = RESOURCE_TEMPLATES.iter().map(|template| template.uri_template).collect();
        let message =
            format!("No such resource: {}. The templates are: {}.", clip(uri, 200), templates.join(", "));
        ErrorData::resource_not_found(message, error_data(uri))
    })
}

/// Returns the URI for the `data` of an error, as the specification requires, unless it is longer than that of any
/// handle.
fn error_data(uri: &str) -> Option<Value> {
    (uri.len() <= MAX_ECHOED_URI_BYTES).then(|| json!({ "uri": uri }))
}

/// Converts the result of a call to the contents of a resource.
pub(crate) fn contents(
    uri: &str,
    answer: Result<Payload, ToolError>,
    supports_cache_hints: bool,
) -> Result<ReadResourceResult, ErrorData> {
    // A resource has no result with an error flag, so the tool's error text becomes a protocol error.
    let payload =
        answer.map_err(|error| ErrorData::resource_not_found(error.body().json(), error_data(uri)))?;
    let text = ResourceContents::text(payload.into_parts().0, uri).with_mime_type(JSON);
    let result = ReadResourceResult::new(vec![text]);
    if supports_cache_hints {
        return Ok(result.with_ttl_ms(RESOURCE_TTL_MS).with_cache_scope(CacheScope::Private));
    }
    Ok(result)
}

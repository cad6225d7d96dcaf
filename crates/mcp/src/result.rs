//! Conversion of payloads and errors to tool results.

use fetchwell_telemetry::RequestId;
use fetchwell_tools::{Payload, ToolError};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};

/// Returns a payload in two identical channels: some clients show the model the text, others the structured value.
pub(crate) fn success(payload: Payload) -> CallToolResult {
    let (json, value) = payload.into_parts();
    let mut result = CallToolResult::success(vec![ContentBlock::text(json)]);
    result.structured_content = Some(value);
    result
}

/// Returns an error in two identical channels: Claude Code shows a model the text of an error, Copilot CLI both if
/// they differ.
pub(crate) fn failure(error: &ToolError) -> CallToolResult {
    let body = error.body();
    let mut result = CallToolResult::error(vec![ContentBlock::text(body.json())]);
    result.structured_content = Some(body.value());
    result
}

/// Adds the request id to a result if the caller gave it. A generated id is omitted, because the client does not know
/// it and a model may read every byte.
pub(crate) fn with_request_id(mut result: CallToolResult, id: Option<&RequestId>) -> CallToolResult {
    if let Some(id) = id.filter(|id| id.is_callers()) {
        let meta = result.meta.get_or_insert_with(MetaObject::new);
        meta.0.insert("request_id".to_owned(), id.as_str().into());
    }
    result
}

//! Payloads and errors as tool results.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use crate::tools::{Payload, ToolError};

/// One payload in two identical channels: some clients show the model the text, others the value.
pub(super) fn success(payload: Payload) -> CallToolResult {
    let (json, value) = payload.into_parts();
    let mut result = CallToolResult::success(vec![ContentBlock::text(json)]);
    result.structured_content = Some(value);
    result
}

/// An error as text that is enough by itself, since clients drop the value of errors.
pub(super) fn failure(error: &ToolError) -> CallToolResult {
    let body = error.body();
    let mut result = CallToolResult::error(vec![ContentBlock::text(body.json())]);
    result.structured_content = Some(json!({ "error": body }));
    result
}

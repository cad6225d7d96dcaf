//! Payloads and errors as tool results.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};

use crate::telemetry::RequestId;
use crate::tools::{Payload, ToolError};

/// One payload in two identical channels: some clients show the model the text, others the value.
pub(super) fn success(payload: Payload) -> CallToolResult {
    let (json, value) = payload.into_parts();
    let mut result = CallToolResult::success(vec![ContentBlock::text(json)]);
    result.structured_content = Some(value);
    result
}

/// One error in two identical channels: Claude Code shows a model the text of an error, Copilot CLI both where they differ.
pub(super) fn failure(error: &ToolError) -> CallToolResult {
    let body = error.body();
    let mut result = CallToolResult::error(vec![ContentBlock::text(body.json())]);
    result.structured_content = Some(body.value());
    result
}

/// The same with the id that its caller gave, for whoever looks for it. Nobody looks for one of ours, and every byte may
/// be read by a model.
pub(super) fn of_request(mut result: CallToolResult, id: Option<&RequestId>) -> CallToolResult {
    if let Some(id) = id.filter(|id| id.is_callers()) {
        let meta = result.meta.get_or_insert_with(MetaObject::new);
        meta.0.insert("request_id".to_owned(), id.as_str().into());
    }
    result
}

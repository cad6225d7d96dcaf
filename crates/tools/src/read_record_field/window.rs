//! A window of a text field: characters from an offset, or around a match.

use fetchwell_core::fit::{PageBudget, Shaping, Strategy, characters, chunk_end, json_len};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::Window;
use serde::Serialize;
use serde_json::{Value, json};

use super::request::WindowRequest;
use crate::answer::{Payload, json_of, room_beside, run_blocking, within};
use crate::error::ToolError;
use crate::tool::ToolCall;

/// Maximum size of a character, in bytes of JSON. A token has at least one byte.
const MAX_CHAR_BYTES: usize = 6;

/// Size of an answer without its text, id and field, in bytes. The latter two occur three times.
const FIXED_BYTES: usize = 500;

/// The answer of a call that reads characters.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    id: &'a str,
    field: &'a str,
    text: &'a str,
    start_chars: usize,
    end_chars: usize,
    total_chars: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_start_chars: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_end_chars: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Value>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// Reads a window of a field.
pub(super) async fn read_window(
    ToolCall { toolbox, warnings, .. }: ToolCall<'_>,
    request: WindowRequest,
) -> Result<Payload, ToolError> {
    let source = toolbox.named_source("read_record_field", request.source.as_ref())?;
    let query = &request.query;
    let failed = |error| ToolError::from_source(&source, error);
    let window = source.window(query).await.map_err(failed)?;
    let budget = toolbox.budget("read_record_field");
    run_blocking(move || answer(&request, &warnings, &window, budget)).await
}

/// Fits a window into the budget.
fn answer(
    request: &WindowRequest,
    warnings: &[String],
    window: &Window,
    budget: PageBudget,
) -> Result<Payload, ToolError> {
    let handle = Handle::mint(&window.address);
    let id = handle.as_ref().map_or(request.id.as_str(), Handle::as_str);
    let call_from = |offset: usize, limit: usize| {
        let mut call =
            json!({ "id": id, "field": request.query.field, "offset_chars": offset, "limit_chars": limit });
        if let (Some(call), Some(source)) = (call.as_object_mut(), &request.source) {
            call.insert("source".to_owned(), source.as_str().into());
        }
        call
    };
    // A previous piece must always fit, because a piece that is truncated at its end has a gap before the next one.
    let overhead = 3 * (json_len(id) + json_len(&request.query.field))
        + FIXED_BYTES
        + request.source.as_ref().map_or(0, |source| 2 * json_len(source.as_str()));
    let max_previous = (budget.tokens.saturating_sub(overhead) / MAX_CHAR_BYTES).max(1);
    let piece = |text: &str, start_chars: usize| -> Result<String, ToolError> {
        let end_chars = start_chars + text.chars().count();
        json_of(&Answer {
            id,
            field: &request.query.field,
            text,
            start_chars,
            end_chars,
            total_chars: window.total_chars,
            match_start_chars: window.found_chars.as_ref().map(|found| found.start),
            match_end_chars: window.found_chars.as_ref().map(|found| found.end),
            next: (end_chars < window.total_chars).then(|| call_from(end_chars, request.step)),
            previous: (start_chars > 0).then(|| {
                let limit = request.step.min(max_previous).min(start_chars);
                call_from(start_chars - limit, limit)
            }),
            warnings,
        })
    };
    let is_piece = window.text.chars().count() < window.total_chars;
    let whole = Shaping {
        items: 1,
        strategy: if is_piece { Strategy::Chunked } else { Strategy::Whole },
        ..Shaping::default()
    };
    let json = piece(&window.text, window.start_chars)?;
    let whole_bytes = json.len();
    let truncated = Shaping { strategy: Strategy::Chunked, oversized: true, ..whole };
    if let Some(payload) = payload_within(json, budget)? {
        return Ok(payload.with_shaping(whole));
    }
    // Text around a match is removed until the rest fits. Without a match, the rest becomes the next piece.
    let mut start = 0;
    if let Some(found) = &window.found_chars {
        let lead = found.start.saturating_sub(window.start_chars);
        let tail = window.end_chars().saturating_sub(found.end);
        let mut context = lead.max(tail);
        while context > 0 {
            context = context * 3 / 4;
            let (before, after) = (lead.min(context), tail.min(context));
            let text = characters(&window.text, lead - before, before + found.len() + after);
            if let Some(payload) = payload_within(piece(text, window.start_chars + lead - before)?, budget)? {
                return Ok(payload.with_shaping(truncated).shortened_from(whole_bytes));
            }
        }
        start = lead;
    }
    let text = characters(&window.text, start, usize::MAX);
    let room = room_beside(&piece("", window.start_chars + start)?, budget);
    let end = chunk_end(text, 0, room);
    let json = piece(text.get(..end).unwrap_or_default(), window.start_chars + start)?;
    Ok(Payload::from_json(json, budget)?.with_shaping(truncated).shortened_from(whole_bytes))
}

/// Returns the payload of an answer if it fits into its budget.
fn payload_within(json: String, budget: PageBudget) -> Result<Option<Payload>, ToolError> {
    match within(&json, budget) {
        Ok(tokens) => Payload::from_fitted_json(json, tokens).map(Some),
        Err(_too_large) => Ok(None),
    }
}

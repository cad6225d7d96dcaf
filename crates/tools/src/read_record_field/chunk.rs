//! A chunk of a text field, for `read_record_field` with `unit` "chunk".

use fetchwell_core::fit::{CHUNK_BYTES, PageBudget, Shaping, Strategy, chars_before};
use fetchwell_core::handle::{Handle, RecordAddress, SourceName};
use fetchwell_state::cursor::CursorFault;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{ContinuedText, Payload, continue_chunked, read_chunked};
use crate::cache::{ChunkStart, ChunkedText, TextQuery};
use crate::error::ToolError;
use crate::toolbox::Toolbox;

/// A request for the first chunk of a field, or for the one that a cursor names.
#[derive(Debug)]
pub(crate) struct ChunkRequest {
    pub(super) address: RecordAddress,
    pub(super) field: String,
    pub(super) cursor: Option<String>,
    pub(super) source: Option<SourceName>,
}

/// The answer of a call that reads a chunk.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    id: &'a str,
    field: &'a str,
    text: &'a str,
    start_chars: usize,
    end_chars: usize,
    total_chars: usize,
    chunk_index: usize,
    total_chunks: usize,
    start_line: usize,
    end_line: usize,
    total_lines: usize,
    bytes_in_chunk: usize,
    /// True if the chunk ends inside a sentence, entry or line, because it has no better place to end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hard_split: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
}

/// Returns the maximum size of a chunk in bytes, also as JSON. It leaves a quarter of the budget for the rest of the answer.
/// A token has at least one byte.
pub fn max_chunk_bytes(budget: PageBudget) -> usize {
    (budget.tokens.min(budget.bytes) * 3 / 4).clamp(1, CHUNK_BYTES)
}

/// Reads a chunk of a field.
pub(super) async fn read_chunk(toolbox: &Toolbox, request: ChunkRequest) -> Result<Payload, ToolError> {
    let ChunkRequest { address, field, cursor, source } = request;
    let budget = toolbox.budget("read_record_field");
    let (text, start, named) = match cursor {
        None => {
            let reader = toolbox.named_source("read_record_field", source.as_ref())?;
            let query = TextQuery { address, field: Some(field), max_bytes: max_chunk_bytes(budget) };
            (read_chunked(toolbox, &reader, query).await?, ChunkStart::default(), source)
        }
        Some(cursor) => {
            let ContinuedText { text, start, source: named } =
                continue_chunked(toolbox, &cursor, &address, Some(&field)).await?;
            if source.is_some() && source != named {
                return Err(ToolError::InvalidTextCursor(CursorFault::Mismatched));
            }
            (text, start, named)
        }
    };
    let chunk = text.chunk_from(start);
    let end = chunk.map_or(text.text.len(), |chunk| chunk.end);
    let next = text.cursor_at(toolbox, named.as_ref(), end).await?;
    let shaping = Shaping {
        items: 1,
        strategy: if text.chunks.len() > 1 { Strategy::Chunked } else { Strategy::Whole },
        ..Shaping::default()
    };
    Ok(answer(&text, start, next, named.as_ref(), budget)?.with_shaping(shaping))
}

/// Builds the answer of a chunk.
fn answer(
    text: &ChunkedText,
    start: ChunkStart,
    next: Option<String>,
    source: Option<&SourceName>,
    budget: PageBudget,
) -> Result<Payload, ToolError> {
    let id = Handle::mint(&text.address).map(|handle| handle.to_string()).unwrap_or_default();
    let field = text.field.as_deref().unwrap_or_default();
    let next = next.map(|cursor| {
        let mut call = json!({ "id": id, "field": field, "unit": "chunk", "cursor": cursor });
        if let (Some(call), Some(source)) = (call.as_object_mut(), source) {
            call.insert("source".to_owned(), source.as_str().into());
        }
        call
    });
    let chunk = text.chunk_from(start);
    let piece = text.piece(chunk.as_ref());
    let start_chars = chunk.map_or(0, |chunk| chars_before(&text.text, chunk.start));
    let answer = Answer {
        id: &id,
        field,
        text: piece,
        start_chars,
        end_chars: start_chars + piece.chars().count(),
        total_chars: text.text.chars().count(),
        chunk_index: start.index,
        // An empty text has one empty chunk.
        total_chunks: text.chunks.len().max(1),
        start_line: chunk.map_or(0, |chunk| chunk.start_line),
        end_line: chunk.map_or(0, |chunk| chunk.end_line),
        total_lines: text.chunks.total_lines(),
        bytes_in_chunk: piece.len(),
        hard_split: chunk.is_some_and(|chunk| text.is_hard_split(&chunk)),
        next,
    };
    Payload::within(&answer, budget)
}

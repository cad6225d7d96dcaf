//! `GET /api/v1/content/{id}`: a long text by chunks or by lines.

use std::ops::Range;

use axum::http::StatusCode;
use fetchwell_core::fit::{PageBudget, Shaping, Strategy, clip, tokens_within};
use fetchwell_core::handle::Handle;
use fetchwell_tools::{ChunkStart, ChunkedText, TextQuery, continue_chunked, max_chunk_bytes, read_chunked};
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call;
use super::error::ApiError;
use crate::answer::Answer;
use crate::error::RequestError;

/// A piece of a long text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentChunk<'a> {
    content: &'a str,
    /// Index of the chunk, from 0.
    chunk_index: usize,
    total_chunks: usize,
    /// Cursor of the following text: the next chunk, or after requested lines the rest of their chunk; null at the end.
    next_cursor: Option<String>,
    metadata: ChunkMetadata,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChunkMetadata {
    /// First line of the piece, from 0.
    start_line: usize,
    /// Last line of the piece. The next chunk starts with the line after it, or continues it after a split within a line.
    end_line: usize,
    total_lines: usize,
    bytes_in_chunk: usize,
    /// Type of the text, which decides where chunks end: `markdown`, `log`, `code` or `prose`.
    content_type: &'static str,
    /// True if the piece ends inside a line or an entry, because there was no better place to split.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hard_split: bool,
}

/// Part of a text that a request asks for.
enum Piece {
    Chunk(ChunkStart),
    /// Range of lines: the first one, and the one after the last.
    Lines(usize, usize),
}

pub(super) async fn answer(call: &mut Call<'_>, sent: &str) -> Result<Answer, ApiError> {
    let handle = handle(sent)?;
    let field = call.parameters.take("field");
    let cursor = call.parameters.take("cursor");
    let index = call.parameters.number("chunkIndex")?;
    let (first, last) = (call.parameters.number("startLine")?, call.parameters.number("endLine")?);
    call.parameters.reject_remaining()?;
    let wrong = |param: &str, problem: &str| {
        ApiError::from(RequestError::bad("invalid_argument", problem.to_owned()).about(param))
    };
    let piece = match (index, first, last) {
        (index, None, None) => Piece::Chunk(ChunkStart::new(index.unwrap_or(0))),
        (Some(_), _, _) => return Err(wrong("chunkIndex", "it does not go with `startLine` and `endLine`")),
        (None, first, last) if last.is_some_and(|last| last < first.unwrap_or(0)) => {
            return Err(wrong("endLine", "it is before `startLine`"));
        }
        (None, first, last) => {
            Piece::Lines(first.unwrap_or(0), last.map_or(usize::MAX, |last| last.saturating_add(1)))
        }
    };
    let budget = PageBudget::whole(&call.limits);
    let toolbox = call.toolbox;
    let (text, piece) = match cursor {
        None => {
            let query =
                TextQuery { address: handle.address().clone(), field, max_bytes: max_chunk_bytes(budget) };
            (read_chunked(toolbox, toolbox.source(), query).await?, piece)
        }
        Some(cursor) => {
            if index.is_some() || first.is_some() || last.is_some() {
                return Err(wrong("cursor", "it already has a position; leave out the other parameters"));
            }
            let continued = continue_chunked(toolbox, &cursor, handle.address(), field.as_deref()).await?;
            (continued.text, Piece::Chunk(continued.start))
        }
    };
    match piece {
        Piece::Chunk(start) => chunk(call, &text, start, budget).await,
        Piece::Lines(first, end) => lines(call, &text, first..end, budget).await,
    }
}

/// Parses a handle, either as it is printed or percent-encoded as a whole.
fn handle(sent: &str) -> Result<Handle, ApiError> {
    let decoded = percent_decode_str(sent).decode_utf8_lossy();
    let read = if sent.contains('/') { sent.parse().or_else(|_| decoded.parse()) } else { decoded.parse() };
    read.map_err(|problem: fetchwell_core::handle::InvalidHandle| {
        let problem = format!("`{}` is not an id: {problem}", clip(&decoded, 200));
        RequestError::bad("invalid_handle", problem).hinting("Use an `id` as it was printed.").into()
    })
}

async fn chunk(
    call: &Call<'_>,
    text: &ChunkedText,
    start: ChunkStart,
    budget: PageBudget,
) -> Result<Answer, ApiError> {
    // An empty text is one empty chunk.
    let total_chunks = text.chunks.len().max(1);
    if start.index >= total_chunks {
        let problem = format!("the text has {total_chunks} chunks, numbered from 0");
        return Err(RequestError::bad("invalid_argument", problem).about("chunkIndex").into());
    }
    let at = text.chunk_from(start);
    let content = text.piece(at.as_ref());
    let end = at.map_or(text.text.len(), |chunk| chunk.end);
    let body = ContentChunk {
        content,
        chunk_index: start.index,
        total_chunks,
        next_cursor: text.cursor_at(call.toolbox, None, end).await?,
        metadata: ChunkMetadata {
            start_line: at.map_or(0, |chunk| chunk.start_line),
            end_line: at.map_or(0, |chunk| chunk.end_line),
            total_lines: text.chunks.total_lines(),
            bytes_in_chunk: content.len(),
            content_type: text.chunks.kind.as_str(),
            hard_split: at.is_some_and(|chunk| text.is_hard_split(&chunk)),
        },
    };
    let is_piece = total_chunks > 1;
    written(&body, false, is_piece, budget)
}

async fn lines(
    call: &Call<'_>,
    text: &ChunkedText,
    Range { start: first, end }: Range<usize>,
    budget: PageBudget,
) -> Result<Answer, ApiError> {
    let total_lines = text.chunks.total_lines();
    if first >= total_lines.max(1) {
        let problem = format!("the text has {total_lines} lines, numbered from 0");
        return Err(RequestError::bad("invalid_argument", problem).about("startLine").into());
    }
    let end = end.min(total_lines);
    let bytes = text.chunks.lines(&text.text, first..end);
    // Index of the chunk that contains the last byte. There is a next cursor if that chunk has text left or another
    // one follows.
    let chunk_index = text.chunks.at(bytes.end.saturating_sub(1)).unwrap_or(0);
    let next_cursor = text.cursor_at(call.toolbox, None, bytes.end).await?;
    let content = text.text.get(bytes).unwrap_or_default();
    let body = ContentChunk {
        content,
        chunk_index,
        total_chunks: text.chunks.len().max(1),
        next_cursor,
        metadata: ChunkMetadata {
            start_line: first,
            end_line: end.saturating_sub(1).max(first),
            total_lines,
            bytes_in_chunk: content.len(),
            content_type: text.chunks.kind.as_str(),
            hard_split: false,
        },
    };
    written(&body, true, end - first < total_lines, budget)
}

fn written(
    body: &ContentChunk<'_>,
    by_lines: bool,
    is_piece: bool,
    budget: PageBudget,
) -> Result<Answer, ApiError> {
    let too_large = || {
        let count = body.content.lines().count();
        let problem = format!("{count} lines take more than the hard cap of {} tokens", budget.tokens);
        let hint = if by_lines {
            "Ask for fewer lines, or for chunks, without `startLine` and `endLine`."
        } else {
            "Raise `hard_cap` for this path in the configuration."
        };
        RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem).hinting(hint)
    };
    if body.content.len() > budget.bytes {
        return Err(too_large().into());
    }
    let json = serde_json::to_string(body).map_err(|_unwritable| RequestError::internal())?;
    let tokens = tokens_within(&json, budget.tokens).map_err(|_over| too_large())?;
    let strategy = if is_piece { Strategy::Chunked } else { Strategy::Whole };
    Ok(Answer::with_shaping(json, Shaping { items: 1, strategy, tokens, ..Shaping::default() }))
}

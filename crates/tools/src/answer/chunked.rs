//! Texts of records divided into chunks, for tools and for routes of `/api/v1`.
//!
//! The cache of the toolbox keeps texts, so that a client that reads a long one chunk by chunk waits for the first chunk
//! only.
//! **Invariant:** a cursor names the version of the text, so no client joins chunks of two versions.

use std::sync::Arc;

use fetchwell_core::fit::ContentChunks;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::{RecordData, document_text};
use fetchwell_core::saturate::saturated;
use fetchwell_source::{BoundSource, QueryFault, RecordQuery, SourceError};
use fetchwell_state::cursor::{CursorFault, Kind};
use fetchwell_telemetry::ReadKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::blocking::run_blocking;
use crate::cache::{ChunkStart, ChunkedText, TextQuery};
use crate::error::ToolError;
use crate::paging::{binding, load};
use crate::toolbox::Toolbox;

/// Maximum number of fields that an error names.
const MAX_FIELDS: usize = 30;

/// Position of a cursor.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkPosition {
    source: Option<SourceName>,
    address: RecordAddress,
    field: Option<String>,
    version: String,
    #[serde(rename = "most")]
    max_bytes: usize,
    index: usize,
    /// Byte of the text to continue from, if an answer by lines ended inside the chunk.
    #[serde(default)]
    from: usize,
}

impl ChunkedText {
    /// Returns a cursor for the text from a byte on, or `None` at its end.
    pub async fn cursor_at(
        &self,
        toolbox: &Toolbox,
        source: Option<&SourceName>,
        byte: usize,
    ) -> Result<Option<String>, ToolError> {
        let Some((index, chunk)) = self.chunks.at(byte).and_then(|at| Some((at, self.chunks.get(at)?)))
        else {
            return Ok(None);
        };
        let from = if chunk.start < byte { byte } else { 0 };
        let position = ChunkPosition {
            source: source.cloned(),
            address: self.address.clone(),
            field: self.field.clone(),
            version: self.version.clone(),
            max_bytes: self.max_bytes,
            index,
            from,
        };
        let text = serde_json::to_string(&position);
        let text = text.map_err(|error| ToolError::Internal { problem: error.to_string() })?;
        let offset = saturated::<u32>(index);
        let issued = toolbox.cursors.issue(Kind::Chunk, offset, binding(toolbox), text).await;
        issued.map(Some).map_err(ToolError::StateUnavailable)
    }
}

/// Reads the text of a field, or of a whole record, and divides it.
pub async fn read_chunked(
    toolbox: &Toolbox,
    source: &BoundSource,
    query: TextQuery,
) -> Result<Arc<ChunkedText>, ToolError> {
    let failed = |error| ToolError::from_source(source, error).with_record(&query.address);
    let version = source.version(&query.address).await.map_err(failed)?;
    if let Some(version) = &version
        && let Some(text) = toolbox.texts.get(source.name(), &query, version)
    {
        source.report_record(ReadKind::Field, &query.address);
        return Ok(text);
    }
    let whole = RecordQuery::new(query.address.clone());
    let record = source.record(&whole).await.map_err(failed)?;
    let text = field_text(&record.data, query.field.as_deref()).map_err(failed)?;
    let TextQuery { field, max_bytes, .. } = query.clone();
    let has_version = version.is_some();
    let text = run_blocking(move || {
        let _memory = record.memory;
        let chunks = ContentChunks::new(&text, max_bytes);
        let version = version.unwrap_or_else(|| digest(&text));
        Ok(Arc::new(ChunkedText { address: record.address, field, text, chunks, version, max_bytes }))
    });
    let text = text.await?;
    // Without a version, only reading the record again could tell whether it is unchanged.
    if has_version {
        toolbox.texts.insert(source.name().clone(), query, Arc::clone(&text));
    }
    Ok(text)
}

/// A text that a cursor continues.
#[derive(Debug)]
pub struct ContinuedText {
    /// Text with its chunks.
    pub text: Arc<ChunkedText>,
    /// Place to continue from.
    pub start: ChunkStart,
    /// Source that the first call named.
    pub(crate) source: Option<SourceName>,
}

/// Reads the text that a cursor continues. It has to be a text of the record, and of the field if one is named.
pub async fn continue_chunked(
    toolbox: &Toolbox,
    cursor: &str,
    asked: &RecordAddress,
    asked_field: Option<&str>,
) -> Result<ContinuedText, ToolError> {
    let (_, position) =
        load::<ChunkPosition>(toolbox, Kind::Chunk, ToolError::InvalidTextCursor, cursor).await?;
    let source = toolbox.named_source("read_record_field", position.source.as_ref())?;
    let ChunkPosition { address, field, max_bytes, .. } = &position;
    let query = TextQuery { address: address.clone(), field: field.clone(), max_bytes: *max_bytes };
    let text = read_chunked(toolbox, &source, query).await?;
    if text.version != position.version || position.index >= text.chunks.len() {
        return Err(ToolError::InvalidTextCursor(CursorFault::RecordChanged));
    }
    let RecordAddress { connection, stream, record } = &text.address;
    let is_of_record = (stream, record) == (&asked.stream, &asked.record)
        && asked.connection.as_ref().is_none_or(|asked| connection.as_ref() == Some(asked));
    if !is_of_record || asked_field.is_some_and(|asked| text.field.as_deref() != Some(asked)) {
        return Err(ToolError::InvalidTextCursor(CursorFault::Mismatched));
    }
    let start = ChunkStart { index: position.index, from: position.from };
    Ok(ContinuedText { text, start, source: position.source })
}

/// Returns a field as text: a string as it is, any other value as JSON with a line for each value.
fn field_text(data: &RecordData, field: Option<&str>) -> Result<String, SourceError> {
    let Some(field) = field else { return Ok(document_text(data)) };
    match data.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(serde_json::to_string_pretty(other).unwrap_or_default()),
        None => {
            let known: Vec<&str> = data.keys().map(String::as_str).take(MAX_FIELDS).collect();
            Err(SourceError::InvalidQuery {
                fault: QueryFault::FieldNotFound,
                problem: format!("the record has no field `{field}`"),
                hint: format!("Its fields are: {}.", known.join(", ")),
            })
        }
    }
}

fn digest(text: &str) -> String {
    hexadecimal(Sha256::digest(text).iter().take(16))
}

//! Texts of records divided into chunks, for tools and for routes of `/api/v1`.
//!
//! [`ChunkedTexts`] caches texts, so that a client that reads a long one chunk by chunk waits for the first chunk only. A
//! text is read and divided again when the version of its record changes.
//! **Invariant:** a cursor names the version of the text, so no client joins chunks of two versions.

use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::blocking::run_blocking;
use crate::cursor::{CursorFault, Kind};
use crate::fit::{Chunk, ContentChunks};
use crate::handle::{RecordAddress, SourceName};
use crate::record::{RecordData, document_text};
use crate::source::{QueryFault, RecordQuery, Source, SourceError};
use crate::tools::error::ToolError;
use crate::tools::paging::{binding, load};
use crate::tools::toolbox::Toolbox;

/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 48 * 1024 * 1024;

/// Maximum length of a cached text, in bytes. A longer one is read again for each chunk.
const MAX_TEXT_BYTES: usize = 24 * 1024 * 1024;

/// Time after which an unused text is evicted.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// Maximum number of fields that an error names.
const MAX_FIELDS: usize = 30;

/// A text of a record with the bounds of its chunks.
#[derive(Debug)]
pub(crate) struct ChunkedText {
    /// Address of the record, as its source names it.
    pub(crate) address: RecordAddress,
    /// Name of the field; `None` for the whole record as one text.
    pub(crate) field: Option<String>,
    /// Text that is divided.
    pub(crate) text: String,
    /// Bounds of the chunks.
    pub(crate) chunks: ContentChunks,
    /// Version of the text, which changes with it.
    version: String,
    /// Maximum size of a chunk in bytes.
    most: usize,
}

/// A text of a record to divide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TextQuery {
    /// Address of the record.
    pub(crate) address: RecordAddress,
    /// Name of the field; `None` for the whole record as one text.
    pub(crate) field: Option<String>,
    /// Maximum size of a chunk in bytes, also as JSON.
    pub(crate) most: usize,
}

/// Position of a cursor.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkPosition {
    source: Option<SourceName>,
    address: RecordAddress,
    field: Option<String>,
    version: String,
    most: usize,
    index: usize,
    /// Byte of the text to continue from, if an answer by lines ended inside the chunk.
    #[serde(default)]
    from: usize,
}

/// A place in a text from which to read to the end of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkStart {
    /// Index of the chunk.
    pub(crate) index: usize,
    /// First byte to read, if it is after the start of the chunk.
    pub(crate) from: usize,
}

impl ChunkStart {
    /// Creates the start of a chunk.
    pub(crate) fn new(index: usize) -> Self {
        Self { index, from: 0 }
    }
}

/// Cache of divided texts.
#[derive(Debug, Clone)]
pub(crate) struct ChunkedTexts(Cache<(SourceName, TextQuery), Arc<ChunkedText>>);

impl Default for ChunkedTexts {
    fn default() -> Self {
        let weight = |_: &(SourceName, TextQuery), text: &Arc<ChunkedText>| {
            u32::try_from(text.text.len() + 64 * text.chunks.len() + 512).unwrap_or(u32::MAX)
        };
        let texts = Cache::builder().max_capacity(MAX_CACHE_BYTES).weigher(weight).time_to_idle(MAX_IDLE);
        Self(texts.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl ChunkedText {
    /// Returns the chunk at a place, from there to its end.
    pub(crate) fn chunk_from(&self, start: ChunkStart) -> Option<Chunk> {
        let chunk = self.chunks.get(start.index)?;
        let skipped = self.text.get(chunk.start..start.from).unwrap_or_default();
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        Some(Chunk { start: chunk.start + skipped.len(), start_line: chunk.start_line + lines, ..chunk })
    }

    /// Returns the text of a chunk. Empty for `None`.
    pub(crate) fn piece(&self, chunk: Option<&Chunk>) -> &str {
        chunk.and_then(|chunk| self.text.get(chunk.start..chunk.end)).unwrap_or_default()
    }

    /// Returns true if a chunk ends inside an entry, a sentence or a line.
    pub(crate) fn is_hard_split(&self, chunk: &Chunk) -> bool {
        let ends_inside_line = chunk.end < self.text.len() && !self.piece(Some(chunk)).ends_with('\n');
        chunk.is_hard_split || ends_inside_line
    }

    /// Returns a cursor for the text from a byte on, or `None` at its end.
    pub(crate) async fn cursor_at(
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
            most: self.most,
            index,
            from,
        };
        let text = serde_json::to_string(&position);
        let text = text.map_err(|error| ToolError::Internal { problem: error.to_string() })?;
        let offset = u32::try_from(index).unwrap_or(u32::MAX);
        let issued = toolbox.cursors.issue(Kind::Chunk, offset, binding(toolbox), text).await;
        issued.map(Some).map_err(ToolError::StateUnavailable)
    }
}

/// Reads the text of a field, or of a whole record, and divides it.
pub(crate) async fn read_chunked(
    toolbox: &Toolbox,
    source: &dyn Source,
    query: TextQuery,
) -> Result<Arc<ChunkedText>, ToolError> {
    let failed = |error| ToolError::from_source(source, error).with_record(&query.address);
    let version = source.version(&query.address).await.map_err(failed)?;
    let key = (source.name().clone(), query.clone());
    if let (Some(version), Some(known)) = (&version, toolbox.texts.0.get(&key))
        && known.version == *version
    {
        return Ok(known);
    }
    let whole = RecordQuery::of(query.address.clone());
    let record = source.record(&whole).await.map_err(failed)?;
    let text = field_text(&record.data, query.field.as_deref()).map_err(failed)?;
    let TextQuery { field, most, .. } = query;
    let is_known = version.is_some();
    let cut = run_blocking(move || {
        let _memory = record.memory;
        let chunks = ContentChunks::of(&text, most);
        let version = version.unwrap_or_else(|| digest(&text));
        Ok(Arc::new(ChunkedText { address: record.address, field, text, chunks, version, most }))
    });
    let cut = cut.await?;
    // Without a version, only reading the record again could tell whether it is unchanged.
    if is_known && cut.text.len() <= MAX_TEXT_BYTES {
        toolbox.texts.0.insert(key, Arc::clone(&cut));
    }
    Ok(cut)
}

/// A text that a cursor continues.
#[derive(Debug)]
pub(crate) struct ContinuedText {
    /// Text with its chunks.
    pub(crate) text: Arc<ChunkedText>,
    /// Place to continue from.
    pub(crate) start: ChunkStart,
    /// Source that the first call named.
    pub(crate) source: Option<SourceName>,
}

/// Reads the text that a cursor continues. It has to be a text of the record, and of the field if one is named.
pub(crate) async fn continue_chunked(
    toolbox: &Toolbox,
    cursor: &str,
    asked: &RecordAddress,
    asked_field: Option<&str>,
) -> Result<ContinuedText, ToolError> {
    let (_, position) =
        load::<ChunkPosition>(toolbox, Kind::Chunk, ToolError::InvalidTextCursor, cursor).await?;
    let source = toolbox.source("read_record_field", position.source.as_ref())?;
    let ChunkPosition { address, field, most, .. } = &position;
    let query = TextQuery { address: address.clone(), field: field.clone(), most: *most };
    let text = read_chunked(toolbox, source.as_ref(), query).await?;
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
    let digest = Sha256::digest(text);
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

//! Texts of records, cut into chunks, as tools and routes give them out.
//!
//! A text is read and cut once for as long as its record stays what it is: whoever reads a long one chunk by chunk, or
//! jumps to a line of it, waits for that the first time only. A cursor names the version it was given for, so that nobody
//! puts together chunks of two versions.

use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::blocking::beside_other_calls;
use super::error::ToolError;
use super::paging::{binding, load};
use super::toolbox::Toolbox;
use crate::cursor::{CursorFault, Kind};
use crate::fit::{Chunk, ContentChunks};
use crate::handle::{RecordAddress, SourceName};
use crate::record::{RecordData, document_text};
use crate::source::{QueryFault, RecordQuery, Source, SourceError};

/// The most memory that texts take, in bytes.
const MAX_TEXTS: u64 = 48 * 1024 * 1024;

/// The longest text that is kept. One that is longer is read again each time.
const MAX_TEXT: usize = 24 * 1024 * 1024;

/// How long a text is kept that nobody reads.
const IDLE: Duration = Duration::from_secs(60);

/// Fields that a refusal names.
const FIELDS_SHOWN: usize = 30;

/// A text of a record, and where its chunks are.
#[derive(Debug)]
pub(crate) struct ChunkedText {
    /// The record, as its source names it.
    pub(crate) address: RecordAddress,
    /// The field; the whole record as one text when there is none.
    pub(crate) field: Option<String>,
    /// The text.
    pub(crate) text: String,
    /// Where it is cut.
    pub(crate) chunks: ContentChunks,
    /// Another word when the text is another.
    version: String,
    /// The most bytes of a chunk.
    most: usize,
}

/// What is to be cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TextQuery {
    /// The record.
    pub(crate) address: RecordAddress,
    /// One of its fields; all of it as one text when there is none.
    pub(crate) field: Option<String>,
    /// The most bytes of a chunk, also as JSON.
    pub(crate) most: usize,
}

/// Where reading goes on.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkPosition {
    source: Option<SourceName>,
    address: RecordAddress,
    field: Option<String>,
    version: String,
    most: usize,
    index: usize,
    /// The byte to go on from in that chunk, where an answer by lines ended inside it.
    #[serde(default)]
    from: usize,
}

/// A place in a text to read from, to the end of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkStart {
    /// The chunk.
    pub(crate) index: usize,
    /// The first byte that is read, where that is after the start of the chunk.
    pub(crate) from: usize,
}

impl ChunkStart {
    /// The start of a chunk.
    pub(crate) fn of_chunk(index: usize) -> Self {
        Self { index, from: 0 }
    }
}

/// Texts that were read lately.
#[derive(Debug, Clone)]
pub(super) struct Texts(Cache<(SourceName, TextQuery), Arc<ChunkedText>>);

impl Default for Texts {
    fn default() -> Self {
        let weight = |_: &(SourceName, TextQuery), text: &Arc<ChunkedText>| {
            u32::try_from(text.text.len() + 64 * text.chunks.len() + 512).unwrap_or(u32::MAX)
        };
        let texts = Cache::builder().max_capacity(MAX_TEXTS).weigher(weight).time_to_idle(IDLE);
        Self(texts.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl ChunkedText {
    /// Returns what is read from a place on: a chunk, or the rest of one.
    pub(crate) fn chunk_from(&self, start: ChunkStart) -> Option<Chunk> {
        let chunk = self.chunks.get(start.index)?;
        let skipped = self.text.get(chunk.start..start.from).unwrap_or_default();
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        Some(Chunk { start: chunk.start + skipped.len(), start_line: chunk.start_line + lines, ..chunk })
    }

    /// Returns the text of a chunk, or of the rest of one.
    pub(crate) fn piece(&self, chunk: Option<&Chunk>) -> &str {
        chunk.and_then(|chunk| self.text.get(chunk.start..chunk.end)).unwrap_or_default()
    }

    /// Returns whether a chunk ends inside an entry, a sentence or a line.
    pub(crate) fn is_hard_split(&self, chunk: &Chunk) -> bool {
        let ends_inside_line = chunk.end < self.text.len() && !self.piece(Some(chunk)).ends_with('\n');
        chunk.is_hard_split || ends_inside_line
    }

    /// Returns the cursor for what follows a byte of the text; nothing at its end.
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
        let text = text.map_err(|error| ToolError::Report { problem: error.to_string() })?;
        let offset = u32::try_from(index).unwrap_or(u32::MAX);
        let issued = toolbox.cursors.issue(Kind::Chunk, offset, binding(toolbox), text).await;
        issued.map(Some).map_err(ToolError::MendState)
    }
}

/// The text of a field of a record, or of all of it, cut.
pub(crate) async fn chunked(
    toolbox: &Toolbox,
    source: &dyn Source,
    query: TextQuery,
) -> Result<Arc<ChunkedText>, ToolError> {
    let failed = |error| ToolError::of_source(source, error).with_record(&query.address);
    let version = source.version(&query.address).await.map_err(failed)?;
    let key = (source.name().clone(), query.clone());
    if let (Some(version), Some(known)) = (&version, toolbox.texts.0.get(&key))
        && known.version == *version
    {
        return Ok(known);
    }
    let whole = RecordQuery::of(query.address.clone());
    let record = source.record(&whole).await.map_err(failed)?;
    let text = text_of(&record.data, query.field.as_deref()).map_err(failed)?;
    let TextQuery { field, most, .. } = query;
    let is_known = version.is_some();
    let cut = beside_other_calls(move || {
        let _memory = record.memory;
        let chunks = ContentChunks::of(&text, most);
        let version = version.unwrap_or_else(|| digest(&text));
        Ok(Arc::new(ChunkedText { address: record.address, field, text, chunks, version, most }))
    });
    let cut = cut.await?;
    // Without a version it would have to be read to know that it is still the same.
    if is_known && cut.text.len() <= MAX_TEXT {
        toolbox.texts.0.insert(key, Arc::clone(&cut));
    }
    Ok(cut)
}

/// The text that a cursor goes on in, the chunk, and the source that was named. It has to be of the record, and of the
/// field if one is named.
pub(crate) async fn chunked_after(
    toolbox: &Toolbox,
    cursor: &str,
    asked: &RecordAddress,
    asked_field: Option<&str>,
) -> Result<(Arc<ChunkedText>, ChunkStart, Option<SourceName>), ToolError> {
    let (_, position) = load::<ChunkPosition>(toolbox, Kind::Chunk, ToolError::ReadFromStart, cursor).await?;
    let source = toolbox.source("read_record_field", position.source.as_ref())?;
    let ChunkPosition { address, field, most, .. } = &position;
    let query = TextQuery { address: address.clone(), field: field.clone(), most: *most };
    let text = chunked(toolbox, source.as_ref(), query).await?;
    if text.version != position.version || position.index >= text.chunks.len() {
        return Err(ToolError::ReadFromStart(CursorFault::RecordChanged));
    }
    let RecordAddress { connection, stream, record } = &text.address;
    let is_of_record = (stream, record) == (&asked.stream, &asked.record)
        && asked.connection.as_ref().is_none_or(|asked| connection.as_ref() == Some(asked));
    if !is_of_record || asked_field.is_some_and(|asked| text.field.as_deref() != Some(asked)) {
        return Err(ToolError::ReadFromStart(CursorFault::Mismatched));
    }
    let start = ChunkStart { index: position.index, from: position.from };
    Ok((text, start, position.source))
}

/// A text as it is; anything else as JSON with a line for each value.
fn text_of(data: &RecordData, field: Option<&str>) -> Result<String, SourceError> {
    let Some(field) = field else { return Ok(document_text(data)) };
    match data.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(serde_json::to_string_pretty(other).unwrap_or_default()),
        None => {
            let known: Vec<&str> = data.keys().map(String::as_str).take(FIELDS_SHOWN).collect();
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

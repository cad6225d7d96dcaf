//! Cache of texts of records divided into chunks.
//!
//! A text is divided again when the version of its record changes. Limited to [`MAX_CACHE_BYTES`] of memory; a text over
//! [`MAX_TEXT_BYTES`] is not cached.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::fit::{Chunk, ContentChunks};
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::lru::{Lookups, LruCache, LruLimits};

/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 48 * 1024 * 1024;

/// Maximum length of a cached text, in bytes. A longer one is read again for each chunk.
const MAX_TEXT_BYTES: usize = 24 * 1024 * 1024;

/// Time after which an unused text is evicted.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// A text of a record with the bounds of its chunks.
#[derive(Debug)]
pub struct ChunkedText {
    /// Address of the record, as its source names it.
    pub(crate) address: RecordAddress,
    /// Name of the field; `None` for the whole record as one text.
    pub(crate) field: Option<String>,
    /// Text that is divided.
    pub text: String,
    /// Bounds of the chunks.
    pub chunks: ContentChunks,
    /// Version of the text, which changes with it.
    pub(crate) version: String,
    /// Maximum size of a chunk in bytes.
    pub(crate) max_bytes: usize,
}

/// A text of a record to divide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextQuery {
    /// Address of the record.
    pub address: RecordAddress,
    /// Name of the field; `None` for the whole record as one text.
    pub field: Option<String>,
    /// Maximum size of a chunk in bytes, also as JSON.
    pub max_bytes: usize,
}

/// A place in a text from which to read to the end of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkStart {
    /// Index of the chunk.
    pub index: usize,
    /// First byte to read, if it is after the start of the chunk.
    pub(crate) from: usize,
}

impl ChunkStart {
    /// Creates the start of a chunk.
    pub fn new(index: usize) -> Self {
        Self { index, from: 0 }
    }
}

/// Cache of divided texts.
#[derive(Debug, Clone)]
pub(crate) struct ChunkedTexts(LruCache<(SourceName, TextQuery), Arc<ChunkedText>>);

impl Default for ChunkedTexts {
    fn default() -> Self {
        let weight = |_: &(SourceName, TextQuery), text: &Arc<ChunkedText>| {
            text.text.len() + 64 * text.chunks.len() + 512
        };
        Self(LruCache::with_weights(LruLimits::new(MAX_CACHE_BYTES).with_max_idle(MAX_IDLE), weight))
    }
}

impl ChunkedTexts {
    /// Returns the hits and misses of the cache.
    pub(crate) fn lookups(&self) -> Lookups {
        self.0.lookups()
    }

    /// Returns a cached text of a version.
    pub(crate) fn get(
        &self,
        source: &SourceName,
        query: &TextQuery,
        version: &str,
    ) -> Option<Arc<ChunkedText>> {
        let text = self.0.get(&(source.clone(), query.clone()))?;
        (text.version == version).then_some(text)
    }

    /// Caches a text, unless it is too long.
    pub(crate) fn insert(&self, source: SourceName, query: TextQuery, text: Arc<ChunkedText>) {
        if text.text.len() <= MAX_TEXT_BYTES {
            self.0.insert((source, query), text);
        }
    }
}

impl ChunkedText {
    /// Returns the chunk at a place, from there to its end.
    pub fn chunk_from(&self, start: ChunkStart) -> Option<Chunk> {
        let chunk = self.chunks.get(start.index)?;
        let skipped = self.text.get(chunk.start..start.from).unwrap_or_default();
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        Some(Chunk { start: chunk.start + skipped.len(), start_line: chunk.start_line + lines, ..chunk })
    }

    /// Returns the text of a chunk. Empty for `None`.
    pub fn piece(&self, chunk: Option<&Chunk>) -> &str {
        chunk.and_then(|chunk| self.text.get(chunk.start..chunk.end)).unwrap_or_default()
    }

    /// Returns true if a chunk ends inside an entry, a sentence or a line.
    pub fn is_hard_split(&self, chunk: &Chunk) -> bool {
        let ends_inside_line = chunk.end < self.text.len() && !self.piece(Some(chunk)).ends_with('\n');
        chunk.is_hard_split || ends_inside_line
    }
}

//! Extent, progress and state of the vectors of a store.

use serde::Serialize;

use crate::handle::StreamName;

/// Number of dimensions of the vectors of documents, by the contract of document search.
pub const EMBEDDING_DIMENSIONS: usize = 1_024;

/// The error for vectors of another number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Expected {EMBEDDING_DIMENSIONS} dimensions, got {0}; set `pad_to = {EMBEDDING_DIMENSIONS}` in [embedding] for a smaller model"
)]
pub struct WrongDimensions(pub usize);

/// Extent of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildMode {
    /// Embed what has no vector yet.
    Missing,
    /// Embed everything again.
    All,
}

/// Work that a build has done, or has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildProgress {
    /// Changed records that were read.
    pub records: usize,
    /// Chunks of these records.
    pub chunks: usize,
    /// Chunks that had to be embedded; the others have texts that were embedded before.
    pub embedded: usize,
    /// Pieces of the embedded chunks.
    pub pieces: usize,
}

impl BuildProgress {
    /// Adds the work of a batch.
    pub(in crate::source) fn extend(&mut self, batch: Self) {
        self.records += batch.records;
        self.chunks += batch.chunks;
        self.embedded += batch.embedded;
        self.pieces += batch.pieces;
    }
}

/// The streams of a store that a configuration shows. The default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddedStreams(Option<Vec<StreamName>>);

impl EmbeddedStreams {
    /// Returns the streams of an allow-list.
    #[must_use]
    pub fn only(streams: Vec<StreamName>) -> Self {
        Self(Some(streams))
    }

    /// Returns true if the records of a stream are embedded.
    pub(in crate::source) fn contains(&self, stream: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|name| name.as_str() == stream))
    }

    /// Returns the names, or `None` for all streams.
    pub(in crate::source) fn names(&self) -> Option<Vec<&str>> {
        Some(self.0.as_ref()?.iter().map(StreamName::as_str).collect())
    }
}

/// State of one generation of vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationStatus {
    /// Identity of the model.
    pub model: String,
    /// Number of dimensions.
    pub dimensions: usize,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of changed records that the vectors lack, of the streams that are embedded.
    pub missing_records: u64,
    /// Bytes of long texts that are beyond the limit of chunks, in all builds.
    pub omitted_bytes: u64,
}

/// State of the vectors of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VectorStatus {
    /// Vectors that are searched.
    pub current: Option<GenerationStatus>,
    /// Vectors of a build that is running or was interrupted.
    pub building: Option<GenerationStatus>,
    /// True if a process is embedding a batch now.
    pub is_locked: bool,
    /// Size of the vectors in bytes.
    pub bytes: u64,
}

/// The id of a store with its version. It changes with every import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreVersion {
    store: String,
    version: i64,
}

impl StoreVersion {
    /// Creates the version of a store of any kind.
    pub(in crate::source) fn new(store: String, version: i64) -> Self {
        Self { store, version }
    }
}

//! Extent, progress and state of the vectors of a store.

use fetchwell_core::handle::StreamName;
use serde::Serialize;
use serde_json::{Value, json};

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
    pub fn extend(&mut self, batch: Self) {
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
    pub fn contains(&self, stream: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|name| name.as_str() == stream))
    }

    /// Returns the names, or `None` for all streams.
    pub fn names(&self) -> Option<Vec<&str>> {
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VectorStatus {
    /// Vectors that are searched.
    pub current: Option<GenerationStatus>,
    /// Vectors of a build that is running or was interrupted.
    pub building: Option<GenerationStatus>,
    /// True if a process is embedding a batch now.
    pub is_locked: bool,
    /// Size of the vectors in bytes, with their indexes.
    pub bytes: u64,
    /// Way in which a database searches large scopes.
    #[serde(skip)]
    pub scan: Option<VectorScan>,
    /// Vectors of documents of a database, which has them beside those of records.
    #[serde(skip)]
    pub documents: Option<DocumentVectorStatus>,
}

/// Way in which vectors are found in a large scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorScan {
    /// The index is queried.
    Index,
    /// The index is queried, and its vectors are in half precision.
    HalfPrecisionIndex,
    /// All vectors are compared, because there is no index for so many dimensions.
    Exact,
    /// All vectors are compared, because the index is missing.
    MissingIndex,
}

/// State of the vectors of documents in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentVectorStatus {
    /// Models with their numbers of chunks, the first used one first.
    pub models: Vec<ModelStatus>,
    /// Model of an unfinished build that is to replace these.
    pub building: Option<ModelStatus>,
    /// Number of chunks without a vector of a model.
    pub missing: u64,
    /// True if the index of vectors exists, or if there are no vectors of a model. Without it, searches read all vectors.
    pub is_indexed: bool,
    /// True if documents are embedded.
    pub is_embedded: bool,
}

/// Vectors of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelStatus {
    /// Identity of the model.
    pub model: String,
    /// Number of dimensions.
    pub dimensions: usize,
    /// Number of chunks with its vectors.
    pub chunks: u64,
}

impl VectorStatus {
    /// Returns the state as JSON. That of a database has the vectors of records in an object of their own.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { current, building, is_locked, bytes, scan, documents } = self;
        let Some(documents) = documents else { return json!(self) };
        json!({
            "records": { "current": current, "building": building, "scan": scan, "bytes": bytes },
            "models": documents.models,
            "building": documents.building,
            "missing": documents.missing,
            "is_locked": is_locked,
            "is_indexed": documents.is_indexed,
        })
    }

    /// Returns the number of records that a generation lacks. Chunks of documents without vectors of its model count as
    /// records.
    #[must_use]
    pub fn missing(&self, generation: &GenerationStatus) -> u64 {
        let documents = self.documents.as_ref().filter(|documents| documents.is_embedded);
        let missing = documents.map_or(0, |documents| documents.missing_of(&generation.model));
        generation.missing_records + missing
    }
}

impl DocumentVectorStatus {
    /// Returns the number of chunks of documents that a build with a model has to embed.
    fn missing_of(&self, model: &str) -> u64 {
        let all = self.missing + self.models.iter().map(|known| known.chunks).sum::<u64>();
        let named = |known: &&ModelStatus| known.model == model;
        // While a rebuild with this model is unfinished, its earlier vectors do not count.
        let is_building = self.building.as_ref().is_some_and(|building| named(&building));
        let made = self.models.iter().filter(named).filter(|_| !is_building).map(|known| known.chunks);
        all.saturating_sub(made.sum())
    }
}

impl VectorScan {
    /// Describes a limitation for people; `None` for an index in single precision.
    #[must_use]
    pub fn describe(self) -> Option<&'static str> {
        match self {
            Self::Index => None,
            Self::HalfPrecisionIndex => {
                Some("in half precision, which an index of more than 2,000 dimensions needs")
            }
            Self::Exact => Some(
                "without an index, because pgvector has none of more than 4,000 dimensions: each search compares all of them",
            ),
            Self::MissingIndex => Some(
                "without their index, so each search compares all of them: run `fetchwell embeddings build` with the role \
                 that owns the schema fetchwell",
            ),
        }
    }
}

/// The id of a store with its version. It changes with every import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreVersion {
    store: String,
    version: i64,
}

impl StoreVersion {
    /// Creates the version of a store of any kind.
    pub fn new(store: String, version: i64) -> Self {
        Self { store, version }
    }
}

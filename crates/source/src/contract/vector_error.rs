//! Errors of the vectors of a store. Each message names the remedy.

use std::path::PathBuf;

use fetchwell_embedding::EmbeddingError;

use super::store_error::StoreError;
use super::vectors::WrongDimensions;

/// Reason why the vectors of a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model returned no vectors.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// Another process builds the vectors.
    #[error("another process builds the vectors in {}; wait for it to end, or stop it", .0.display())]
    Busy(PathBuf),
    /// A file of another program has the name of the vectors.
    #[error("the file {} is not used or changed because {problem}; rename or move it, then run the command again", .path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the file does not have vectors.
        problem: &'static str,
    },
    /// The vectors were written by a newer release of fetchwell.
    #[error("the vectors in {} have a newer format; upgrade fetchwell, or run `fetchwell embeddings remove` and build them again", .0.display())]
    Newer(PathBuf),
    /// The file cannot be read or written.
    #[error("the vectors in {} cannot be used ({problem}); check its permissions and the free space, or run `fetchwell embeddings remove` and build them again", .path.display())]
    Unusable {
        /// Path of the file.
        path: PathBuf,
        /// Message of the database or the operating system.
        problem: String,
    },
    /// The content of the file is damaged.
    #[error("the vectors in {} are damaged ({problem}); run `fetchwell embeddings remove`, then `fetchwell embeddings build`", .path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Message of the database.
        problem: String,
    },
    /// The disk is full.
    #[error("the disk of {} is full ({problem}); free space there, then run the command again: it continues", .path.display())]
    DiskFull {
        /// Path of the file.
        path: PathBuf,
        /// Message of the database or the operating system.
        problem: String,
    },
    /// The model behind the configured name is another one than before.
    #[error(
        "the model `{0}` returns other vectors than before; run `fetchwell embeddings rebuild` to embed all records again"
    )]
    ModelChanged(String),
    /// The vectors of the store are of another model than the query's.
    #[error(
        "the vectors are of the model `{0}`, which is not the configured one; run `fetchwell embeddings build`"
    )]
    OtherModel(String),
    /// A query's vector does not match the vectors of the store.
    #[error(
        "the store has vectors of {stored} dimensions and the query has {query}; run `fetchwell embeddings build`"
    )]
    WrongDimensions {
        /// Dimensions of the store's vectors.
        stored: usize,
        /// Dimensions of the query's vector.
        query: usize,
    },
    /// The store has projects of documents, and the model other dimensions than the contract of document search.
    #[error(transparent)]
    DocumentDimensions(#[from] WrongDimensions),
    /// The model refuses texts of some records. All others are embedded.
    #[error(
        "the embedding service refuses the text of {records} records, which are found by words; `fetchwell embeddings build` tries them again"
    )]
    RefusedRecords {
        /// Number of the records.
        records: usize,
    },
    /// The user stopped the command.
    #[error("stopped; run the same command again to continue")]
    Stopped,
}

impl VectorError {
    /// Returns the code of the error, for `/health`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(_) => "store_unusable",
            Self::Embedding(error) => error.code(),
            Self::Busy(_) => "busy",
            Self::Foreign { .. } | Self::Newer(_) | Self::Unusable { .. } | Self::Damaged { .. } => {
                "vectors_unusable"
            }
            Self::DiskFull { .. } => "disk_full",
            Self::ModelChanged(_) | Self::OtherModel(_) => "model_changed",
            Self::WrongDimensions { .. } | Self::DocumentDimensions(_) => "wrong_dimensions",
            Self::RefusedRecords { .. } => "provider_refused",
            Self::Stopped => "stopped",
        }
    }
}

//! Embedding models: text to vectors, for search by meaning.
//!
//! A model is an HTTP service or a folder with an ONNX file. Every vector that leaves this module has the dimensions of
//! its model, contains only finite numbers and has length 1, so the inner product of two vectors is their cosine.
//! **Invariant:** no text, key or vector is part of an error or a log line.
//!
//! * `model`: the trait of models, and the validation of what they return
//! * `settings`, `rerank_settings`: the settings of a model and of a reranker, as a configuration names them
//! * `service_url`: URLs of services
//! * `http`: models behind an HTTP API (OpenAI, Ollama, TEI, Voyage)
//! * `local`: models that run in this process, `model_files`: their files, `hub`: their installation
//! * `query`: the embedding of queries, with a deadline and a cache
//! * `rerank`: rerankers
//! * `chunks`, `headings`, `pieces`: texts within the limit of a model
//! * `error`: `EmbeddingError`
//!
//! Uses `core`, `outbound` and `state`.

mod chunks;
mod error;
mod headings;
mod http;
mod hub;
#[cfg(feature = "local-embeddings")]
mod local;
mod model;
mod model_files;
mod pieces;
mod query;
mod rerank;
mod rerank_settings;
mod service_url;
mod settings;

pub use chunks::{Chunk, Chunks, MAX_CHUNKS, chunks};
pub use error::EmbeddingError;
pub use headings::Headings;
pub use http::{Endpoint, HttpModel};
pub use hub::{
    ENGLISH, HubSettings, InstallError, InstallProgress, InstalledModel, MULTILINGUAL, ModelOrigin, Report,
    Repository, Revision, install_from_folder, install_from_hub,
};
#[cfg(feature = "local-embeddings")]
pub use local::{LocalModel, LocalReranker};
pub use model::{
    EmbeddingModel, MIN_PROBE_COSINE, ModelIdentity, PROBE_TEXT, Persistence, Purpose, probe_vector,
};
pub use pieces::{EstimatedPieces, PieceCount};
pub use query::{QueryEmbedder, QueryVector};
pub use rerank::{HttpReranker, RerankEndpoint, RerankError, Reranker, blend};
pub use rerank_settings::{RerankSettings, RerankerPlace, open_reranker};
pub use service_url::{InvalidServiceUrl, ServiceUrl};
pub use settings::{EmbeddingSettings, ModelPlace, open_model};

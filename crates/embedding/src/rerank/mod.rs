//! Rerankers: models that score how well a passage answers a query.
//!
//! A reranker is an HTTP service or a folder with the ONNX file of a cross-encoder. Its scores are blended with the order
//! that a search found, because scores alone rank worse.
//! **Invariant:** no text, key or score is part of an error or a log line.
//!
//! * `reranker`: the trait of rerankers
//! * `endpoint`, `shape`, `http`: services (TEI, Cohere, Voyage, Jina)
//! * `blend`: one order of two
//! * `error`: `RerankError`

mod blend;
mod endpoint;
mod error;
mod http;
mod reranker;
mod shape;

pub use blend::blend;
pub use endpoint::RerankEndpoint;
pub use error::RerankError;
pub use http::HttpReranker;
pub use reranker::Reranker;

//! Models that run in this process: a folder with an ONNX file and a tokenizer.
//!
//! * `folder`: the files of a model, and the settings in them
//! * `tokens`: the tokenizer
//! * `structure`: the check of an ONNX file
//! * `network`: the network of a model
//! * `model`: `LocalModel`, which embeds texts
//! * `reranker`: `LocalReranker`, which scores passages

mod folder;
mod model;
mod network;
mod reranker;
mod structure;
mod tokens;

pub use model::LocalModel;
pub use reranker::LocalReranker;

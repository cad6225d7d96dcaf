//! Models that run in this process: a folder with an ONNX file and a tokenizer.
//!
//! * `folder`: the files of a model, and the settings in them
//! * `tokens`: the tokenizer, of `word_pieces` or a `unigram` model, with the `charsmap` of the latter
//! * `structure`: the check of an ONNX file
//! * `network`: the network of a model
//! * `model`: `LocalModel`, which embeds texts
//! * `reranker`: `LocalReranker`, which scores passages

mod charsmap;
mod folder;
mod model;
mod network;
mod reranker;
mod structure;
mod tokens;
mod unigram;
mod word_pieces;

pub use model::LocalModel;
pub use reranker::LocalReranker;
pub(crate) use tokens::check_tokenizer;

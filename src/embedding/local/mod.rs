//! Embedding models that run in this process: a folder with an ONNX file and a tokenizer.
//!
//! * `folder`: the files of a model, and the settings in them
//! * `tokens`: the tokenizer
//! * `model`: `LocalModel`

mod folder;
mod model;
mod tokens;

pub use model::LocalModel;

//! The files of a model in a folder, and their limits.

/// Places of the network in a folder: the first one that exists is used.
pub(crate) const NETWORKS: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// File of the tokenizer.
pub(crate) const TOKENIZER: &str = "tokenizer.json";

/// Files with settings, which a model may lack.
pub(crate) const SETTINGS: [&str; 4] =
    ["config.json", "sentence_bert_config.json", "tokenizer_config.json", "1_Pooling/config.json"];

/// Maximum size of a JSON file in bytes. Tokenizers of many languages take 17 MB.
pub(crate) const MAX_JSON_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum size of the ONNX file in bytes. The model is read into memory.
pub(crate) const MAX_NETWORK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Returns the maximum size in bytes of one of these files.
pub(crate) fn max_bytes(name: &str) -> u64 {
    if NETWORKS.contains(&name) { MAX_NETWORK_BYTES } else { MAX_JSON_BYTES }
}

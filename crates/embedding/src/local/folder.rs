//! The files of a local model, and the settings in them.
//!
//! Folders have the layout of Sentence Transformers. Only `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json` are
//! required; the other files say how many pieces a text may have and how the pieces become one vector.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use fetchwell_core::hex::hexadecimal;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::EmbeddingError;
use crate::model_files::{MAX_JSON_BYTES, MAX_NETWORK_BYTES, NETWORKS, TOKENIZER};

/// Limit of the pieces of a text for a model without one in its files.
const DEFAULT_LIMIT: usize = 256;

/// Maximum limit of the pieces of a text. The time for a text grows with the square of its pieces.
const MAX_LIMIT: usize = 1_024;

/// The way from vectors of pieces to the vector of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean of all pieces.
    Mean,
    /// The vector of the first piece.
    First,
}

impl Pooling {
    /// Returns the name in the id of a model, which is stored with its vectors.
    fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "Mean",
            Self::First => "First",
        }
    }
}

/// The files of a model.
#[derive(Debug, Clone)]
pub(super) struct ModelFolder {
    pub(super) path: PathBuf,
    pub(super) onnx: PathBuf,
    pub(super) pooling: Pooling,
    /// Maximum number of pieces of a text, with those that the model adds.
    pub(super) limit: usize,
}

impl ModelFolder {
    /// Finds the files of a model and reads its settings.
    pub(super) fn open(path: &Path) -> Result<Self, EmbeddingError> {
        let places = NETWORKS.map(|name| path.join(name));
        let missing = |file| EmbeddingError::MissingFile { folder: path.to_owned(), file };
        let onnx = places.into_iter().find(|place| place.is_file()).ok_or_else(|| missing("model.onnx"))?;
        if !path.join(TOKENIZER).is_file() {
            return Err(missing(TOKENIZER));
        }
        let size = fs::metadata(&onnx).map_or(0, |metadata| metadata.len());
        if size > MAX_NETWORK_BYTES {
            let problem = format!("it has {size} bytes; the limit is {MAX_NETWORK_BYTES}");
            return Err(EmbeddingError::InvalidModel { file: onnx, problem });
        }
        Ok(Self { path: path.to_owned(), onnx, pooling: pooling(path)?, limit: limit(path) })
    }

    /// Returns the text of the tokenizer's file.
    pub(super) fn tokenizer(&self) -> Result<String, EmbeddingError> {
        let file = self.path.join(TOKENIZER);
        read_text(&file).map_err(|problem| EmbeddingError::InvalidModel { file, problem })
    }

    /// Returns the name of the folder and a digest of its files, which identify the model.
    pub(super) fn identity(&self) -> Result<String, EmbeddingError> {
        let mut digest = Sha256::new();
        for file in [&self.onnx, &self.path.join(TOKENIZER)] {
            let unreadable = |error: std::io::Error| EmbeddingError::InvalidModel {
                file: file.clone(),
                problem: error.to_string(),
            };
            let mut open = File::open(file).map_err(unreadable)?;
            let mut block = vec![0; 1 << 20];
            loop {
                let read = open.read(&mut block).map_err(unreadable)?;
                if read == 0 {
                    break;
                }
                digest.update(block.get(..read).unwrap_or_default());
            }
        }
        let digest = digest.finalize();
        let short = hexadecimal(digest.iter().take(6));
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let (name, pooling) = (name.unwrap_or_default(), self.pooling.as_str());
        Ok(format!("local:{name}:{short}:{pooling}:{}", self.limit))
    }
}

/// Reads a file up to the limit of JSON files.
pub(super) fn read_text(file: &Path) -> Result<String, String> {
    let open = File::open(file).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = open.take(MAX_JSON_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > MAX_JSON_BYTES => Err(format!("it has more than {MAX_JSON_BYTES} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_str(&read_text(file).ok()?).ok()
}

/// Returns the smallest of the limits in the files of a model.
fn limit(folder: &Path) -> usize {
    let named = [
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ];
    let limits = named.into_iter().filter_map(|(file, key)| {
        // Some files have 1e30 for "no limit".
        let number = read_json(&folder.join(file))?.get(key)?.as_u64()?;
        usize::try_from(number).ok().filter(|limit| *limit >= 16)
    });
    limits.min().unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT)
}

/// The file `1_Pooling/config.json` of Sentence Transformers.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PoolingFile {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
}

fn pooling(folder: &Path) -> Result<Pooling, EmbeddingError> {
    let file = folder.join("1_Pooling").join("config.json");
    if !file.is_file() {
        return Ok(Pooling::Mean);
    }
    let read = read_text(&file).and_then(|text| {
        let parsed: PoolingFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match (parsed.pooling_mode_mean_tokens, parsed.pooling_mode_cls_token) {
            (true, false) => Ok(Pooling::Mean),
            (false, true) => Ok(Pooling::First),
            _ => Err("it asks for a pooling that is neither the mean nor the first token".to_owned()),
        }
    });
    read.map_err(|problem| EmbeddingError::InvalidModel { file, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = |expect: &str| {
            let error = ModelFolder::open(folder.path()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("there is no {expect} in ")), "{error}");
        };
        missing("model.onnx");
        fs::write(folder.path().join("model.onnx"), "x").unwrap();
        missing("tokenizer.json");
        fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
        assert_eq!(ModelFolder::open(folder.path()).unwrap().limit, DEFAULT_LIMIT);
    }

    #[test]
    fn settings_are_read_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            fs::write(folder.path().join(file), text).unwrap();
        };
        write("onnx/model.onnx", "x");
        write("tokenizer.json", "{}");
        write("config.json", r#"{"max_position_embeddings": 512}"#);
        write("tokenizer_config.json", r#"{"model_max_length": 1000000000000000019884624838656}"#);
        write("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#);
        let found = ModelFolder::open(folder.path()).unwrap();
        assert_eq!((found.limit, found.pooling), (512, Pooling::First));
        write("sentence_bert_config.json", r#"{"max_seq_length": 128}"#);
        assert_eq!(ModelFolder::open(folder.path()).unwrap().limit, 128);
        let one = found.identity().unwrap();
        write("tokenizer.json", "{ }");
        assert_ne!(one, found.identity().unwrap());
        write("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#);
        let error = ModelFolder::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("neither the mean nor the first"), "{error}");
    }
}

//! A model that runs in this process.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::folder::ModelFolder;
use super::network::{BATCH, Network, Pieces};
use crate::model::{EmbeddingModel, PROBE_TEXT, Purpose, VectorForm};
use crate::{EmbeddingError, PieceCount};

/// A model that runs in this process.
pub struct LocalModel {
    id: String,
    form: VectorForm,
    network: Arc<Network>,
}

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalModel").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LocalModel {
    /// Reads a model from a folder and embeds a text with it, which takes about a second for a model of 100 MB.
    ///
    /// # Errors
    ///
    /// A file is missing or cannot be used.
    pub fn open(folder: &Path, pad_to: Option<usize>) -> Result<Self, EmbeddingError> {
        let folder = ModelFolder::open(folder)?;
        let identity = folder.identity()?;
        let network = Network::open(folder)?;
        let probed = network.compute(&[Pieces::from_text(&network.tokens, PROBE_TEXT)])?;
        let dimensions = probed.first().map_or(0, Vec::len);
        let padded = pad_to.unwrap_or(dimensions).max(dimensions);
        let form = VectorForm { returned: dimensions, padded };
        form.normalize(&network.place(), 1, probed)?;
        Ok(Self { id: format!("{identity}:{dimensions}:{padded}"), form, network: Arc::new(network) })
    }
}

impl LocalModel {
    /// Returns true if the model in a folder has an identity. Reads its files, and not the model.
    pub(crate) fn is_identity(
        folder: &Path,
        pad_to: Option<usize>,
        id: &str,
    ) -> Result<bool, EmbeddingError> {
        let identity = ModelFolder::open(folder)?.identity()?;
        let sizes = id.strip_prefix(&identity).and_then(|rest| rest.strip_prefix(':'));
        let Some((dimensions, padded)) = sizes.and_then(|sizes| sizes.split_once(':')) else {
            return Ok(false);
        };
        Ok(pad_to.map_or(dimensions == padded, |pad_to| pad_to.to_string() == padded))
    }
}

#[async_trait]
impl EmbeddingModel for LocalModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.form.padded
    }

    fn pieces(&self) -> &dyn PieceCount {
        &self.network.tokens
    }

    fn batch(&self) -> usize {
        BATCH * 4
    }

    fn is_remote(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[String], _purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let (network, texts) = (Arc::clone(&self.network), texts.to_vec());
        let (form, expected, place) = (self.form, texts.len(), self.network.place());
        let compute = move || {
            let mut vectors = Vec::with_capacity(texts.len());
            // Texts are split batch by batch, so that the pieces of all of them are never in memory.
            for batch in texts.chunks(BATCH) {
                let pieces: Vec<Pieces> =
                    batch.iter().map(|text| Pieces::from_text(&network.tokens, text)).collect();
                vectors.extend(network.compute(&pieces)?);
            }
            Ok::<_, EmbeddingError>(vectors)
        };
        let computed = spawn_blocking(compute).await;
        let vectors = match computed {
            Ok(vectors) => vectors?,
            Err(_ended) => return Err(self.network.failed("it was stopped")),
        };
        form.normalize(&place, expected, vectors)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tiny() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/embedding/tiny")
    }

    async fn embed(model: &LocalModel, texts: &[&str]) -> Vec<Vec<f32>> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        model.embed(&texts, Purpose::Document).await.unwrap()
    }

    fn cosine(one: &[f32], other: &[f32]) -> f32 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    }

    #[tokio::test]
    async fn texts_of_one_meaning_are_near() {
        let model = LocalModel::open(&tiny(), None).unwrap();
        assert_eq!((model.dimensions(), model.pieces().limit()), (8, 64));
        let texts = ["the car", "an automobile", "", "this invoice and that bill of the doctor"];
        let vectors = embed(&model, &texts).await;
        let [car, automobile, _, invoice] = vectors.as_slice() else { panic!("{vectors:?}") };
        assert!(cosine(car, automobile) > 0.8 && cosine(car, invoice) < 0.4, "{vectors:?}");
        // A vector does not depend on the other texts of its batch.
        for (text, vector) in texts.iter().zip(&vectors) {
            assert!(cosine(vector, &embed(&model, &[text]).await[0]) > 0.999_999, "{text}");
        }
        let many = vec!["the car"; 20];
        assert_eq!(embed(&model, &many).await.len(), 20);
    }

    #[tokio::test]
    async fn padding_keeps_cosines_and_changes_the_identity() {
        let (plain, padded) =
            (LocalModel::open(&tiny(), None).unwrap(), LocalModel::open(&tiny(), Some(16)).unwrap());
        assert_ne!(plain.id(), padded.id());
        for (pad_to, model, expect) in [
            (None, &plain, true),
            (None, &padded, false),
            (Some(16), &padded, true),
            (Some(24), &padded, false),
        ] {
            assert_eq!(LocalModel::is_identity(&tiny(), pad_to, model.id()).unwrap(), expect, "{pad_to:?}");
        }
        assert_eq!(padded.dimensions(), 16);
        let (one, other) = (embed(&plain, &["rain", "car"]).await, embed(&padded, &["rain", "car"]).await);
        assert!((cosine(&one[0], &one[1]) - cosine(&other[0], &other[1])).abs() < 1e-6);
    }

    #[tokio::test]
    async fn strange_texts_have_vectors() {
        let model = LocalModel::open(&tiny(), None).unwrap();
        let long = "car ".repeat(10_000);
        let texts = ["\u{0}\u{1}", "\u{202e}abc", "İ\u{307}ß", "会議", "😀\u{200d}😀", "\r\n", long.as_str()];
        assert_eq!(embed(&model, &texts).await.len(), texts.len());
        assert!(model.pieces().count(&long) >= 9_999);
    }

    #[test]
    fn damaged_files_are_typed_errors() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["model.onnx", "tokenizer.json"] {
            fs::copy(tiny().join(file), folder.path().join(file)).unwrap();
        }
        LocalModel::open(folder.path(), None).unwrap();
        let onnx = fs::read(folder.path().join("model.onnx")).unwrap();
        for damaged in [&b""[..], b"not a model", onnx.get(..onnx.len() / 2).unwrap()] {
            fs::write(folder.path().join("model.onnx"), damaged).unwrap();
            let error = LocalModel::open(folder.path(), None).unwrap_err();
            assert!(matches!(error, EmbeddingError::InvalidModel { .. }), "{error}");
        }
        // A length that overflows to the start of its field, which rten would read for ever.
        let back = [0x7A, 0xF5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        fs::write(folder.path().join("model.onnx"), [&onnx[..], &back].concat()).unwrap();
        let error = LocalModel::open(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("it is incomplete or damaged at byte"), "{error}");
        // Any single damaged byte gives an error or a model, and never a panic.
        for at in (0..onnx.len()).step_by(7) {
            let mut damaged = onnx.clone();
            damaged[at] ^= 0xff;
            fs::write(folder.path().join("model.onnx"), damaged).unwrap();
            let _ = LocalModel::open(folder.path(), None);
        }
        fs::write(folder.path().join("model.onnx"), onnx).unwrap();
        for damaged in ["", "{}", "[]", "{\"model\": {\"type\": \"Unigram\"}}"] {
            fs::write(folder.path().join("tokenizer.json"), damaged).unwrap();
            let error = LocalModel::open(folder.path(), None).unwrap_err().to_string();
            assert!(error.contains("tokenizer.json cannot be used"), "{error}");
        }
    }
}

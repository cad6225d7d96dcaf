//! A cross-encoder that runs in this process: a network that reads a query and a passage together.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::folder::ModelFolder;
use super::network::{BATCH, Network, Pieces};
use crate::EmbeddingError;
use crate::rerank::{RerankError, Reranker};

/// A cross-encoder in a folder.
pub struct LocalReranker {
    network: Arc<Network>,
    /// One search is scored at a time, because it uses all processors.
    permit: Arc<Semaphore>,
}

impl fmt::Debug for LocalReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReranker").field("place", &self.network.place()).finish_non_exhaustive()
    }
}

/// Stops a computation when the call that waits for it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl LocalReranker {
    /// Reads a model from a folder and scores a passage with it.
    ///
    /// # Errors
    ///
    /// A file is missing or cannot be used, or the model is not a cross-encoder with one score.
    pub fn open(folder: &Path) -> Result<Self, RerankError> {
        let network = Network::open(ModelFolder::open(folder)?)?;
        let pieces = [Pieces::from_pair(&network.tokens, "query", "passage")];
        scores_of(&network, &pieces)?;
        Ok(Self { network: Arc::new(network), permit: Arc::new(Semaphore::new(1)) })
    }
}

/// Computes one score for each pair.
fn scores_of(network: &Network, pairs: &[Pieces]) -> Result<Vec<f32>, RerankError> {
    let invalid = |problem: String| RerankError::InvalidResponse { place: network.place(), problem };
    let score = |output: Vec<f32>| match output.as_slice() {
        [score] if score.is_finite() => Ok(*score),
        [_] => Err(invalid("it has a score that is not finite".to_owned())),
        other => Err(invalid(format!(
            "a cross-encoder has 1 number for a passage, and this one has {}",
            other.len()
        ))),
    };
    network.compute(pairs)?.into_iter().map(score).collect()
}

#[async_trait]
impl Reranker for LocalReranker {
    async fn scores(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let permit = Arc::clone(&self.permit).acquire_owned().await;
        let stop = Arc::new(AtomicBool::new(false));
        let _stop = StopOnDrop(Arc::clone(&stop));
        let (network, query, passages) = (Arc::clone(&self.network), query.to_owned(), passages.to_vec());
        let compute = move || {
            let _permit = permit;
            let mut scores = Vec::with_capacity(passages.len());
            for batch in passages.chunks(BATCH) {
                if stop.load(Ordering::Relaxed) {
                    return Err(network.failed("it was stopped").into());
                }
                let pairs: Vec<Pieces> =
                    batch.iter().map(|passage| Pieces::from_pair(&network.tokens, &query, passage)).collect();
                scores.extend(scores_of(&network, &pairs)?);
            }
            Ok(scores)
        };
        let computed = spawn_blocking(compute).await;
        computed.unwrap_or_else(|_ended| {
            let problem = "it was stopped".to_owned();
            let folder = self.network.folder_path().to_owned();
            Err(EmbeddingError::Failed { folder, problem }.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/embedding").join(name)
    }

    #[tokio::test]
    async fn passages_of_the_meaning_of_the_query_score_higher() {
        let reranker = LocalReranker::open(&fixture("tiny-cross")).unwrap();
        let passages = ["the invoice", "an automobile and a car", "", "rain"].map(str::to_owned);
        let scores = reranker.scores("a vehicle", &passages).await.unwrap();
        assert_eq!(scores.len(), 4);
        assert!(scores[1] > scores[0] && scores[1] > scores[2] && scores[1] > scores[3], "{scores:?}");
        // A score does not depend on the other passages.
        for (passage, score) in passages.iter().zip(&scores) {
            let alone = reranker.scores("a vehicle", std::slice::from_ref(passage)).await.unwrap();
            assert!((alone[0] - score).abs() < 1e-5, "{passage}");
        }
        let many = vec!["car ".repeat(5_000); 50];
        assert_eq!(reranker.scores(&"vehicle ".repeat(5_000), &many).await.unwrap().len(), 50);
        assert_eq!(reranker.scores("", &[]).await.unwrap(), Vec::<f32>::new());
    }

    #[test]
    fn an_embedding_model_is_refused() {
        let error = LocalReranker::open(&fixture("tiny")).unwrap_err().to_string();
        assert!(error.contains("1 number for a passage, and this one has 8"), "{error}");
        let error = LocalReranker::open(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("no model.onnx") && error.contains("[rerank]"), "{error}");
    }
}

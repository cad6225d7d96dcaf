//! The stages of a search, sent while it runs.

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::search::EmbeddingStage;

/// A stage of a search that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchStage {
    /// The cache was read.
    CacheCheck(CacheStage),
    /// The query was embedded.
    Embedding(EmbeddingStage),
    /// The candidates were found.
    Results(ResultsStage),
    /// The candidates were reranked.
    Rerank(RerankStage),
}

/// The look-up in the cache as a stage of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheStage {
    /// True if the cache had the answer, or an equal search that was running found it.
    pub hit: bool,
    /// Key of the entry.
    pub key: String,
}

/// The finding of candidates as a stage of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultsStage {
    /// Number of candidates.
    pub count: usize,
    /// Time that it took without the embedding of the query, in milliseconds.
    pub latency_ms: u64,
}

/// The reranking of candidates as a stage of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RerankStage {
    /// Number of candidates.
    pub input: usize,
    /// Number of results.
    pub output: usize,
    /// Time that it took, in milliseconds.
    pub latency_ms: u64,
}

/// Sends the stages of a search as they end. The default one sends nothing.
///
/// A search has at most one stage of each kind, so the channel needs no bound.
#[derive(Debug, Clone, Default)]
pub struct StageSender(Option<UnboundedSender<SearchStage>>);

impl StageSender {
    /// Creates a sender and the receiver of its stages.
    #[must_use]
    pub fn channel() -> (Self, UnboundedReceiver<SearchStage>) {
        let (sender, receiver) = unbounded_channel();
        (Self(Some(sender)), receiver)
    }

    /// Sends a stage that has ended.
    pub fn send(&self, stage: SearchStage) {
        if let Some(sender) = &self.0 {
            // A receiver that is gone needs no stages.
            let _ = sender.send(stage);
        }
    }
}

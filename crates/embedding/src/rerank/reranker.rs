//! The trait of rerankers.

use std::fmt::Debug;

use async_trait::async_trait;

use super::error::RerankError;

/// A model that scores passages for a query.
#[async_trait]
pub trait Reranker: Debug + Send + Sync {
    /// Scores passages: one finite number for each, in their order. Higher is better.
    ///
    /// # Errors
    ///
    /// The model cannot be used, or its scores are not valid.
    async fn scores(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError>;
}

//! Errors of rerankers. Each message names the remedy.

use super::super::error::EmbeddingError;

/// Reason why passages are not reranked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RerankError {
    /// The service cannot be reached.
    #[error(
        "the rerank service at {place} does not answer ({problem}); check `url` of [rerank] and whether the service runs"
    )]
    Unavailable {
        /// Host and port of the service.
        place: String,
        /// Description of the failure, without the request.
        problem: String,
    },
    /// The service rejected the key.
    #[error("the rerank service at {place} rejects the key (status {status}); check `api_key` of [rerank]")]
    Unauthorized {
        /// Host and port of the service.
        place: String,
        /// HTTP status of the reply.
        status: u16,
    },
    /// The service limits requests.
    #[error("the rerank service at {place} limits requests; search less often, or ask it for a higher limit")]
    RateLimited {
        /// Host and port of the service.
        place: String,
    },
    /// The service refused the request.
    #[error(
        "the rerank service at {place} refuses the request (status {status}); check `url` and `model` of [rerank]"
    )]
    Refused {
        /// Host and port of the service.
        place: String,
        /// HTTP status of the reply.
        status: u16,
    },
    /// The scores are not one finite number for each passage.
    #[error(
        "the answer of {place} has no valid scores ({problem}); check that `url` of [rerank] is a rerank service"
    )]
    InvalidResponse {
        /// Host and port of the service, or the model's folder.
        place: String,
        /// Description of what is wrong with the answer.
        problem: String,
    },
    /// The local model cannot be used.
    #[error("{}", .0.to_string().replace("[embedding]", "[rerank]"))]
    Model(EmbeddingError),
}

impl RerankError {
    /// Returns the reason in a few words, for a warning in an answer.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "the rerank service does not answer",
            Self::Unauthorized { .. } => "the rerank service rejects its key",
            Self::RateLimited { .. } => "the rerank service limits requests",
            Self::Refused { .. } => "the rerank service refuses the request",
            Self::InvalidResponse { .. } => "the rerank service gave an invalid answer",
            Self::Model(_) => "the rerank model failed",
        }
    }
}

impl From<EmbeddingError> for RerankError {
    fn from(error: EmbeddingError) -> Self {
        Self::Model(error)
    }
}

//! Errors of embedding models. Each message names the remedy.

use std::path::PathBuf;
use std::time::Duration;

/// Reason why a model returned no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The service cannot be reached or did not answer in time.
    #[error(
        "the embedding service at {place} does not answer ({problem}); check `url` of [embedding] and whether the service runs"
    )]
    Unavailable {
        /// Host and port of the service.
        place: String,
        /// Description of the failure, without the request.
        problem: String,
    },
    /// The model did not answer a query in time.
    #[error(
        "the embedding model does not answer within {within:?}; check [embedding] with `fetchwell doctor`"
    )]
    Timeout {
        /// Deadline of the query.
        within: Duration,
    },
    /// The service rejected the key.
    #[error(
        "the embedding service at {place} rejects the key (status {status}); check `api_key` of [embedding]"
    )]
    Unauthorized {
        /// Host and port of the service.
        place: String,
        /// HTTP status of the reply.
        status: u16,
    },
    /// The service limits requests, and the deadline does not allow to wait.
    #[error("the embedding service at {place} limits requests; try again {}", later(*.retry_after))]
    RateLimited {
        /// Host and port of the service.
        place: String,
        /// Pause that the service asked for.
        retry_after: Option<Duration>,
    },
    /// The service refused the request.
    #[error("the embedding service at {place} refuses the request (status {status}{}); check `url` and `model` of [embedding]", detail(.message.as_deref()))]
    Refused {
        /// Host and port of the service.
        place: String,
        /// HTTP status of the reply.
        status: u16,
        /// Message of the service, only for a request that contains no text of records.
        message: Option<String>,
    },
    /// The service failed.
    #[error(
        "the embedding service at {place} fails with status {status}{}; try again later, or look at its logs",
        detail(.message.as_deref())
    )]
    ServiceFailed {
        /// Host and port of the service.
        place: String,
        /// HTTP status of the reply, 500 or more.
        status: u16,
        /// Message of the service, only for a request that contains no text of records.
        message: Option<String>,
    },
    /// The answer is not one of an embedding service.
    #[error(
        "the answer of {place} is not one of an embedding service ({problem}); check `url` of [embedding]"
    )]
    InvalidResponse {
        /// Host and port of the service, or the model's folder.
        place: String,
        /// Description of what is wrong with the answer.
        problem: String,
    },
    /// The number of vectors differs from the number of texts.
    #[error(
        "{place} returned {found} vectors for {expected} texts; check that `url` of [embedding] is an embedding service"
    )]
    WrongCount {
        /// Host and port of the service, or the model's folder.
        place: String,
        /// Number of texts.
        expected: usize,
        /// Number of vectors.
        found: usize,
    },
    /// The vectors have other dimensions than configured.
    #[error(
        "Expected {expected} dimensions, got {found} from {place}; correct `dimensions` or `model` of [embedding]"
    )]
    WrongDimensions {
        /// Host and port of the service, or the model's folder.
        place: String,
        /// Number of dimensions in the configuration.
        expected: usize,
        /// Dimensions of the vector.
        found: usize,
    },
    /// A vector is zero, or has numbers that are not finite, so it has no direction.
    #[error("{place} returned a vector that is {problem}; the model or the service is faulty")]
    InvalidVector {
        /// Host and port of the service, or the model's folder.
        place: String,
        /// Description of the vector.
        problem: &'static str,
    },
    /// The folder of a local model lacks a file.
    #[error("there is no {file} in {}; `path` of [embedding] is a folder with `model.onnx` and `tokenizer.json`", .folder.display())]
    MissingFile {
        /// Folder of the model.
        folder: PathBuf,
        /// Name of the file.
        file: &'static str,
    },
    /// A file of a local model cannot be used.
    #[error("{} cannot be used ({problem}); download the model again, or choose another one", .file.display())]
    InvalidModel {
        /// Path of the file.
        file: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The local model failed for a text.
    #[error("the model in {} failed ({problem}); check it with `fetchwell doctor`", .folder.display())]
    Failed {
        /// Folder of the model.
        folder: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The binary was built without local models.
    #[error(
        "this fetchwell was built without local models; build it with the feature `local-embeddings`, or use `provider = \"http\"`"
    )]
    LocalNotSupported,
}

impl EmbeddingError {
    /// Returns true if the service may accept other texts.
    #[must_use]
    pub fn concerns_texts(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }

    /// Returns true if the model has answered, but not with one valid vector for each text.
    #[must_use]
    pub fn is_invalid_answer(&self) -> bool {
        matches!(
            self,
            Self::InvalidVector { .. }
                | Self::WrongDimensions { .. }
                | Self::WrongCount { .. }
                | Self::InvalidResponse { .. }
        )
    }

    /// Returns true if a query failed by itself, so that the model may embed another one: the service refused its text, or
    /// answered it without a valid vector.
    #[must_use]
    pub fn concerns_one_query(&self) -> bool {
        self.concerns_texts() || self.is_invalid_answer() || matches!(self, Self::Failed { .. })
    }

    /// Returns the code of the error, for `/health`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::Timeout { .. } | Self::ServiceFailed { .. } => {
                "provider_unavailable"
            }
            Self::Unauthorized { .. } => "provider_unauthorized",
            Self::RateLimited { .. } => "provider_rate_limited",
            Self::Refused { .. } => "provider_refused",
            Self::InvalidResponse { .. } | Self::WrongCount { .. } | Self::InvalidVector { .. } => {
                "provider_invalid_response"
            }
            Self::WrongDimensions { .. } => "wrong_dimensions",
            Self::MissingFile { .. } | Self::InvalidModel { .. } | Self::LocalNotSupported => {
                "model_unusable"
            }
            Self::Failed { .. } => "model_failed",
        }
    }
}

fn later(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(|| "later".to_owned(), |pause| format!("in {} s", pause.as_secs().max(1)))
}

fn detail(message: Option<&str>) -> String {
    message.map(|message| format!(": {message}")).unwrap_or_default()
}

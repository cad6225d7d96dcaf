//! A reranker behind an HTTP API. A request is sent once: a search does not wait for a second attempt.

use std::fmt;
use std::time::Duration;

use ::http::{Request, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_outbound::{Exchange, InvalidRequest, json_request};
use secrecy::SecretString;

use super::endpoint::RerankEndpoint;
use super::error::RerankError;
use super::reranker::Reranker;
use super::shape::scores;

/// Timeout of a request. Searches have a shorter one of their own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of an answer in bytes: some services return the passages beside their scores.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// A reranker behind an HTTP API.
pub struct HttpReranker {
    endpoint: RerankEndpoint,
    model: Option<String>,
    key: Option<SecretString>,
    exchange: Exchange,
}

impl fmt::Debug for HttpReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReranker").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl HttpReranker {
    /// Creates a reranker. Does not call the service.
    ///
    /// # Errors
    ///
    /// No HTTP client can be created.
    pub fn new(
        endpoint: RerankEndpoint,
        model: Option<String>,
        key: Option<SecretString>,
    ) -> Result<Self, RerankError> {
        let exchange = Exchange::new(endpoint.url().as_url(), REQUEST_TIMEOUT, MAX_ANSWER_BYTES);
        let exchange = exchange
            .map_err(|problem| RerankError::Unavailable { place: endpoint.url().place(), problem })?;
        Ok(Self { endpoint, model, key, exchange })
    }

    fn request(&self, query: &str, passages: &[String]) -> Result<Request<Bytes>, RerankError> {
        let body = self.endpoint.shape().body(self.model.as_deref(), query, passages);
        json_request(self.endpoint.url().as_url(), self.key.as_ref(), &body).map_err(
            |invalid| match invalid {
                InvalidRequest::Key => RerankError::Unauthorized { place: self.place(), status: 0 },
                InvalidRequest::Url(error) => {
                    RerankError::Unavailable { place: self.place(), problem: error.to_string() }
                }
            },
        )
    }

    fn place(&self) -> String {
        self.endpoint.url().place()
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    async fn scores(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let place = self.place();
        let response = self.exchange.send(self.request(query, passages)?).await;
        let response =
            response.map_err(|problem| RerankError::Unavailable { place: place.clone(), problem })?;
        match response.status() {
            status if status.is_success() => scores(response.body(), passages.len())
                .map_err(|problem| RerankError::InvalidResponse { place, problem }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(RerankError::Unauthorized { place, status: status.as_u16() })
            }
            StatusCode::TOO_MANY_REQUESTS => Err(RerankError::RateLimited { place }),
            status => Err(RerankError::Refused { place, status: status.as_u16() }),
        }
    }
}

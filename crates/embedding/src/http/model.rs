//! An embedding model behind an HTTP API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_outbound::{Exchange, InvalidRequest, Redactor, json_request};
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::endpoint::{Endpoint, Shape};
use super::in_flight::permit_of;
use super::retry::{pause, retry_after};
use crate::error::EmbeddingError;
use crate::model::{EmbeddingModel, PROBE_TEXT, Persistence, Purpose, VectorForm};
use crate::pieces::{EstimatedPieces, PieceCount};

/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Deadline of a query, with retries. A search answers by words before, after its `query_timeout`.
const QUERY_DEADLINE: Duration = Duration::from_secs(30);

/// Time after which a query is not repeated. It ends before the default timeout of searches, so that their warning names
/// the answer of the service.
const QUERY_RETRY_TIME: Duration = Duration::from_secs(2);

/// Deadline of a batch of documents, with retries, for a command that a user waits for.
const DOCUMENT_DEADLINE: Duration = Duration::from_secs(300);

/// Deadline of a batch of documents, with retries, for a caller that tries again later.
const SHORT_DOCUMENT_DEADLINE: Duration = Duration::from_secs(60);

/// Deadline of the fixed text that checks a model. A service that is down is reported soon, whatever waits for it.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// Maximum number of texts of a request.
const MAX_TEXTS: usize = 64;

/// Maximum bytes of the texts of a request. Services limit the tokens of one.
const MAX_REQUEST_BYTES: usize = 120_000;

/// Maximum size of an answer in bytes: 64 vectors of 4,096 numbers take about 6 MB.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Limit of the pieces of a chunk. Chunks of this size are searched better than larger ones, and all models accept them.
const PIECES: EstimatedPieces = EstimatedPieces { limit: 400 };

/// Maximum length of a service's message in an error, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// An embedding model behind an HTTP API.
pub struct HttpModel {
    id: String,
    endpoint: Endpoint,
    model: String,
    form: VectorForm,
    key: Option<SecretString>,
    exchange: Exchange,
    permit: Arc<Semaphore>,
    document_deadline: Duration,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel").field("id", &self.id).finish_non_exhaustive()
    }
}

impl HttpModel {
    /// Creates a model. Does not call the service.
    ///
    /// # Errors
    ///
    /// No HTTP client can be created.
    pub fn new(
        endpoint: Endpoint,
        model: String,
        dimensions: usize,
        pad_to: Option<usize>,
        key: Option<SecretString>,
    ) -> Result<Self, EmbeddingError> {
        let exchange = Exchange::new(endpoint.url().as_url(), REQUEST_TIMEOUT, MAX_ANSWER_BYTES);
        let exchange = exchange
            .map_err(|problem| EmbeddingError::Unavailable { place: endpoint.url().place(), problem })?;
        let padded = pad_to.unwrap_or(dimensions).max(dimensions);
        let id = Self::identity(&endpoint, &model, dimensions, pad_to);
        let permit = permit_of(endpoint.url().as_url(), key.as_ref().map_or("", |key| key.expose_secret()));
        let form = VectorForm { returned: dimensions, padded };
        let document_deadline = DOCUMENT_DEADLINE;
        Ok(Self { id, endpoint, model, form, key, exchange, permit, document_deadline })
    }

    /// Sets the deadline of a batch of documents.
    #[must_use]
    pub(crate) fn with_persistence(self, persistence: Persistence) -> Self {
        let document_deadline = match persistence {
            Persistence::Minutes => DOCUMENT_DEADLINE,
            Persistence::OneMinute => SHORT_DOCUMENT_DEADLINE,
        };
        Self { document_deadline, ..self }
    }

    /// Returns the identity of a model.
    pub(crate) fn identity(
        endpoint: &Endpoint,
        model: &str,
        dimensions: usize,
        pad_to: Option<usize>,
    ) -> String {
        let padded = pad_to.unwrap_or(dimensions).max(dimensions);
        format!("http:{}:{model}:{dimensions}:{padded}", endpoint.url().place())
    }

    /// Sends the texts of one request, and repeats it as long as the deadline allows.
    async fn request(
        &self,
        texts: &[String],
        purpose: Purpose,
        deadline: Instant,
    ) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let _permit = self.permit.acquire().await;
        let repeat_until = match purpose {
            Purpose::Query => deadline.min(Instant::now() + QUERY_RETRY_TIME),
            Purpose::Document => deadline,
        };
        let mut attempt = 1;
        loop {
            let answer = self.exchange.send(self.http_request(texts, purpose)?).await;
            let requested = match &answer {
                Ok(response) if is_temporary(response.status()) => {
                    retry_after(response.headers(), Timestamp::now())
                }
                Ok(response) => return self.vectors(response, texts),
                Err(_problem) => None,
            };
            let again = Instant::now().checked_add(pause(attempt, requested));
            let Some(again) = again.filter(|again| *again < repeat_until) else {
                return Err(match answer {
                    Ok(response) => self.refusal(&response, texts),
                    Err(problem) => EmbeddingError::Unavailable { place: self.place(), problem },
                });
            };
            sleep_until(again).await;
            attempt += 1;
        }
    }

    fn http_request(&self, texts: &[String], purpose: Purpose) -> Result<Request<Bytes>, EmbeddingError> {
        let body = self.endpoint.shape().body(&self.model, self.form.returned, texts, purpose);
        json_request(self.endpoint.url().as_url(), self.key.as_ref(), &body).map_err(
            |invalid| match invalid {
                InvalidRequest::Key => self.unauthorized(0),
                InvalidRequest::Url(error) => {
                    EmbeddingError::Unavailable { place: self.place(), problem: error.to_string() }
                }
            },
        )
    }

    fn place(&self) -> String {
        self.endpoint.url().place()
    }

    fn vectors(&self, response: &Response<Bytes>, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        if !response.status().is_success() {
            return Err(self.refusal(response, texts));
        }
        let place = self.place();
        let vectors = self.endpoint.shape().vectors(response.body());
        let vectors =
            vectors.map_err(|problem| EmbeddingError::InvalidResponse { place: place.clone(), problem })?;
        self.form.normalize(&place, texts.len(), vectors)
    }

    fn unauthorized(&self, status: u16) -> EmbeddingError {
        EmbeddingError::Unauthorized { place: self.place(), status }
    }

    /// Returns the error for a response that is no success.
    fn refusal(&self, response: &Response<Bytes>, texts: &[String]) -> EmbeddingError {
        let place = self.place();
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.unauthorized(status.as_u16()),
            StatusCode::TOO_MANY_REQUESTS => {
                let retry_after = retry_after(response.headers(), Timestamp::now());
                EmbeddingError::RateLimited { place, retry_after }
            }
            _ => {
                // A service may quote the texts of a request.
                let is_probe = texts.iter().all(|text| text == PROBE_TEXT);
                let message = is_probe.then(|| self.message(response.body())).flatten();
                let status = status.as_u16();
                if status >= 500 {
                    EmbeddingError::ServiceFailed { place, status, message }
                } else {
                    EmbeddingError::Refused { place, status, message }
                }
            }
        }
    }

    /// Returns the message of an error body, without the key.
    fn message(&self, body: &[u8]) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let message =
            body.pointer("/error/message").or_else(|| body.get("error")).or_else(|| body.get("detail"));
        let redactor = Redactor::new(self.key.as_ref().map(|key| key.expose_secret()));
        let message = redactor.redact_text(message?.as_str()?);
        Some(message.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE_CHARS).collect())
    }
}

/// Returns true if a repeated request may succeed.
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// Splits texts into the batches of one request each.
fn batches(texts: &[String]) -> Vec<&[String]> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, text) in texts.iter().enumerate() {
        if at > start && (at - start == MAX_TEXTS || bytes + text.len() > MAX_REQUEST_BYTES) {
            batches.extend(texts.get(start..at));
            (start, bytes) = (at, 0);
        }
        bytes += text.len();
    }
    batches.extend(texts.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

#[async_trait]
impl EmbeddingModel for HttpModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.form.padded
    }

    fn pieces(&self) -> &dyn PieceCount {
        &PIECES
    }

    fn batch(&self) -> usize {
        MAX_TEXTS
    }

    fn is_remote(&self) -> bool {
        !self.endpoint.url().is_this_machine()
    }

    fn is_service(&self) -> bool {
        true
    }

    fn has_purposes(&self) -> bool {
        self.endpoint.shape() == Shape::Voyage
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let is_probe = matches!(texts, [only] if only == PROBE_TEXT);
        let within = match purpose {
            Purpose::Document if is_probe => PROBE_DEADLINE,
            Purpose::Query => QUERY_DEADLINE,
            Purpose::Document => self.document_deadline,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in batches(texts) {
            let deadline = Instant::now() + within;
            let answer = timeout_at(deadline, self.request(batch, purpose, deadline)).await;
            vectors.extend(answer.unwrap_or_else(|_late| {
                let problem = format!("no answer within {} s", within.as_secs());
                Err(EmbeddingError::Unavailable { place: self.place(), problem })
            })?);
        }
        Ok(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_texts_and_bytes() {
        let lengths = |texts: &[String]| batches(texts).into_iter().map(<[String]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), Vec::<usize>::new());
        assert_eq!(lengths(&vec!["a".to_owned(); 130]), [64, 64, 2]);
        assert_eq!(lengths(&vec!["a".repeat(50_000); 5]), [2, 2, 1]);
        assert_eq!(lengths(&["a".repeat(500_000), "b".to_owned()]), [1, 1]);
    }
}

//! Embeds the queries of searches: within a deadline, once for equal queries, and not again soon after a failure.
//!
//! The model is opened by the first query, because a local model takes about a second and many searches need none.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::error::EmbeddingError;
use super::model::{EmbeddingModel, Purpose};
use crate::lru::{LruCache, LruLimits};

/// Time after a failure in which the model is not called, so that a service that is down does not delay each search.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

/// Maximum time for which a service can ask not to be called.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// Maximum length of an embedded query in bytes. Models truncate queries of this length anyway.
const MAX_QUERY_BYTES: usize = 4_000;

/// Number of cached vectors of queries: 1,024 dimensions take 4 KB.
const CACHED_QUERIES: u64 = 512;

/// Number of locks that keep equal queries from being embedded twice at the same time.
const LOCKS: usize = 16;

/// Vector of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// Identity of the model that made it.
    pub model: Arc<str>,
    /// Numbers of the vector, which has length 1.
    pub numbers: Arc<[f32]>,
}

type OpenModel = dyn Fn() -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> + Send + Sync;

/// Embeds queries with one model.
pub struct QueryEmbedder {
    shared: Arc<Shared>,
    vectors: LruCache<String, QueryVector>,
    locks: [AsyncMutex<()>; LOCKS],
    failure: Mutex<Option<Failure>>,
}

/// The model, which a blocking thread opens.
struct Shared {
    open: Box<OpenModel>,
    opening: Mutex<()>,
    model: OnceLock<Arc<dyn EmbeddingModel>>,
}

/// The last failure, and the time until which the model is not called.
struct Failure {
    error: EmbeddingError,
    until: Instant,
}

impl fmt::Debug for QueryEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryEmbedder").field("model", &self.shared.model.get()).finish_non_exhaustive()
    }
}

impl QueryEmbedder {
    /// Creates an embedder of a model that the first query opens.
    pub fn new(
        open: impl Fn() -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared { open: Box::new(open), opening: Mutex::default(), model: OnceLock::new() };
        Self {
            shared: Arc::new(shared),
            vectors: LruCache::new(LruLimits::new(CACHED_QUERIES)),
            locks: Default::default(),
            failure: Mutex::default(),
        }
    }

    /// Returns the vector of a query.
    ///
    /// # Errors
    ///
    /// The model cannot be opened or called, is too slow, or failed a moment ago.
    pub async fn embed(&self, query: &str, within: Duration) -> Result<QueryVector, EmbeddingError> {
        let query = query.get(..query.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
        if let Some(known) = self.vectors.get(query) {
            return Ok(known);
        }
        if let Some(error) = self.recent_failure() {
            return Err(error);
        }
        let embedded = timeout(within, self.embed_now(query)).await;
        let embedded = embedded.unwrap_or(Err(EmbeddingError::Timeout { within }));
        if let Err(error) = &embedded {
            self.keep_failure(error);
        }
        embedded
    }

    async fn embed_now(&self, query: &str) -> Result<QueryVector, EmbeddingError> {
        let mut hasher = DefaultHasher::new();
        query.hash(&mut hasher);
        let lock = usize::try_from(hasher.finish() % LOCKS as u64).ok().and_then(|lock| self.locks.get(lock));
        let _same_query = match lock {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        if let Some(known) = self.vectors.get(query) {
            return Ok(known);
        }
        let model = self.model().await?;
        let vectors = model.embed(&[query.to_owned()], Purpose::Query).await?;
        let numbers = vectors.into_iter().next().unwrap_or_default();
        let vector = QueryVector { model: model.id().into(), numbers: numbers.into() };
        self.vectors.insert(query.to_owned(), vector.clone());
        Ok(vector)
    }

    /// Returns the model, opened if it is not open. A model that opens too slowly for one query is there for a later one.
    async fn model(&self) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
        if let Some(model) = self.shared.model.get() {
            return Ok(Arc::clone(model));
        }
        let shared = Arc::clone(&self.shared);
        match spawn_blocking(move || shared.open()).await {
            Ok(opened) => opened,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    fn recent_failure(&self) -> Option<EmbeddingError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().filter(|failure| Instant::now() < failure.until).map(|failure| failure.error.clone())
    }

    fn keep_failure(&self, error: &EmbeddingError) {
        let pause = match error {
            EmbeddingError::RateLimited { retry_after: Some(pause), .. } => {
                (*pause).clamp(FAILURE_PAUSE, MAX_PAUSE)
            }
            _ => FAILURE_PAUSE,
        };
        let failure = Failure { error: error.clone(), until: Instant::now() + pause };
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }
}

impl Shared {
    fn open(&self) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
        let _one_at_a_time = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = self.model.get() {
            return Ok(Arc::clone(model));
        }
        let model = (self.open)()?;
        Ok(Arc::clone(self.model.get_or_init(|| model)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::embedding::{EstimatedPieces, PieceCount};

    /// Deadline of the queries.
    const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

    /// A model that counts its calls and fails or hangs for some texts.
    #[derive(Debug, Default)]
    struct FakeModel {
        calls: AtomicUsize,
    }

    #[async_trait]
    impl EmbeddingModel for FakeModel {
        fn id(&self) -> &str {
            "fake"
        }

        fn dimensions(&self) -> usize {
            1
        }

        fn pieces(&self) -> &dyn PieceCount {
            const { &EstimatedPieces { limit: 64 } }
        }

        fn batch(&self) -> usize {
            1
        }

        fn is_remote(&self) -> bool {
            true
        }

        async fn embed(&self, texts: &[String], _: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            match texts.first().map_or("", String::as_str) {
                "hangs" => std::future::pending().await,
                "fails" => Err(EmbeddingError::Unavailable {
                    place: "example.com".to_owned(),
                    problem: "refused".to_owned(),
                }),
                text => Ok(vec![vec![text.len() as f32]]),
            }
        }
    }

    fn embedder() -> (Arc<FakeModel>, QueryEmbedder) {
        let model = Arc::new(FakeModel::default());
        let shared = Arc::clone(&model);
        (model, QueryEmbedder::new(move || Ok(Arc::clone(&shared) as _)))
    }

    #[tokio::test]
    async fn equal_queries_are_embedded_once() {
        let (model, embedder) = embedder();
        let (one, other) =
            tokio::join!(embedder.embed("pay", QUERY_TIMEOUT), embedder.embed("pay", QUERY_TIMEOUT));
        assert_eq!(one.unwrap(), other.unwrap());
        embedder.embed("pay", QUERY_TIMEOUT).await.unwrap();
        assert_eq!(model.calls.load(Ordering::Relaxed), 1);
        let long = embedder.embed(&"é".repeat(5_000), QUERY_TIMEOUT).await.unwrap();
        assert_eq!(*long.numbers, [4_000.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn failing_model_is_not_called_again_at_once() {
        let (model, embedder) = embedder();
        assert!(matches!(
            embedder.embed("fails", QUERY_TIMEOUT).await,
            Err(EmbeddingError::Unavailable { .. })
        ));
        assert!(matches!(
            embedder.embed("pay", QUERY_TIMEOUT).await,
            Err(EmbeddingError::Unavailable { .. })
        ));
        assert_eq!(model.calls.load(Ordering::Relaxed), 1);
        tokio::time::advance(FAILURE_PAUSE).await;
        embedder.embed("pay", QUERY_TIMEOUT).await.unwrap();
        // Vectors that are known need no model.
        assert!(matches!(embedder.embed("hangs", QUERY_TIMEOUT).await, Err(EmbeddingError::Timeout { .. })));
        embedder.embed("pay", QUERY_TIMEOUT).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn model_that_cannot_be_opened_is_tried_again() {
        let tries = AtomicUsize::new(0);
        let embedder = QueryEmbedder::new(move || match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err(EmbeddingError::LocalNotSupported),
            _ => Ok(Arc::new(FakeModel::default()) as _),
        });
        assert_eq!(
            embedder.embed("pay", QUERY_TIMEOUT).await.unwrap_err(),
            EmbeddingError::LocalNotSupported
        );
        tokio::time::advance(FAILURE_PAUSE).await;
        assert_eq!(&*embedder.embed("pay", QUERY_TIMEOUT).await.unwrap().model, "fake");
    }
}

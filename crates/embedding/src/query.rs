//! Embeds the queries of searches: within a deadline, once for equal queries, and not again soon after a failure of the
//! model. A failure that concerns one query pauses no other.
//!
//! The model is opened by the first query, because a local model takes about a second and many searches need none. With
//! the first query it embeds the fixed text by which a changed model is recognized, and again once a minute.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout};
use tokio::{spawn, try_join};

use super::error::EmbeddingError;
use super::model::{EmbeddingModel, ModelIdentity, PROBE_TEXT, Purpose, is_same_model, probe_vector};

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

/// Time after which a query has the model recognized again, in the background.
const IDENTITY_LIFETIME: Duration = Duration::from_secs(60);

/// Vector of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// Identity of the model that made it.
    pub model: ModelIdentity,
    /// Name of that model.
    pub name: Arc<str>,
    /// Numbers of the vector, which has length 1.
    pub numbers: Arc<[f32]>,
}

type OpenModel = dyn Fn() -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> + Send + Sync;

/// Embeds queries with one model.
pub struct QueryEmbedder {
    shared: Arc<SharedModel>,
    vectors: LruCache<String, QueryVector>,
    locks: [AsyncMutex<()>; LOCKS],
    failure: Mutex<Option<Failure>>,
}

/// The model, which a blocking thread opens.
struct SharedModel {
    open: Box<OpenModel>,
    opening: Mutex<()>,
    model: OnceLock<Arc<dyn EmbeddingModel>>,
    identity: Mutex<Option<KnownIdentity>>,
    recognizing: AsyncMutex<()>,
}

/// The model as it was recognized last.
struct KnownIdentity {
    identity: ModelIdentity,
    /// Time of the last recognition, or of its start if one runs.
    checked: Instant,
}

/// Vector of a query with the model that made it.
struct RecognizedVector {
    numbers: Vec<f32>,
    model: ModelIdentity,
}

/// The last failure of the model, and the time until which the model is not called.
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
        let shared = SharedModel {
            open: Box::new(open),
            opening: Mutex::default(),
            model: OnceLock::new(),
            identity: Mutex::default(),
            recognizing: AsyncMutex::default(),
        };
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
    /// The model cannot be opened or called, is too slow, failed a moment ago, or has no vector for this query.
    pub async fn embed(&self, query: &str, within: Duration) -> Result<QueryVector, EmbeddingError> {
        let query = query.get(..query.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
        if let Some(known) = self.known_vector(query) {
            return Ok(known);
        }
        if let Some(error) = self.recent_failure() {
            return Err(error);
        }
        let embedded = timeout(within, self.embed_now(query)).await;
        let embedded = embedded.unwrap_or(Err(EmbeddingError::Timeout { within }));
        // The text of one caller must not keep the queries of others from the model.
        if let Err(error) = &embedded
            && !error.concerns_one_query()
        {
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
        if let Some(known) = self.known_vector(query) {
            return Ok(known);
        }
        let opened = self.model().await?;
        let RecognizedVector { numbers, model } = self.vector(&opened, query).await?;
        let vector = QueryVector { model, name: opened.name().into(), numbers: numbers.into() };
        self.vectors.insert(query.to_owned(), vector.clone());
        Ok(vector)
    }

    /// Embeds a query, and recognizes the model if it was not: in one request if the model allows that.
    async fn vector(
        &self,
        model: &Arc<dyn EmbeddingModel>,
        query: &str,
    ) -> Result<RecognizedVector, EmbeddingError> {
        let text = query.to_owned();
        if !model.has_purposes() && !self.shared.is_recognized() {
            let (shared, model, text) = (Arc::clone(&self.shared), Arc::clone(model), text.clone());
            let both = join(spawn(async move { shared.recognize_with(&*model, text).await })).await?;
            if let Some(both) = both {
                return Ok(both);
            }
        }
        let text = [text];
        let (vectors, identity) = try_join!(model.embed(&text, Purpose::Query), self.identity(model))?;
        Ok(RecognizedVector { numbers: vectors.into_iter().next().unwrap_or_default(), model: identity })
    }

    /// Returns the model, opened if it is not open. A model that opens too slowly for one query is there for a later one.
    async fn model(&self) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
        if let Some(model) = self.shared.model.get() {
            return Ok(Arc::clone(model));
        }
        let shared = Arc::clone(&self.shared);
        join(spawn_blocking(move || shared.open())).await
    }

    /// Returns the cached vector of a query, unless the model has changed since.
    fn known_vector(&self, query: &str) -> Option<QueryVector> {
        let known = self.vectors.get(query)?;
        let identity = self.shared.identity.lock();
        identity
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.identity.probe, &known.model.probe))
            .then_some(known)
    }

    /// Recognizes the model anew beside the next query. For a model that does not fit the vectors of a store: they may have
    /// been rebuilt.
    pub fn forget_identity(&self) {
        *self.shared.identity.lock() = None;
    }

    /// Returns the identity of a model. Waits for the model only if it was never recognized. A model that is too slow for one
    /// query is recognized for a later one.
    async fn identity(&self, model: &Arc<dyn EmbeddingModel>) -> Result<ModelIdentity, EmbeddingError> {
        if let Some((known, is_old)) = self.shared.known_identity() {
            if is_old {
                let (shared, model) = (Arc::clone(&self.shared), Arc::clone(model));
                // A failure is that of the next query as well.
                spawn(async move { shared.recognize(&*model).await.ok() });
            }
            return Ok(known);
        }
        let (shared, model) = (Arc::clone(&self.shared), Arc::clone(model));
        join(spawn(async move { shared.recognize_once(&*model).await })).await
    }

    fn recent_failure(&self) -> Option<EmbeddingError> {
        let failure = self.failure.lock();
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
        *self.failure.lock() = Some(failure);
    }
}

/// Waits for a task, and panics if it did.
async fn join<Answer>(task: JoinHandle<Answer>) -> Answer {
    match task.await {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

impl SharedModel {
    fn is_recognized(&self) -> bool {
        self.identity.lock().is_some()
    }

    /// Returns the known identity, and true for the one caller that has to renew it.
    fn known_identity(&self) -> Option<(ModelIdentity, bool)> {
        let mut identity = self.identity.lock();
        let known = identity.as_mut()?;
        let is_old = known.checked.elapsed() >= IDENTITY_LIFETIME;
        if is_old {
            known.checked = Instant::now();
        }
        Some((known.identity.clone(), is_old))
    }

    /// Recognizes a model unless a query at the same time did.
    async fn recognize_once(&self, model: &dyn EmbeddingModel) -> Result<ModelIdentity, EmbeddingError> {
        let _one_at_a_time = self.recognizing.lock().await;
        match self.known_identity() {
            Some((known, _)) => Ok(known),
            None => self.recognize(model).await,
        }
    }

    /// Embeds a query and the fixed text in one request. Returns `None` if another query recognized the model meanwhile.
    async fn recognize_with(
        &self,
        model: &dyn EmbeddingModel,
        query: String,
    ) -> Result<Option<RecognizedVector>, EmbeddingError> {
        let _one_at_a_time = self.recognizing.lock().await;
        if self.is_recognized() {
            return Ok(None);
        }
        let mut vectors = model.embed(&[query, PROBE_TEXT.to_owned()], Purpose::Query).await?.into_iter();
        let numbers = vectors.next().unwrap_or_default();
        let model = self.recognized(model, vectors.next().unwrap_or_default());
        Ok(Some(RecognizedVector { numbers, model }))
    }

    /// Embeds the fixed text, and keeps the known identity if the model is the same.
    async fn recognize(&self, model: &dyn EmbeddingModel) -> Result<ModelIdentity, EmbeddingError> {
        let probe = probe_vector(model).await?;
        Ok(self.recognized(model, probe))
    }

    /// Returns the identity of a model with this vector of the fixed text.
    fn recognized(&self, model: &dyn EmbeddingModel, probe: Vec<f32>) -> ModelIdentity {
        let mut identity = self.identity.lock();
        let known = identity.take().map(|known| known.identity);
        let same = known.filter(|known| is_same_model(&known.probe, &probe));
        let current = same.unwrap_or_else(|| ModelIdentity { id: model.id().into(), probe: probe.into() });
        *identity = Some(KnownIdentity { identity: current.clone(), checked: Instant::now() });
        current
    }

    fn open(&self) -> Result<Arc<dyn EmbeddingModel>, EmbeddingError> {
        let _one_at_a_time = self.opening.lock();
        if let Some(model) = self.model.get() {
            return Ok(Arc::clone(model));
        }
        let model = (self.open)()?;
        Ok(Arc::clone(self.model.get_or_init(|| model)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::{EstimatedPieces, PieceCount};

    /// Deadline of the queries.
    const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

    /// A model that counts its queries and fails or hangs for some texts.
    #[derive(Debug, Default)]
    struct FakeModel {
        /// Number of requests with a query.
        calls: AtomicUsize,
        /// Number of requests.
        requests: AtomicUsize,
        /// True if it embeds queries and documents differently.
        has_purposes: bool,
        /// True after another model took its name.
        is_changed: AtomicBool,
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

        fn has_purposes(&self) -> bool {
            self.has_purposes
        }

        async fn embed(&self, texts: &[String], _: Purpose) -> Result<Vec<Vec<f32>>, EmbeddingError> {
            self.requests.fetch_add(1, Ordering::Relaxed);
            let sign = if self.is_changed.load(Ordering::Relaxed) { -1.0 } else { 1.0 };
            let probe = texts.iter().filter(|text| *text == PROBE_TEXT).map(|_| vec![sign]);
            let Some(query) = texts.first().filter(|text| *text != PROBE_TEXT) else {
                return Ok(probe.collect());
            };
            self.calls.fetch_add(1, Ordering::Relaxed);
            let place = "example.com".to_owned();
            let vector = match query.as_str() {
                "hangs" => std::future::pending().await,
                "fails" => {
                    return Err(EmbeddingError::Unavailable { place, problem: "refused".to_owned() });
                }
                "short" => return Err(EmbeddingError::WrongDimensions { place, expected: 1, found: 2 }),
                "zero" => return Err(EmbeddingError::InvalidVector { place, problem: "zero" }),
                "refused" => return Err(EmbeddingError::Refused { place, status: 413, message: None }),
                "broken" => return Err(EmbeddingError::ServiceFailed { place, status: 500, message: None }),
                text => vec![text.len() as f32],
            };
            Ok([vector].into_iter().chain(probe).collect())
        }
    }

    fn embedder() -> (Arc<FakeModel>, QueryEmbedder) {
        embedder_of(FakeModel::default())
    }

    fn embedder_of(model: FakeModel) -> (Arc<FakeModel>, QueryEmbedder) {
        let model = Arc::new(model);
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

    #[tokio::test]
    async fn first_query_and_fixed_text_are_one_request() {
        let (model, embedder) = embedder();
        let vector = embedder.embed("pay", QUERY_TIMEOUT).await.unwrap();
        assert_eq!((&*vector.numbers, &*vector.model.probe), (&[3.0][..], &[1.0][..]));
        assert_eq!(model.requests.load(Ordering::Relaxed), 1);
        embedder.embed("bill", QUERY_TIMEOUT).await.unwrap();
        assert_eq!(model.requests.load(Ordering::Relaxed), 2);
        // The fixed text is a document, so a model with purposes gets it alone.
        let (model, embedder) = embedder_of(FakeModel { has_purposes: true, ..FakeModel::default() });
        let vector = embedder.embed("pay", QUERY_TIMEOUT).await.unwrap();
        assert_eq!((&*vector.numbers, &*vector.model.probe), (&[3.0][..], &[1.0][..]));
        assert_eq!(model.requests.load(Ordering::Relaxed), 2);
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
    async fn failure_of_one_query_pauses_no_other() {
        let (model, embedder) = embedder();
        for (query, calls) in [("zero", 1), ("short", 3), ("refused", 5), ("broken", 7)] {
            embedder.embed(query, QUERY_TIMEOUT).await.unwrap_err();
            assert_eq!(model.calls.load(Ordering::Relaxed), calls, "{query}");
            let other = embedder.embed(&format!("pay after {query}"), QUERY_TIMEOUT).await;
            assert_eq!(other.is_ok(), query != "broken", "{query}");
        }
        assert_eq!(model.calls.load(Ordering::Relaxed), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn changed_model_is_noticed_after_a_minute() {
        let (model, embedder) = embedder();
        let probe = async |query: &str| embedder.embed(query, QUERY_TIMEOUT).await.unwrap().model.probe;
        let before = probe("pay").await;
        model.is_changed.store(true, Ordering::Relaxed);
        assert!(Arc::ptr_eq(&before, &probe("bill").await));
        tokio::time::advance(IDENTITY_LIFETIME).await;
        // This query starts the recognition and does not wait for it.
        assert!(Arc::ptr_eq(&before, &probe("due").await));
        tokio::task::yield_now().await;
        assert_eq!((&*before, &*probe("owed").await), (&[1.0][..], &[-1.0][..]));
        // Cached vectors of the model before are not used any more.
        assert_eq!(*probe("pay").await, [-1.0]);
        assert_eq!(model.calls.load(Ordering::Relaxed), 5);
        let now = probe("pay").await;
        assert_eq!(model.calls.load(Ordering::Relaxed), 5);
        embedder.forget_identity();
        assert!(!Arc::ptr_eq(&now, &probe("pay").await));
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
        assert_eq!(&*embedder.embed("pay", QUERY_TIMEOUT).await.unwrap().model.id, "fake");
    }
}

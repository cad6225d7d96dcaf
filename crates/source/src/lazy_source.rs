//! Source that is opened lazily because opening it failed at startup.
//!
//! Each query tries to open the source again and returns the error until that succeeds, so the other sources are
//! served meanwhile and no restart is needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};
use tokio::task::spawn_blocking;

use super::documents::DocumentStores;
use super::{
    AggregateAnswer, AggregateQuery, BackendStatus, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

type Opening = dyn Fn() -> Result<Arc<dyn Source>, SourceError> + Send + Sync;

/// Source that is opened by the first query that succeeds in opening it.
pub struct LazySource {
    name: SourceName,
    identity: String,
    open: Arc<Opening>,
    opened: OnceLock<Arc<dyn Source>>,
}

impl LazySource {
    /// Creates a source that `open` opens. `identity` must equal the identity of the opened source.
    #[must_use]
    pub fn new(
        name: SourceName,
        identity: String,
        open: impl Fn() -> Result<Arc<dyn Source>, SourceError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, identity, open: Arc::new(open), opened: OnceLock::new() }
    }

    async fn opened(&self) -> Result<&Arc<dyn Source>, SourceError> {
        if let Some(source) = self.opened.get() {
            return Ok(source);
        }
        let open = Arc::clone(&self.open);
        let source = match spawn_blocking(move || open()).await {
            Ok(source) => source?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        Ok(self.opened.get_or_init(|| source))
    }
}

impl fmt::Debug for LazySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazySource").field("identity", &self.identity).field("opened", &self.opened).finish()
    }
}

#[async_trait]
impl Source for LazySource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn hides_streams(&self) -> bool {
        self.opened.get().is_some_and(|source| source.hides_streams())
    }

    fn verifies_changes(&self) -> bool {
        self.opened.get().is_some_and(|source| source.verifies_changes())
    }

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        self.opened().await?.document_stores().await
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        match self.opened().await {
            Ok(source) => source.backends().await,
            Err(_cannot_be_opened) => Vec::new(),
        }
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.opened().await?.health().await
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.opened().await?.schema(context).await
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.opened().await?.stream(context, query).await
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.opened().await?.search(context, query).await
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        self.opened().await?.changes_origin(context, query).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.opened().await?.records(context, query).await
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        self.opened().await?.record(context, query).await
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        self.opened().await?.version(context, address).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        self.opened().await?.window(context, query).await
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        self.opened().await?.aggregate(context, query).await
    }
}

//! A source with the context of one call.
//!
//! The tools and the HTTP APIs read a `BoundSource`, so that every read of a request has the context that was created for
//! it, and none of them passes it on.

use super::documents::DocumentStores;
use super::{
    AggregateAnswer, AggregateQuery, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, SourceError, Sources, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::callers::CallContext;
use crate::handle::{ConnectionId, RecordAddress, SourceName};
use crate::record::{Record, Schema, Unavailable, Window};

/// A source that is read in the context of one call. Clones share the source.
#[derive(Debug, Clone)]
pub struct BoundSource {
    sources: Sources,
    context: CallContext,
}

impl BoundSource {
    /// Binds a source to the context of a call.
    #[must_use]
    pub fn new(sources: impl Into<Sources>, context: CallContext) -> Self {
        Self { sources: sources.into(), context }
    }

    /// Returns the same source in the context of another call.
    #[must_use]
    pub fn with_context(&self, context: CallContext) -> Self {
        Self { sources: self.sources.clone(), context }
    }

    /// Returns the context of the call.
    #[must_use]
    pub fn context(&self) -> &CallContext {
        &self.context
    }

    /// Returns the source, which other calls share.
    #[must_use]
    pub fn shared(&self) -> &Sources {
        &self.sources
    }

    /// Returns the source of a name, in the same context: a member of a federation, or the single source itself.
    #[must_use]
    pub fn named(&self, name: &SourceName) -> Option<Self> {
        let sources = self.sources.named(name)?;
        Some(Self { sources, context: self.context.clone() })
    }

    /// Returns true for a federation. Its own errors name no source.
    #[must_use]
    pub fn is_federation(&self) -> bool {
        self.sources.is_federation()
    }

    /// Delegates to [`Source::name`](super::Source::name).
    #[must_use]
    pub fn name(&self) -> &SourceName {
        self.sources.source().name()
    }

    /// Delegates to [`Source::identity`](super::Source::identity).
    #[must_use]
    pub fn identity(&self) -> String {
        self.sources.source().identity()
    }

    /// Delegates to [`Source::hides_streams`](super::Source::hides_streams).
    #[must_use]
    pub fn hides_streams(&self) -> bool {
        self.sources.source().hides_streams()
    }

    /// Delegates to [`Source::health`](super::Source::health).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.sources.source().health().await
    }

    /// Delegates to [`Source::schema`](super::Source::schema).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn schema(&self) -> Result<Schema, SourceError> {
        self.sources.source().schema(&self.context).await
    }

    /// Delegates to [`Source::document_stores`](super::Source::document_stores).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        self.sources.source().document_stores().await
    }

    /// Returns the id that answers print for the connection `own` of `source`: with `@SOURCE` where another source has the same id.
    pub async fn printed_connection(&self, source: &SourceName, own: &ConnectionId) -> ConnectionId {
        self.sources.printed_connection(source, own).await
    }

    /// Delegates to [`Source::version`](super::Source::version).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        self.sources.source().version(&self.context, address).await
    }

    /// Delegates to [`Source::stream`](super::Source::stream).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.sources.source().stream(&self.context, query).await
    }

    /// Searches the source. The first hits are reranked if a reranker is configured.
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.sources.search(&self.context, query).await
    }

    /// Delegates to [`Source::changes_origin`](super::Source::changes_origin).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn changes_origin(&self, query: &StreamQuery) -> Result<ChangesOrigin, SourceError> {
        self.sources.source().changes_origin(&self.context, query).await
    }

    /// Delegates to [`Source::records`](super::Source::records).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.sources.source().records(&self.context, query).await
    }

    /// Delegates to [`Source::record`](super::Source::record).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        self.sources.source().record(&self.context, query).await
    }

    /// Delegates to [`Source::window`](super::Source::window).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        self.sources.source().window(&self.context, query).await
    }

    /// Delegates to [`Source::aggregate`](super::Source::aggregate).
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        self.sources.source().aggregate(&self.context, query).await
    }
}

impl<Read: Into<Sources>> From<Read> for BoundSource {
    /// Binds a source to the context of no call.
    fn from(source: Read) -> Self {
        Self::new(source, CallContext::default())
    }
}

//! A source with the context of one call.
//!
//! The tools and the HTTP APIs read a `BoundSource`, so that every read of a request has the context that was created for
//! it, and none of them passes it on.

use std::sync::Arc;

use super::federation::CircuitReport;
use super::{
    AggregateAnswer, AggregateQuery, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::callers::CallContext;
use crate::handle::{RecordAddress, SourceName};
use crate::record::{Record, Schema, Unavailable, Window};

/// A source that is read in the context of one call. Clones share the source.
#[derive(Debug, Clone)]
pub struct BoundSource {
    source: Arc<dyn Source>,
    context: CallContext,
}

impl BoundSource {
    /// Binds a source to the context of a call.
    #[must_use]
    pub fn new(source: Arc<dyn Source>, context: CallContext) -> Self {
        Self { source, context }
    }

    /// Returns the same source in the context of another call.
    #[must_use]
    pub fn with_context(&self, context: CallContext) -> Self {
        Self { source: Arc::clone(&self.source), context }
    }

    /// Returns the source, which other calls share.
    #[must_use]
    pub fn shared(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Delegates to [`Source::name`].
    #[must_use]
    pub fn name(&self) -> &SourceName {
        self.source.name()
    }

    /// Delegates to [`Source::identity`].
    #[must_use]
    pub fn identity(&self) -> String {
        self.source.identity()
    }

    /// Delegates to [`Source::is_several`].
    #[must_use]
    pub fn is_several(&self) -> bool {
        self.source.is_several()
    }

    /// Delegates to [`Source::hides_streams`].
    #[must_use]
    pub fn hides_streams(&self) -> bool {
        self.source.hides_streams()
    }

    /// Delegates to [`Source::circuits`].
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        self.source.circuits()
    }

    /// Returns the source of a name in a federation, in the same context.
    #[must_use]
    pub fn member(&self, name: &SourceName) -> Option<Self> {
        let source = self.source.member(name)?;
        Some(Self { source, context: self.context.clone() })
    }

    /// Delegates to [`Source::health`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.source.health().await
    }

    /// Delegates to [`Source::schema`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn schema(&self) -> Result<Schema, SourceError> {
        self.source.schema(&self.context).await
    }

    /// Delegates to [`Source::version`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        self.source.version(&self.context, address).await
    }

    /// Delegates to [`Source::stream`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.source.stream(&self.context, query).await
    }

    /// Delegates to [`Source::search`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.source.search(&self.context, query).await
    }

    /// Delegates to [`Source::changes_origin`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn changes_origin(&self, query: &StreamQuery) -> Result<ChangesOrigin, SourceError> {
        self.source.changes_origin(&self.context, query).await
    }

    /// Delegates to [`Source::records`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.source.records(&self.context, query).await
    }

    /// Delegates to [`Source::record`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        self.source.record(&self.context, query).await
    }

    /// Delegates to [`Source::window`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        self.source.window(&self.context, query).await
    }

    /// Delegates to [`Source::aggregate`].
    ///
    /// # Errors
    ///
    /// See [`SourceError`].
    pub async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        self.source.aggregate(&self.context, query).await
    }
}

impl<Read: Source + 'static> From<Read> for BoundSource {
    /// Binds a source to the context of no call.
    fn from(source: Read) -> Self {
        Self::new(Arc::new(source), CallContext::default())
    }
}

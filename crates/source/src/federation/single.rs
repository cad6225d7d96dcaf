//! A source without others, which accepts the ids of connections that a federation printed.
//!
//! While two sources have one connection, its id is printed as `ID@SOURCE`. Such an id stays valid when the other source is
//! removed from the configuration.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};

use super::guarded::GuardedSource;
use super::names::{Names, unqualified};
use crate::documents::DocumentStores;
use crate::{
    AggregateAnswer, AggregateQuery, BackendStatus, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

/// Source of a configuration without other sources.
#[derive(Debug)]
pub(crate) struct SingleSource {
    source: Arc<dyn Source>,
    /// The same source, which translates ids `ID@SOURCE`.
    qualified: GuardedSource,
    names: Arc<Names>,
}

impl SingleSource {
    pub(crate) fn new(source: Arc<dyn Source>, deadline: Duration) -> Self {
        let names: Arc<Names> = Arc::default();
        let qualified = GuardedSource::new(Arc::clone(&source), deadline, Arc::clone(&names));
        Self { source, qualified, names }
    }

    /// Returns the source to call: the one that translates if the id of the connection is `ID@SOURCE`.
    async fn for_connection(&self, context: &CallContext, connection: Option<&ConnectionId>) -> &dyn Source {
        if connection.is_none_or(|connection| unqualified(self.name(), connection).is_none()) {
            return &*self.source;
        }
        // A real connection of that literal name takes precedence. If the schema cannot be read, the call says why.
        if let Ok(schema) = self.source.schema(context).await {
            self.names.learn(self.name(), &schema);
        }
        &self.qualified
    }
}

#[async_trait]
impl Source for SingleSource {
    fn name(&self) -> &SourceName {
        self.source.name()
    }

    fn identity(&self) -> String {
        self.source.identity()
    }

    fn hides_streams(&self) -> bool {
        self.source.hides_streams()
    }

    fn verifies_changes(&self) -> bool {
        self.source.verifies_changes()
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        self.source.backends().await
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.source.health().await
    }

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        self.source.document_stores().await
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.source.schema(context).await
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.for_connection(context, query.connection.as_ref()).await.stream(context, query).await
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.for_connection(context, query.connection.as_ref()).await.search(context, query).await
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        self.for_connection(context, query.connection.as_ref()).await.changes_origin(context, query).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.for_connection(context, query.connection.as_ref()).await.records(context, query).await
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let connection = query.address.connection.as_ref();
        self.for_connection(context, connection).await.record(context, query).await
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        self.for_connection(context, address.connection.as_ref()).await.version(context, address).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let connection = query.address.connection.as_ref();
        self.for_connection(context, connection).await.window(context, query).await
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        self.for_connection(context, query.connection.as_ref()).await.aggregate(context, query).await
    }
}

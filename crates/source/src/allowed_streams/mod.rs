//! Restricts a source to an allow-list of streams.
//!
//! A stream outside the list behaves as if it did not exist, and so does a connection without a listed stream. A call
//! about either is refused before the source is queried, and every error of the source is rebuilt from the visible
//! schema, so that errors reveal nothing about the rest. A call for which the visible schema cannot be read fails.
//!
//! * `hide`: removes hidden streams from answers
//! * `declaration`: removes them from a connector's own text
//! * `rebuild`: rebuilds errors from the visible schema
//! * `seen`: caches the visible schema

mod declaration;
mod hide;
mod rebuild;
mod seen;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use fetchwell_core::record::{ConnectionSchema, Record, Schema, Unavailable, Window};

use self::hide::{AllowList, check_relations};
use self::rebuild::{CallSubject, is_about_a_place, no_record, rebuild};
use self::seen::SchemaCache;
use super::documents::{DOCUMENTS_STREAM, DocumentStores};
use super::unknown_place::unknown_place;
use super::{
    AggregateAnswer, AggregateQuery, BackendStatus, ChangesOrigin, ChangesToken, Expansion, QueryFault,
    RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source, SourceError, Start,
    StreamAnswer, StreamQuery, WindowQuery,
};

/// Decorator that shows only listed streams of a source.
#[derive(Debug)]
pub struct AllowedStreams {
    inner: Arc<dyn Source>,
    allowed: AllowList,
    cache: SchemaCache,
}

impl AllowedStreams {
    /// Restricts `inner` to `streams`.
    #[must_use]
    pub fn new(inner: Arc<dyn Source>, streams: Vec<StreamName>) -> Self {
        Self { inner, allowed: AllowList::new(streams), cache: SchemaCache::default() }
    }

    /// Returns the visible schema, from the cache if it is recent.
    async fn visible_schema(&self, context: &CallContext) -> Result<Arc<Schema>, SourceError> {
        match self.cache.get() {
            Some(schema) => Ok(schema),
            None => self.read_visible_schema(context).await,
        }
    }

    /// Reads the visible schema and caches it.
    async fn read_visible_schema(&self, context: &CallContext) -> Result<Arc<Schema>, SourceError> {
        match self.inner.schema(context).await {
            Ok(schema) => Ok(self.cache.put(self.allowed.schema(schema))),
            Err(error) => Err(rebuild(error, &Schema::default(), CallSubject::default())),
        }
    }

    /// Refuses a hidden connection or stream like one that does not exist. Returns the visible schema.
    async fn check(
        &self,
        context: &CallContext,
        streams: &[StreamName],
        connection: Option<&ConnectionId>,
    ) -> Result<Arc<Schema>, SourceError> {
        let missing = |schema: &Schema| {
            let mut of_streams =
                streams.iter().filter_map(|stream| unknown_place(schema, connection, Some(stream)));
            of_streams.next().or_else(|| unknown_place(schema, connection, None))
        };
        let mut schema = self.visible_schema(context).await?;
        // A connection, or a listed stream, may have been added since the schema was cached.
        if missing(&schema).is_some() && streams.iter().all(|stream| self.allowed.has(stream)) {
            schema = self.read_visible_schema(context).await?;
        }
        missing(&schema).map_or(Ok(schema), Err)
    }

    async fn check_record(&self, context: &CallContext, address: &RecordAddress) -> Result<(), SourceError> {
        self.check(context, std::slice::from_ref(&address.stream), address.connection.as_ref())
            .await
            .map(|_| ())
    }

    /// Returns an answer of the source, or its error without hidden names.
    async fn sanitize_error<Answer>(
        &self,
        context: &CallContext,
        answer: Result<Answer, SourceError>,
        subject: CallSubject<'_>,
    ) -> Result<Answer, SourceError> {
        let Err(error) = answer else { return answer };
        let schema = if is_about_a_place(&error) {
            self.read_visible_schema(context).await?
        } else {
            self.visible_schema(context).await?
        };
        Err(rebuild(error, &schema, subject))
    }

    /// Refuses an unverified change token: a forged one could be used to count changes of hidden streams.
    fn check_changes(&self, start: &Start) -> Result<(), SourceError> {
        match start {
            Start::Changes(Some(ChangesToken::Unverified(_))) if !self.inner.verifies_changes() => {
                Err(SourceError::InvalidQuery {
                    fault: QueryFault::ExpiredCursor,
                    problem: "behind a `streams` list, `changes_since` takes only tokens of this server"
                        .to_owned(),
                    hint: "Start again with `changes_since` set to \"beginning\".".to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses relations that lead to hidden streams like ones that do not exist.
    async fn check_expand(
        &self,
        context: &CallContext,
        expand: &[Expansion],
        stream: &StreamName,
        connection: Option<&ConnectionId>,
    ) -> Result<(), SourceError> {
        if expand.is_empty() {
            return Ok(());
        }
        let query = StreamQuery { stream: stream.clone(), connection: connection.cloned() };
        for detail in self.stream(context, &query).await?.details {
            check_relations(expand, &detail)?;
        }
        Ok(())
    }

    /// Returns the streams of a search: those that the query names, or otherwise all visible ones. Sources refuse
    /// unknown streams, so only existing ones are included.
    fn searched(&self, schema: &Schema, query: &SearchQuery) -> Vec<StreamName> {
        if !query.streams.is_empty() {
            return query.streams.clone();
        }
        let is_asked =
            |of: &&ConnectionSchema| query.connection.as_ref().is_none_or(|asked| of.connection_id == *asked);
        let asked: Vec<&ConnectionSchema> = schema.connections.iter().filter(is_asked).collect();
        self.allowed.present_in(&asked)
    }

    async fn search_in(
        &self,
        context: &CallContext,
        query: &SearchQuery,
        streams: Vec<StreamName>,
    ) -> Result<SearchPage, SourceError> {
        if streams.is_empty() {
            return Ok(SearchPage::default());
        }
        let narrowed = SearchQuery { streams, ..query.clone() };
        Ok(self.allowed.hits(self.inner.search(context, &narrowed).await?))
    }
}

#[async_trait]
impl Source for AllowedStreams {
    fn name(&self) -> &SourceName {
        self.inner.name()
    }

    fn identity(&self) -> String {
        format!("{} streams {}", self.inner.identity(), self.allowed)
    }

    fn hides_streams(&self) -> bool {
        true
    }

    fn verifies_changes(&self) -> bool {
        self.inner.verifies_changes()
    }

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        let is_allowed = DOCUMENTS_STREAM.parse().is_ok_and(|stream| self.allowed.has(&stream));
        if is_allowed { self.inner.document_stores().await } else { Ok(DocumentStores::default()) }
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        self.inner.backends().await
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        let health = self.inner.health().await;
        health.map_err(|error| rebuild(error, &Schema::default(), CallSubject::default()))
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.read_visible_schema(context).await.map(Arc::unwrap_or_clone)
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let streams = std::slice::from_ref(&query.stream);
        let subject = CallSubject { connection: query.connection.as_ref(), streams, record: None };
        self.check(context, subject.streams, subject.connection).await?;
        let mut answer =
            self.sanitize_error(context, self.inner.stream(context, query).await, subject).await?;
        answer.details.retain(|detail| self.allowed.has(&detail.name));
        answer.details.iter_mut().for_each(|detail| self.allowed.hide_relations(detail));
        Ok(answer)
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let connection = query.connection.as_ref();
        let schema = self.check(context, &query.streams, connection).await?;
        let mut streams = self.searched(&schema, query);
        let mut searched = self.search_in(context, query, streams.clone()).await;
        if query.streams.is_empty() && searched.as_ref().is_err_and(is_about_a_place) {
            // A stream was removed since the schema was cached.
            let schema = self.read_visible_schema(context).await?;
            streams = self.searched(&schema, query);
            searched = self.search_in(context, query, streams.clone()).await;
        }
        self.sanitize_error(context, searched, CallSubject { connection, streams: &streams, record: None })
            .await
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        let streams = std::slice::from_ref(&query.stream);
        let subject = CallSubject { connection: query.connection.as_ref(), streams, record: None };
        // Nothing is read for a connection that is named, so there is nothing to hide before the records are asked for.
        if subject.connection.is_none() {
            self.check(context, subject.streams, None).await?;
        }
        // The list is no part of it: a change of other streams' visibility ends no token.
        self.sanitize_error(context, self.inner.changes_origin(context, query).await, subject).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let streams = std::slice::from_ref(&query.stream);
        let subject = CallSubject { connection: query.connection.as_ref(), streams, record: None };
        self.check(context, subject.streams, subject.connection).await?;
        self.check_expand(context, &query.expand, &query.stream, subject.connection).await?;
        self.check_changes(&query.start)?;
        let page = self.sanitize_error(context, self.inner.records(context, query).await, subject).await?;
        Ok(self.allowed.rows(page))
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let RecordAddress { connection, stream, .. } = &query.address;
        self.check_record(context, &query.address).await?;
        self.check_expand(context, &query.expand, stream, connection.as_ref()).await?;
        let record = self.inner.record(context, query).await;
        let record = self.sanitize_error(context, record, CallSubject::from_record(&query.address)).await?;
        self.allowed.record(record).ok_or_else(|| no_record(&query.address))
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        self.check_record(context, address).await?;
        self.sanitize_error(
            context,
            self.inner.version(context, address).await,
            CallSubject::from_record(address),
        )
        .await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        self.check_record(context, &query.address).await?;
        let window = self.inner.window(context, query).await;
        let window = self.sanitize_error(context, window, CallSubject::from_record(&query.address)).await?;
        if self.allowed.has(&window.address.stream) { Ok(window) } else { Err(no_record(&query.address)) }
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let streams = std::slice::from_ref(&query.stream);
        let subject = CallSubject { connection: query.connection.as_ref(), streams, record: None };
        self.check(context, subject.streams, subject.connection).await?;
        self.sanitize_error(context, self.inner.aggregate(context, query).await, subject).await
    }
}

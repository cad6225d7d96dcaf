//! A source of which only some streams are shown.
//!
//! A stream that is not on the list is one that does not exist: it has the same error, with the same streams named
//! in it, whether the source has it or not. So nothing can be asked out of it. That error is always made here and
//! never passed on from the source, whose own would name what is hidden.

mod hide;
mod seen;

use std::sync::Arc;

use async_trait::async_trait;

use self::hide::{Allowed, check_relations};
use self::seen::Seen;
use super::unknown_place::unknown_place;
use super::{
    AggregateAnswer, AggregateQuery, Expansion, QueryFault, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use crate::record::{ConnectionSchema, Record, Schema, Unavailable, Window};

/// A source behind a list of the streams that may be seen of it.
#[derive(Debug)]
pub struct AllowedStreams {
    inner: Arc<dyn Source>,
    allowed: Allowed,
    seen: Seen,
}

impl AllowedStreams {
    /// `inner`, of which only `streams` are shown.
    #[must_use]
    pub fn new(inner: Arc<dyn Source>, streams: Vec<StreamName>) -> Self {
        Self { inner, allowed: Allowed::new(streams), seen: Seen::default() }
    }

    /// The schema as it may be seen, read not long ago.
    async fn seen(&self) -> Result<Arc<Schema>, SourceError> {
        match self.seen.recent() {
            Some(schema) => Ok(schema),
            None => self.seen_now().await,
        }
    }

    /// The schema as it may be seen.
    async fn seen_now(&self) -> Result<Arc<Schema>, SourceError> {
        Ok(self.seen.keep(self.allowed.schema(self.inner.schema().await?)))
    }

    /// Refuses a stream that is not on the list.
    async fn check(&self, stream: &StreamName, connection: Option<&ConnectionId>) -> Result<(), SourceError> {
        if self.allowed.has(stream) {
            return Ok(());
        }
        Err(unknown(&*self.seen().await?, connection, [stream]))
    }

    /// An answer of the source about streams on the list. Its errors that name other streams or connections are
    /// made again from what may be seen.
    async fn told<Answer>(
        &self,
        answer: Result<Answer, SourceError>,
        connection: Option<&ConnectionId>,
        streams: impl IntoIterator<Item = &StreamName>,
    ) -> Result<Answer, SourceError> {
        match answer {
            Err(error) if names_what_there_is(&error) => {
                Err(unknown(&*self.seen_now().await?, connection, streams))
            }
            answer => answer,
        }
    }

    /// Refuses relations that do not lead to streams on the list, as ones that do not exist.
    async fn check_expand(
        &self,
        expand: &[Expansion],
        stream: &StreamName,
        connection: Option<&ConnectionId>,
    ) -> Result<(), SourceError> {
        if expand.is_empty() {
            return Ok(());
        }
        let query = StreamQuery { stream: stream.clone(), connection: connection.cloned() };
        for detail in self.stream(&query).await?.details {
            check_relations(expand, &detail)?;
        }
        Ok(())
    }

    /// The streams of a search that names none: those on the list that there are, since sources refuse others.
    fn searched(
        &self,
        schema: &Schema,
        connection: Option<&ConnectionId>,
    ) -> Result<Vec<StreamName>, SourceError> {
        let is_asked = |of: &&ConnectionSchema| connection.is_none_or(|asked| of.connection_id == *asked);
        let asked: Vec<&ConnectionSchema> = schema.connections.iter().filter(is_asked).collect();
        unknown_place(schema, connection, None).map_or_else(|| Ok(self.allowed.present_in(&asked)), Err)
    }

    async fn search_in(
        &self,
        query: &SearchQuery,
        streams: Vec<StreamName>,
    ) -> Result<SearchPage, SourceError> {
        if streams.is_empty() {
            return Ok(SearchPage::default());
        }
        let narrowed = SearchQuery { streams, ..query.clone() };
        Ok(self.allowed.hits(self.inner.search(&narrowed).await?))
    }

    fn not_found(address: &RecordAddress) -> SourceError {
        SourceError::SearchAgain {
            what: format!("there is no record `{}` in stream `{}`", address.record, address.stream),
        }
    }
}

/// Whether an error says what there is in place of what was asked.
fn names_what_there_is(error: &SourceError) -> bool {
    matches!(
        error,
        SourceError::CorrectQuery { fault: QueryFault::UnknownStream, .. }
            | SourceError::UseKnownConnection { .. }
    )
}

/// Why the first of these streams that is not to be seen does not exist.
fn unknown<'a>(
    schema: &Schema,
    connection: Option<&ConnectionId>,
    streams: impl IntoIterator<Item = &'a StreamName>,
) -> SourceError {
    let mut unknown =
        streams.into_iter().filter_map(|stream| unknown_place(schema, connection, Some(stream)));
    // The source contradicts its own schema, and may not the next time.
    unknown.next().unwrap_or_else(|| SourceError::CheckServer {
        problem: "it does not have what its schema says".to_owned(),
    })
}

#[async_trait]
impl Source for AllowedStreams {
    fn name(&self) -> &SourceName {
        self.inner.name()
    }

    fn identity(&self) -> String {
        format!("{} streams {}", self.inner.identity(), self.allowed)
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        self.inner.health().await
    }

    async fn schema(&self) -> Result<Schema, SourceError> {
        self.seen_now().await.map(Arc::unwrap_or_clone)
    }

    async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let connection = query.connection.as_ref();
        self.check(&query.stream, connection).await?;
        let mut answer = self.told(self.inner.stream(query).await, connection, [&query.stream]).await?;
        answer.details.retain(|detail| self.allowed.has(&detail.name));
        answer.details.iter_mut().for_each(|detail| self.allowed.hide_relations(detail));
        Ok(answer)
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let connection = query.connection.as_ref();
        for stream in &query.streams {
            self.check(stream, connection).await?;
        }
        if !query.streams.is_empty() {
            let searched = self.search_in(query, query.streams.clone()).await;
            return self.told(searched, connection, &query.streams).await;
        }
        let streams = self.searched(&*self.seen().await?, connection)?;
        match self.search_in(query, streams).await {
            // A stream went away since the schema was read.
            Err(error) if names_what_there_is(&error) => {
                let streams = self.searched(&*self.seen_now().await?, connection)?;
                let searched = self.search_in(query, streams.clone()).await;
                self.told(searched, connection, &streams).await
            }
            searched => searched,
        }
    }

    async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let connection = query.connection.as_ref();
        self.check(&query.stream, connection).await?;
        self.check_expand(&query.expand, &query.stream, connection).await?;
        let page = self.told(self.inner.records(query).await, connection, [&query.stream]).await?;
        Ok(self.allowed.rows(page))
    }

    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        let RecordAddress { connection, stream, .. } = &query.address;
        self.check(stream, connection.as_ref()).await?;
        self.check_expand(&query.expand, stream, connection.as_ref()).await?;
        let record = self.told(self.inner.record(query).await, connection.as_ref(), [stream]).await?;
        self.allowed.record(record).ok_or_else(|| Self::not_found(&query.address))
    }

    async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        self.check(&address.stream, address.connection.as_ref()).await?;
        let version = self.inner.version(address).await;
        self.told(version, address.connection.as_ref(), [&address.stream]).await
    }

    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        let RecordAddress { connection, stream, .. } = &query.address;
        self.check(stream, connection.as_ref()).await?;
        let window = self.told(self.inner.window(query).await, connection.as_ref(), [stream]).await?;
        if self.allowed.has(&window.address.stream) {
            Ok(window)
        } else {
            Err(Self::not_found(&query.address))
        }
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        let connection = query.connection.as_ref();
        self.check(&query.stream, connection).await?;
        self.told(self.inner.aggregate(query).await, connection, [&query.stream]).await
    }
}

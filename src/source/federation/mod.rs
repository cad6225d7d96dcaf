//! Several sources as one.
//!
//! A call about a connection goes to the source that has it. Any other call goes to all sources that may have an
//! answer, concurrently and each within its own deadline. The answers are combined, and the sources that failed are
//! listed, so a slow or broken source costs the others nothing.
//!
//! * `guarded`, `circuit`: deadline, concurrency limit and circuit breaker of a source
//! * `routes`, `names`: connections and streams of each source, and the printed ids of connections
//! * `search`, `fusion`: search; fuses hits by rank
//! * `records`, `lookup`, `describe`: lists, single records, the schema
//! * `aggregate`, `groups`: aggregates; combines groups
//! * `gathered`, `failures`: notes and failures during one call

mod aggregate;
mod circuit;
mod describe;
mod failures;
mod fusion;
mod gathered;
mod groups;
mod guarded;
mod lookup;
mod names;
mod records;
mod routes;
mod search;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

pub use circuit::CircuitState;

use self::failures::{Failures, is_missing_stream};
use self::guarded::GuardedSource;
use self::names::Names;
use self::routes::Routes;
use super::unknown_place::unknown_stream;
use super::{
    AggregateAnswer, AggregateQuery, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::callers::CallContext;
use crate::handle::{ConnectionId, RecordAddress, SourceName, StreamName};
use crate::record::{Record, Schema, Unavailable, Window};

/// Default time limit for one page, below the deadline of a tool call.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// Minimum number of rows or hits requested from a source at a time.
const MIN_SHARE: usize = 5;

/// Source to be federated.
#[derive(Debug, Clone)]
pub struct Member {
    /// The source. Its name must be unique in the federation.
    pub source: Arc<dyn Source>,
    /// Deadline of one call of the source.
    pub deadline: Duration,
}

/// Several sources that are read as one.
#[derive(Debug)]
pub struct Federation {
    name: SourceName,
    sources: Vec<Arc<GuardedSource>>,
    routes: Routes,
    page_timeout: Duration,
}

/// State of the circuit breaker of one source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CircuitReport {
    /// Name of the source.
    pub source: SourceName,
    /// State of the circuit.
    pub state: CircuitState,
    /// Number of failures since the last answer.
    pub failures: u32,
    /// Seconds until the next attempt, or 0 if calls are made.
    pub asked_again_after: u64,
}

impl Federation {
    /// Creates a federation. Ties go to the member that comes first.
    #[must_use]
    pub fn new(name: SourceName, members: Vec<Member>) -> Self {
        let names: Arc<Names> = Arc::default();
        let guarded =
            |Member { source, deadline }| Arc::new(GuardedSource::new(source, deadline, Arc::clone(&names)));
        let sources: Vec<Arc<GuardedSource>> = members.into_iter().map(guarded).collect();
        Self { name, routes: Routes::new(&sources, Arc::clone(&names)), sources, page_timeout: PAGE_TIMEOUT }
    }

    /// Sets the time limit of a page, which can take several calls in a row. What was read until then is returned.
    #[must_use]
    pub fn with_patience(self, page_timeout: Duration) -> Self {
        Self { page_timeout, ..self }
    }

    /// Waits for an answer until the time limit of the page.
    async fn before<Answer>(
        &self,
        until: Instant,
        answer: impl Future<Output = Result<Answer, SourceError>>,
    ) -> Result<Answer, SourceError> {
        timeout_at(until, answer).await.unwrap_or(Err(SourceError::Timeout { after: self.page_timeout }))
    }

    /// Returns the one source that has a connection.
    async fn source_of(
        &self,
        context: &CallContext,
        connection: &ConnectionId,
    ) -> Result<&Arc<GuardedSource>, SourceError> {
        let number = self.routes.source_of(context, connection).await?;
        let gone = || SourceError::NotFound { what: format!("there is no connection `{connection}`") };
        self.sources.get(number).ok_or_else(gone)
    }

    fn named(&self, name: &SourceName) -> Option<&Arc<GuardedSource>> {
        self.sources.iter().find(|source| source.name() == name)
    }

    /// Returns the sources that may have one of these streams, or all sources if none is named or known.
    fn with_any_stream(&self, streams: &[StreamName]) -> impl Iterator<Item = &Arc<GuardedSource>> {
        let can_have = move |number: usize| {
            streams.is_empty()
                || streams.iter().any(|stream| self.routes.has_stream(number, stream) != Some(false))
        };
        let is_unknown = (0..self.sources.len()).all(|number| !can_have(number));
        let sources = self.sources.iter().enumerate();
        sources.filter(move |(number, _)| is_unknown || can_have(*number)).map(|(_, source)| source)
    }

    /// Returns the sources that may have a stream, or all sources if it is unknown.
    fn with_stream(&self, stream: &StreamName) -> impl Iterator<Item = &Arc<GuardedSource>> {
        self.with_any_stream(std::slice::from_ref(stream))
    }

    /// Returns the number of rows or hits to request from each source at a time. Rows that do not fit on the page are
    /// kept or read again, so many sources are asked for few each.
    fn share_of(&self, limit: usize) -> usize {
        (2 * limit).div_ceil(self.sources.len().max(1)).clamp(MIN_SHARE.min(limit), limit)
    }

    /// Returns a note about counts if two sources have one connection, since a record that both have is counted
    /// twice.
    fn counted_twice(&self) -> Option<String> {
        let connection = self.routes.collision()?;
        Some(format!(
            "connection `{connection}` is in more than one source; a record that both have is shown once and counted twice"
        ))
    }

    /// Returns the error of a call that no source answered. A stream that no source has is an error of its own.
    fn no_answer_error(&self, failed: Failures, what: &str, stream: Option<&StreamName>) -> SourceError {
        match stream {
            Some(stream) if failed.are_all(is_missing_stream) => {
                let known = self.routes.streams();
                unknown_stream(stream, None, known.iter().map(StreamName::as_str).collect())
            }
            _ => failed.into_error(what),
        }
    }
}

/// Adds the name of the source to an error.
fn from_source(source: &GuardedSource, error: SourceError) -> SourceError {
    SourceError::FromSource { source_name: source.name().clone(), error: Box::new(error) }
}

#[async_trait]
impl Source for Federation {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn is_several(&self) -> bool {
        true
    }

    fn hides_streams(&self) -> bool {
        self.sources.iter().any(|source| source.hides_streams())
    }

    fn identity(&self) -> String {
        let identities: Vec<String> = self.sources.iter().map(|source| source.identity()).collect();
        identities.join("\n")
    }

    fn circuits(&self) -> Vec<CircuitReport> {
        let report = |source: &Arc<GuardedSource>| {
            let (state, failures, pause) = source.circuit();
            let asked_again_after = pause.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX);
            CircuitReport { source: source.name().clone(), state, failures, asked_again_after }
        };
        self.sources.iter().map(report).collect()
    }

    fn member(&self, name: &SourceName) -> Option<Arc<dyn Source>> {
        // The ids that the source prints depend on the schemas of the others.
        self.routes.refresh();
        self.named(name).map(|source| Arc::clone(source) as Arc<dyn Source>)
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        let asked = self.sources.iter().map(|source| async move { (source.name(), source.health().await) });
        let mut failed = Failures::default();
        let mut impaired = Vec::new();
        for (name, health) in futures_util::future::join_all(asked).await {
            match health {
                Ok(parts) => impaired.extend(parts),
                Err(error) => failed.add(name, error),
            }
        }
        if failed.len() == self.sources.len() {
            return Err(failed.all_failed("no source can be asked".to_owned()));
        }
        impaired.extend(failed.into_unavailable());
        Ok(impaired)
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        describe::schema(self, context).await
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        describe::stream(self, context, query).await
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        search::search(self, context, query).await
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        records::changes_origin(self, context, query).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        records::records(self, context, query).await
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        lookup::record(self, context, query).await
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        lookup::version(self, context, address).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        lookup::window(self, context, query).await
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        aggregate::aggregate(self, context, query).await
    }
}

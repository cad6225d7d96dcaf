//! Several sources as one.
//!
//! A call about a connection goes to the source that has it. Any other call goes to all sources that may have an
//! answer, concurrently and each within its own deadline. The answers are combined, and the sources that failed are
//! listed, so a slow or broken source costs the others nothing.
//!
//! * `members`: the sources, and the choice of those that a call reads
//! * `guarded`, `circuit`: deadline, concurrency limit and circuit breaker of a source
//! * `routes`, `names`: connections and streams of each source, and the printed ids of connections
//! * `search`, `fusion`: search; fuses hits by rank, and those of lists by their words too
//! * `records`, `lookup`, `describe`: lists, single records, the schema
//! * `aggregate`, `groups`: aggregates; combines groups
//! * `single`: a source without others, which accepts the ids of an earlier federation
//! * `source_outcomes`, `failures`: notes and failures during one call

mod aggregate;
mod circuit;
mod describe;
mod failures;
mod fusion;
mod groups;
mod guarded;
mod lookup;
mod members;
mod names;
mod records;
mod routes;
mod search;
mod single;
mod source_outcomes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};

pub use circuit::CircuitState;
pub use members::Member;
pub(crate) use single::SingleSource;

use self::failures::Failures;
use self::guarded::GuardedSource;
use self::members::Members;
use super::documents::DocumentStores;
use super::{
    AggregateAnswer, AggregateQuery, BackendStatus, ChangesOrigin, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

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

/// Several sources that are read as one.
#[derive(Debug, Clone)]
pub struct Federation(Arc<Members>);

impl Federation {
    /// Creates a federation. Ties go to the member that comes first.
    #[must_use]
    pub fn new(name: SourceName, members: Vec<Member>) -> Self {
        Self(Arc::new(Members::new(name, members)))
    }

    /// Creates a federation with a time limit of a page, which can take several calls in a row. What was read until then
    /// is returned.
    #[must_use]
    pub fn with_page_timeout(name: SourceName, members: Vec<Member>, page_timeout: Duration) -> Self {
        Self(Arc::new(Members { page_timeout, ..Members::new(name, members) }))
    }

    /// Returns the federation as one source.
    #[must_use]
    pub fn as_source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0) as Arc<dyn Source>
    }

    /// Returns the state of the circuit breaker of each member.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        let report = |source: &Arc<GuardedSource>| {
            let (state, failures, pause) = source.circuit();
            let asked_again_after = pause.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX);
            CircuitReport { source: source.name().clone(), state, failures, asked_again_after }
        };
        self.0.sources.iter().map(report).collect()
    }

    /// Returns the member of a name, for calls about a connection that several members have.
    #[must_use]
    pub fn member(&self, name: &SourceName) -> Option<Arc<dyn Source>> {
        // The ids that the source prints depend on the schemas of the others.
        self.0.routes.refresh();
        self.0.named(name).map(|source| Arc::clone(source) as Arc<dyn Source>)
    }

    /// Returns the member with a printed connection, if its schema is known.
    pub(crate) fn source_of(&self, printed: &ConnectionId) -> Option<SourceName> {
        self.0.routes.names().source_of(printed)
    }

    /// Returns the id under which answers have a connection of one of the sources.
    pub(crate) async fn printed_connection(&self, source: &SourceName, own: &ConnectionId) -> ConnectionId {
        // The id depends on the schemas of the other sources.
        self.0.routes.refresh();
        let names = self.0.routes.names();
        names.settle().await;
        names.printed(source, own)
    }
}

#[async_trait]
impl Source for Members {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn hides_streams(&self) -> bool {
        self.sources.iter().any(|source| source.hides_streams())
    }

    fn identity(&self) -> String {
        let identities: Vec<String> = self.sources.iter().map(|source| source.identity()).collect();
        identities.join("\n")
    }

    /// Returns the stores of all sources that answer, and the sources that do not.
    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        let mut failed = Failures::default();
        let mut stores = Vec::new();
        for source in &self.sources {
            match source.document_stores().await {
                Ok(found) => stores.extend(found.stores),
                Err(error) => failed.add(source.name(), error),
            }
        }
        if failed.len() == self.sources.len() {
            return Err(failed.all_failed("no source is available".to_owned()));
        }
        Ok(DocumentStores { stores, unavailable: failed.into_unavailable() })
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        let asked = self.sources.iter().map(|source| source.backends());
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
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
            return Err(failed.all_failed("no source is available".to_owned()));
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

//! One source of a federation with its deadline, its limit of concurrent calls and its circuit breaker.
//!
//! `GuardedSource` translates ids of connections: the source is called with its own ids, and its answers contain the
//! printed ones.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::circuit::{Circuit, CircuitState, Outcome, Pass};
use super::names::Names;
use crate::documents::DocumentStores;
use crate::{
    AggregateAnswer, AggregateQuery, BackendStatus, ChangesOrigin, Purpose, RecordQuery, RecordsPage,
    RecordsQuery, SearchPage, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

/// Maximum number of concurrent calls of one source. Further calls wait, within their deadline.
const MAX_CONCURRENT_CALLS: usize = 8;

/// Source that is called within bounds.
#[derive(Debug)]
pub(super) struct GuardedSource {
    source: Arc<dyn Source>,
    deadline: Duration,
    circuit: Circuit,
    /// Permits for concurrent calls. Each source has its own, so that an unresponsive source does not block others.
    permits: Semaphore,
    names: Arc<Names>,
}

/// Call in flight. Its end decides the outcome that the circuit breaker records.
#[derive(Debug)]
struct InFlight<'a> {
    pass: Option<Pass<'a>>,
    since: Instant,
    deadline: Duration,
}

impl InFlight<'_> {
    fn settle(mut self, outcome: Outcome) {
        if let Some(pass) = self.pass.take() {
            pass.settle(outcome, Instant::now());
        }
    }
}

impl Drop for InFlight<'_> {
    /// Cancelled by the caller. Counts as a failure only if more than half of the deadline had passed.
    fn drop(&mut self) {
        if self.since.elapsed() * 2 > self.deadline
            && let Some(pass) = self.pass.take()
        {
            pass.settle(Outcome::Failed, Instant::now());
        }
    }
}

impl GuardedSource {
    pub(super) fn new(source: Arc<dyn Source>, deadline: Duration, names: Arc<Names>) -> Self {
        let permits = Semaphore::new(MAX_CONCURRENT_CALLS);
        Self { source, deadline, circuit: Circuit::default(), permits, names }
    }

    /// Reads the schema with the source's own ids.
    pub(super) async fn own_schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        self.call(self.source.schema(context)).await
    }

    /// Replaces the source's own ids in a schema by the printed ones.
    pub(super) fn print_schema(&self, schema: &mut Schema) {
        let printer = self.names.printer(self.name(), None);
        for connection in &mut schema.connections {
            printer.id(&mut connection.connection_id);
        }
    }

    /// Returns the source's own id of a connection.
    fn own(&self, printed: Option<&ConnectionId>) -> Option<ConnectionId> {
        printed.map(|printed| self.names.own(self.name(), printed))
    }

    fn own_address(&self, address: &RecordAddress) -> RecordAddress {
        RecordAddress { connection: self.own(address.connection.as_ref()), ..address.clone() }
    }

    /// Returns the deadline of one call.
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the state of the circuit, the number of failures in a row and the remaining pause.
    pub(super) fn circuit(&self) -> (CircuitState, u32, Duration) {
        self.circuit.state(Instant::now())
    }

    /// Makes one call. A future does nothing before it is polled, so no call is made while the circuit is open.
    async fn call<Answer>(
        &self,
        call: impl Future<Output = Result<Answer, SourceError>> + Send,
    ) -> Result<Answer, SourceError> {
        self.call_for(Purpose::Answer, call).await
    }

    /// Makes one call. A call for a hint is not made unless the circuit is closed, and it does not affect the
    /// circuit.
    async fn call_for<Answer>(
        &self,
        purpose: Purpose,
        call: impl Future<Output = Result<Answer, SourceError>> + Send,
    ) -> Result<Answer, SourceError> {
        let until = Instant::now() + self.deadline;
        // Waiting for a permit is not a failure of the source.
        let Ok(Ok(_permit)) = timeout_at(until.into(), self.permits.acquire()).await else {
            return Err(SourceError::NoPermit);
        };
        if purpose == Purpose::Hint {
            return match self.circuit() {
                (CircuitState::Closed, _, _) => timeout_at(until.into(), call)
                    .await
                    .unwrap_or(Err(SourceError::Timeout { after: self.deadline })),
                (_, _, pause) => Err(SourceError::CircuitOpen { pause }),
            };
        }
        let pass = self.circuit.enter(Instant::now()).map_err(|pause| SourceError::CircuitOpen { pause })?;
        let in_flight = InFlight { pass: Some(pass), since: Instant::now(), deadline: self.deadline };
        let answer = timeout_at(until.into(), call)
            .await
            .unwrap_or(Err(SourceError::Timeout { after: self.deadline }));
        match &answer {
            // Most of the deadline passed while waiting for a permit, so the outcome says nothing about the source.
            Err(SourceError::Timeout { .. }) if in_flight.since.elapsed() * 2 < self.deadline => {}
            Err(SourceError::RateLimited { retry_after: Some(pause) }) => {
                in_flight.settle(Outcome::Pause(*pause));
            }
            Err(error) if error.is_source_failure() => in_flight.settle(Outcome::Failed),
            Ok(_) | Err(_) => in_flight.settle(Outcome::Answered),
        }
        answer
    }
}

#[async_trait]
impl Source for GuardedSource {
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

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        self.source.document_stores().await
    }

    /// Does not go through the circuit: a check without a call must not close it.
    async fn backends(&self) -> Vec<BackendStatus> {
        self.source.backends().await
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        match self.circuit() {
            (CircuitState::Open, _, pause) => Err(SourceError::CircuitOpen { pause }),
            _ => self.source.health().await,
        }
    }

    async fn schema(&self, context: &CallContext) -> Result<Schema, SourceError> {
        let mut schema = self.own_schema(context).await?;
        self.names.learn(self.name(), &schema);
        self.print_schema(&mut schema);
        Ok(schema)
    }

    async fn stream(&self, context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let own = StreamQuery { connection: self.own(query.connection.as_ref()), ..query.clone() };
        let printer = self.names.printer(self.name(), query.connection.as_ref());
        let mut answer =
            self.call(self.source.stream(context, &own)).await.map_err(|error| printer.error(error))?;
        self.names.settle().await;
        answer.details.iter_mut().for_each(|detail| printer.id(&mut detail.connection_id));
        Ok(answer)
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let own = SearchQuery { connection: self.own(query.connection.as_ref()), ..query.clone() };
        let printer = self.names.printer(self.name(), query.connection.as_ref());
        let page = self.call_for(query.purpose, self.source.search(context, &own)).await;
        let mut page = page.map_err(|error| printer.error(error))?;
        self.names.settle().await;
        page.hits.iter_mut().for_each(|hit| printer.hit(hit));
        Ok(page)
    }

    async fn changes_origin(
        &self,
        context: &CallContext,
        query: &StreamQuery,
    ) -> Result<ChangesOrigin, SourceError> {
        let own = StreamQuery { connection: self.own(query.connection.as_ref()), ..query.clone() };
        // The origin of a named connection is known without a call, so the outcome says nothing about the source.
        if own.connection.is_some() {
            return self.source.changes_origin(context, &own).await;
        }
        self.call(self.source.changes_origin(context, &own)).await
    }

    async fn records(&self, context: &CallContext, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let own = RecordsQuery { connection: self.own(query.connection.as_ref()), ..query.clone() };
        let printer = self.names.printer(self.name(), query.connection.as_ref());
        let page = self.call_for(query.purpose, self.source.records(context, &own)).await;
        let mut page = page.map_err(|error| printer.error(error))?;
        self.names.settle().await;
        page.rows.iter_mut().for_each(|row| printer.change(row));
        Ok(page)
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let own = RecordQuery { address: self.own_address(&query.address), ..query.clone() };
        let printer = self.names.printer(self.name(), query.address.connection.as_ref());
        let mut record =
            self.call(self.source.record(context, &own)).await.map_err(|error| printer.error(error))?;
        self.names.settle().await;
        printer.record(&mut record);
        Ok(record)
    }

    async fn version(
        &self,
        context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        self.call(self.source.version(context, &self.own_address(address))).await
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let own = WindowQuery { address: self.own_address(&query.address), ..query.clone() };
        let printer = self.names.printer(self.name(), query.address.connection.as_ref());
        let mut window =
            self.call(self.source.window(context, &own)).await.map_err(|error| printer.error(error))?;
        self.names.settle().await;
        printer.address(&mut window.address);
        Ok(window)
    }

    async fn aggregate(
        &self,
        context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let own = AggregateQuery { connection: self.own(query.connection.as_ref()), ..query.clone() };
        let printer = self.names.printer(self.name(), query.connection.as_ref());
        let answer = self.call_for(query.purpose, self.source.aggregate(context, &own)).await;
        answer.map_err(|error| printer.error(error))
    }
}

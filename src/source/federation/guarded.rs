//! One source of a federation: with its deadline, its share of questions at a time, and its circuit.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::circuit::{Circuit, CircuitState, Outcome, Pass};
use crate::handle::{RecordAddress, SourceName};
use crate::record::{Record, Schema, Unavailable, Window};
use crate::source::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

/// Questions that one source is asked at a time; more of them wait, within their deadline.
const QUESTIONS_AT_A_TIME: usize = 8;

/// A source that is asked within bounds.
#[derive(Debug)]
pub(super) struct Guarded {
    source: Arc<dyn Source>,
    deadline: Duration,
    circuit: Circuit,
    /// Of its own: silent sources must not take the turns of the others.
    turns: Semaphore,
}

/// A question on its way, whose end decides what it says of the source.
#[derive(Debug)]
struct OnItsWay<'a> {
    pass: Option<Pass<'a>>,
    since: Instant,
    deadline: Duration,
}

impl OnItsWay<'_> {
    fn settle(mut self, outcome: Outcome) {
        if let Some(pass) = self.pass.take() {
            pass.settle(outcome, Instant::now());
        }
    }
}

impl Drop for OnItsWay<'_> {
    /// Called off. Either the source had most of its time by then, or too little to say anything of it.
    fn drop(&mut self) {
        if self.since.elapsed() * 2 > self.deadline
            && let Some(pass) = self.pass.take()
        {
            pass.settle(Outcome::Failed, Instant::now());
        }
    }
}

impl Guarded {
    pub(super) fn new(source: Arc<dyn Source>, deadline: Duration) -> Self {
        let turns = Semaphore::new(QUESTIONS_AT_A_TIME);
        Self { source, deadline, circuit: Circuit::default(), turns }
    }

    /// Returns how long a question to it may take.
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How its circuit is, the failures in a row, and how long it is still left alone.
    pub(super) fn circuit(&self) -> (CircuitState, u32, Duration) {
        self.circuit.state(Instant::now())
    }

    /// Asks one question. The future that is given does nothing before it is polled, so a source that is left
    /// alone is not asked.
    async fn ask<Answer>(
        &self,
        question: impl Future<Output = Result<Answer, SourceError>> + Send,
    ) -> Result<Answer, SourceError> {
        let until = Instant::now() + self.deadline;
        // Waiting for a turn is not the source's failure.
        let Ok(Ok(_turn)) = timeout_at(until.into(), self.turns.acquire()).await else {
            return Err(SourceError::AskInTurn);
        };
        let pass = self.circuit.enter(Instant::now()).map_err(|pause| SourceError::LeaveAlone { pause })?;
        let on_its_way = OnItsWay { pass: Some(pass), since: Instant::now(), deadline: self.deadline };
        let answer = timeout_at(until.into(), question)
            .await
            .unwrap_or(Err(SourceError::RetryAfterTimeout { after: self.deadline }));
        match &answer {
            // Dropped, since most of the time went by in the queue, it decides nothing.
            Err(SourceError::RetryAfterTimeout { .. }) if on_its_way.since.elapsed() * 2 < self.deadline => {}
            Err(SourceError::Wait { retry_after: Some(pause) }) => on_its_way.settle(Outcome::Pause(*pause)),
            Err(error) if error.is_of_the_source() => on_its_way.settle(Outcome::Failed),
            Ok(_) | Err(_) => on_its_way.settle(Outcome::Answered),
        }
        answer
    }
}

#[async_trait]
impl Source for Guarded {
    fn name(&self) -> &SourceName {
        self.source.name()
    }

    fn identity(&self) -> String {
        self.source.identity()
    }

    fn is_narrowed(&self) -> bool {
        self.source.is_narrowed()
    }

    fn seals_changes(&self) -> bool {
        self.source.seals_changes()
    }

    /// Not asked as a question: that nothing was found wrong without asking must not close a circuit.
    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        match self.circuit() {
            (CircuitState::Open, _, pause) => Err(SourceError::LeaveAlone { pause }),
            _ => self.source.health().await,
        }
    }

    async fn schema(&self) -> Result<Schema, SourceError> {
        self.ask(self.source.schema()).await
    }

    async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.ask(self.source.stream(query)).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.ask(self.source.search(query)).await
    }

    async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        self.ask(self.source.records(query)).await
    }

    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        self.ask(self.source.record(query)).await
    }

    async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        self.ask(self.source.version(address)).await
    }

    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        self.ask(self.source.window(query)).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        self.ask(self.source.aggregate(query)).await
    }
}

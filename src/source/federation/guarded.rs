//! One source of a federation: with its deadline, its share of questions at a time, and its circuit.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::circuit::{Circuit, CircuitState, Outcome};
use crate::handle::SourceName;
use crate::record::{Record, Schema, Window};
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
    own: Semaphore,
    /// Shared by all sources of the federation.
    all: Arc<Semaphore>,
}

impl Guarded {
    pub(super) fn new(source: Arc<dyn Source>, deadline: Duration, all: Arc<Semaphore>) -> Self {
        let own = Semaphore::new(QUESTIONS_AT_A_TIME);
        Self { source, deadline, circuit: Circuit::default(), own, all }
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
        let pass = self.circuit.enter(Instant::now()).map_err(|pause| SourceError::LeaveAlone { pause })?;
        let in_turn = async {
            // Semaphores are never closed, so a permit is only a matter of time.
            let _own = self.own.acquire().await;
            let _all = self.all.acquire().await;
            question.await
        };
        let answer = timeout(self.deadline, in_turn)
            .await
            .unwrap_or(Err(SourceError::RetryAfterTimeout { after: self.deadline }));
        let outcome = match &answer {
            Err(SourceError::Wait { retry_after: Some(pause) }) => Outcome::Pause(*pause),
            Err(error) if error.is_of_the_source() => Outcome::Failed,
            Ok(_) | Err(_) => Outcome::Answered,
        };
        pass.settle(outcome, Instant::now());
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

    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        self.ask(self.source.window(query)).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        self.ask(self.source.aggregate(query)).await
    }
}

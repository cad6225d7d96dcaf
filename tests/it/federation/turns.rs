//! The calls that count as failures of a source: those that were cancelled after it had most of its time, and not those
//! that only waited for a free slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{Handle, SourceName};
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_source::federation::{CircuitState, Federation, Member};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BoundSource, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

/// A source that waits before each answer, which is empty.
#[derive(Debug)]
struct SlowSource(SourceName, Duration);

#[async_trait]
impl Source for SlowSource {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn identity(&self) -> String {
        self.0.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        Ok(Schema::default())
    }

    async fn stream(
        &self,
        _context: &CallContext,
        _query: &StreamQuery,
    ) -> Result<StreamAnswer, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn search(&self, _context: &CallContext, _query: &SearchQuery) -> Result<SearchPage, SourceError> {
        sleep(self.1).await;
        Ok(SearchPage::default())
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn record(&self, _context: &CallContext, _query: &RecordQuery) -> Result<Record, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Err(SourceError::InvalidCursor)
    }
}

/// Numbers of schema reads that were started, and that are running.
#[derive(Debug, Clone, Default)]
struct Reads {
    begun: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
}

/// A source that never returns a schema.
#[derive(Debug)]
struct UnansweringSource(SourceName, Reads);

/// Counts a running read until it is dropped.
struct RunningRead(Arc<AtomicUsize>);

impl Drop for RunningRead {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Source for UnansweringSource {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn identity(&self) -> String {
        self.0.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        self.1.begun.fetch_add(1, Ordering::SeqCst);
        self.1.running.fetch_add(1, Ordering::SeqCst);
        let _running = RunningRead(Arc::clone(&self.1.running));
        sleep(Duration::from_secs(600)).await;
        Ok(Schema::default())
    }

    async fn stream(
        &self,
        _context: &CallContext,
        _query: &StreamQuery,
    ) -> Result<StreamAnswer, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn search(&self, _context: &CallContext, _query: &SearchQuery) -> Result<SearchPage, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn record(&self, _context: &CallContext, _query: &RecordQuery) -> Result<Record, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        Err(SourceError::InvalidCursor)
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Err(SourceError::InvalidCursor)
    }
}

fn federation(thinks: Duration, deadline: Duration) -> BoundSource {
    let source: Arc<dyn Source> = Arc::new(SlowSource("slow".parse().unwrap(), thinks));
    Federation::new("sources".parse().unwrap(), vec![Member { source, deadline }]).into()
}

fn state(federation: &BoundSource) -> CircuitState {
    federation.shared().circuits()[0].state
}

#[tokio::test]
async fn waiting_for_a_slot_is_no_failure_of_the_source() {
    let federation = federation(Duration::from_millis(400), Duration::from_secs(2));
    let query = SearchQuery::new("x", 5);
    let answers = join_all((0..80).map(|_| federation.search(&query))).await;
    let waited = answers.iter().filter(|answer| answer.is_err()).count();
    assert!((1..80).contains(&waited), "{waited} of 80");
    assert_eq!(state(&federation), CircuitState::Closed);
    assert!(federation.search(&query).await.is_ok());
}

#[tokio::test]
async fn cancelled_calls_open_the_circuit_of_a_slow_source() {
    let federation = federation(Duration::from_secs(600), Duration::from_millis(400));
    let query = SearchQuery::new("x", 5);
    for _ in 0..3 {
        let _ = timeout(Duration::from_millis(300), federation.search(&query)).await;
    }
    assert_eq!(state(&federation), CircuitState::Open);
    // A call that is cancelled at once says nothing about the source.
    let other = self::federation(Duration::from_secs(600), Duration::from_secs(60));
    for _ in 0..5 {
        let _ = timeout(Duration::from_millis(5), other.search(&query)).await;
    }
    assert_eq!(state(&other), CircuitState::Closed);
}

#[tokio::test]
async fn schema_reads_end_with_the_deadline_of_their_source() {
    const DEADLINE: Duration = Duration::from_millis(400);
    let reads = Reads::default();
    let silent = |name: &str| {
        let source: Arc<dyn Source> = Arc::new(UnansweringSource(name.parse().unwrap(), reads.clone()));
        Member { source, deadline: DEADLINE }
    };
    let federation =
        BoundSource::from(Federation::new("sources".parse().unwrap(), vec![silent("one"), silent("other")]));
    let query = RecordQuery::new("cin_x/things:t1".parse::<Handle>().unwrap().address().clone());
    let answers = join_all((0..2).map(|_| federation.record(&query))).await;
    assert!(answers.iter().all(Result::is_err));
    let begun = reads.begun.load(Ordering::SeqCst);
    sleep(DEADLINE / 4).await;
    assert_eq!(reads.running.load(Ordering::SeqCst), 0);
    sleep(DEADLINE * 4).await;
    assert_eq!(reads.begun.load(Ordering::SeqCst), begun);
}

//! What a source is blamed for: not for the questions that wait for their turn, but for those that were called off
//! after it had most of its time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell::handle::SourceName;
use fetchwell::record::{Record, Schema, Window};
use fetchwell::source::federation::{CircuitState, Federation, Member};
use fetchwell::source::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

/// A source that thinks for a while and finds nothing.
#[derive(Debug)]
struct Thinking(SourceName, Duration);

#[async_trait]
impl Source for Thinking {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn identity(&self) -> String {
        self.0.to_string()
    }

    async fn schema(&self) -> Result<Schema, SourceError> {
        Ok(Schema::default())
    }

    async fn stream(&self, _query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        Err(SourceError::RestartSearch)
    }

    async fn search(&self, _query: &SearchQuery) -> Result<SearchPage, SourceError> {
        sleep(self.1).await;
        Ok(SearchPage::default())
    }

    async fn records(&self, _query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        Err(SourceError::RestartSearch)
    }

    async fn record(&self, _query: &RecordQuery) -> Result<Record, SourceError> {
        Err(SourceError::RestartSearch)
    }

    async fn window(&self, _query: &WindowQuery) -> Result<Window, SourceError> {
        Err(SourceError::RestartSearch)
    }

    async fn aggregate(&self, _query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        Err(SourceError::RestartSearch)
    }
}

fn federation(thinks: Duration, deadline: Duration) -> Federation {
    let source: Arc<dyn Source> = Arc::new(Thinking("slow".parse().unwrap(), thinks));
    Federation::new("sources".parse().unwrap(), vec![Member { source, deadline }])
}

fn state(federation: &Federation) -> CircuitState {
    federation.circuits()[0].state
}

#[tokio::test]
async fn waiting_for_a_turn_is_not_the_sources_failure() {
    let federation = federation(Duration::from_millis(400), Duration::from_secs(2));
    let query = SearchQuery::of("x", 5);
    let answers = join_all((0..80).map(|_| federation.search(&query))).await;
    let waited = answers.iter().filter(|answer| answer.is_err()).count();
    assert!((1..80).contains(&waited), "{waited} of 80");
    assert_eq!(state(&federation), CircuitState::Closed);
    assert!(federation.search(&query).await.is_ok());
}

#[tokio::test]
async fn a_source_that_clients_give_up_on_is_left_alone() {
    let federation = federation(Duration::from_secs(600), Duration::from_millis(400));
    let query = SearchQuery::of("x", 5);
    for _ in 0..3 {
        let _ = timeout(Duration::from_millis(300), federation.search(&query)).await;
    }
    assert_eq!(state(&federation), CircuitState::Open);
    // One that is called off at once says nothing.
    let other = self::federation(Duration::from_secs(600), Duration::from_secs(60));
    for _ in 0..5 {
        let _ = timeout(Duration::from_millis(5), other.search(&query)).await;
    }
    assert_eq!(state(&other), CircuitState::Closed);
}

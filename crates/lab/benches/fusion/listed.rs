//! A source that answers each search with a fixed list, as a server does that only lists.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::{ConnectionSchema, Hit, Record, Schema, Window};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchPosition,
    SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};

/// Hits of each search, by its words.
pub(crate) type Lists = HashMap<String, Vec<Hit>>;

/// A source of fixed lists. Its positions are offsets.
#[derive(Debug)]
pub(crate) struct ListedSource {
    pub(crate) name: SourceName,
    pub(crate) lists: Arc<Lists>,
    /// False for hits without the share of the query's words.
    pub(crate) has_coverage: bool,
}

#[async_trait]
impl Source for ListedSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.name.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        let connection = ConnectionSchema {
            connection_id: self.name.as_str().parse().unwrap(),
            source: None,
            display_name: None,
            connector_key: None,
            streams: Vec::new(),
            routes: Vec::new(),
        };
        Ok(Schema { connections: vec![connection], ..Schema::default() })
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let hits = &self.lists[&query.text.words];
        let start = query.position.as_ref().map_or(0, |position| position.0.parse().unwrap());
        let end = hits.len().min(start + query.limit);
        let next = (end < hits.len()).then(|| SearchPosition(end.to_string()));
        let hit = |hit: &Hit| Hit { coverage: hit.coverage.filter(|_| self.has_coverage), ..hit.clone() };
        let hits = hits[start..end].iter().map(hit).collect();
        Ok(SearchPage { hits, next, ..SearchPage::default() })
    }

    async fn stream(&self, _: &CallContext, _: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        unimplemented!("the measurement only searches")
    }

    async fn records(&self, _: &CallContext, _: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        unimplemented!("the measurement only searches")
    }

    async fn record(&self, _: &CallContext, _: &RecordQuery) -> Result<Record, SourceError> {
        unimplemented!("the measurement only searches")
    }

    async fn window(&self, _: &CallContext, _: &WindowQuery) -> Result<Window, SourceError> {
        unimplemented!("the measurement only searches")
    }

    async fn aggregate(&self, _: &CallContext, _: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        unimplemented!("the measurement only searches")
    }
}

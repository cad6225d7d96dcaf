//! A server in this process, with limits short enough for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_http::{CallerCheck, Limits, RateLimiter, Site, Tls, bind, serve};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{SharedToolbox, Toolbox};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A server that runs until it is dropped.
pub(crate) struct OwnServer {
    pub(crate) address: String,
    pub(crate) stop: CancellationToken,
    pub(crate) source: Arc<Gate>,
    runtime: Runtime,
}

/// A source with searches that wait for `go`, and a panic when asked for a stream.
#[derive(Debug)]
pub(crate) struct Gate {
    name: SourceName,
    /// Notified by each search.
    pub(crate) came: Notify,
    /// Lets one search continue.
    pub(crate) go: Notify,
}

impl OwnServer {
    pub(crate) fn start(limits: Limits, tls: Option<Tls>, call_deadline: Duration) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let source = Arc::new(Gate { name: "gate".parse().unwrap(), came: Notify::new(), go: Notify::new() });
        let toolbox = Toolbox::new(Arc::clone(&source) as Arc<dyn Source>, call_deadline).unwrap();
        let live = SharedToolbox::new(toolbox);
        let listener = runtime.block_on(bind("127.0.0.1:0".parse().unwrap(), CallerCheck::ByNobody)).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let site = Site::of_this_machine(live, Telemetry::default(), RateLimiter::default());
        runtime.spawn(serve(listener, tls, Site { limits, ..site }, stop.clone()));
        Self { address: address.to_string(), stop, source, runtime }
    }

    /// Waits until the source has received a search.
    pub(crate) fn wait_for_search(&self) {
        self.runtime.block_on(self.source.came.notified());
    }
}

#[async_trait]
impl Source for Gate {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.name.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        Ok(Schema::default())
    }

    async fn stream(
        &self,
        _context: &CallContext,
        _query: &StreamQuery,
    ) -> Result<StreamAnswer, SourceError> {
        panic!("a defect")
    }

    async fn search(&self, _context: &CallContext, _query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.came.notify_one();
        self.go.notified().await;
        Ok(SearchPage::default())
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        panic!("a defect")
    }

    async fn record(&self, _context: &CallContext, _query: &RecordQuery) -> Result<Record, SourceError> {
        panic!("a defect")
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        panic!("a defect")
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        panic!("a defect")
    }
}

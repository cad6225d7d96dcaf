//! The reads of a source.

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_core::saturate::saturated;
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendKind, BackendStatus, QueryFault, RecordQuery, RecordsPage,
    RecordsQuery, SearchPage, SearchQuery, SessionStatus, Source, SourceError, StreamAnswer, StreamQuery,
    WindowQuery,
};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::fault::Problem;
use crate::server::McpServer;
use crate::session::SessionReport;
use crate::{fetch, search};

#[async_trait]
impl Source for McpServer {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        let SessionReport { state, server, latency, problem } = self.sessions.status();
        // The words of a server are not shown to operators.
        let problem = problem.map(|problem| match problem {
            Problem::Refused(_) => "the server reports an error of its own".to_owned(),
            other => match self.error(other) {
                SourceError::Reauthorize { problem, remedy } => format!("{problem}; {remedy}"),
                error => error.to_string(),
            },
        });
        let latency_ms = latency.map(|latency| saturated::<u64>(latency.as_millis()));
        let session = Some(SessionStatus { state, server, latency_ms, problem });
        vec![BackendStatus { session, ..BackendStatus::without_pool(&self.name, BackendKind::McpServer) }]
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        Ok(self.address.schema())
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        match unknown_place(&self.address.schema(), query.connection.as_ref(), Some(&query.stream)) {
            Some(error) => Err(error),
            None => Ok(StreamAnswer::from(vec![self.address.detail()])),
        }
    }

    async fn search(&self, context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        search::search(self, query, self.limits(context.hops())).await
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        Err(self.not_supported("list records"))
    }

    async fn record(&self, context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        fetch::record(self, query, self.limits(context.hops())).await
    }

    async fn version(
        &self,
        _context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        Ok(fetch::version(self, address))
    }

    async fn window(&self, context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let record = self.record(context, &RecordQuery::new(query.address.clone())).await?;
        let fault = |fault, problem: String, hint: &str| SourceError::InvalidQuery {
            fault,
            problem,
            hint: hint.to_owned(),
        };
        let known = || record.data.keys().cloned().collect::<Vec<_>>().join(", ");
        let text = match record.data.get(&query.field) {
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                let problem = format!("the field `{}` is no text", query.field);
                return Err(fault(QueryFault::FieldNotText, problem, "Read it with `fetch`."));
            }
            None => {
                let problem = format!("the record has no field `{}`; it has {}", query.field, known());
                return Err(fault(QueryFault::FieldNotFound, problem, "Choose one of these fields."));
            }
        };
        let (query, address) = (query.clone(), record.address);
        let window = spawn_blocking(move || query.window_of(address, &text)).await;
        window.ok().flatten().ok_or_else(|| {
            let problem = "the field does not contain the text".to_owned();
            fault(QueryFault::QueryNotFound, problem, "Read the field from its beginning with `offset`.")
        })
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Err(self.not_supported("count or add up records"))
    }
}

//! A source that answers from replies in memory, for measurements.

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::{Record, Schema, Window};
use fetchwell_pdpp::position::RemoteInput;
use fetchwell_pdpp::provider::ProviderUrl;
use fetchwell_pdpp::record_path::add_record_url;
use fetchwell_pdpp::records::input_page;
use fetchwell_pdpp::wire;
use fetchwell_source::merge::{MergePosition, MergedList};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, QueryFault, RecordQuery, RecordsPage, RecordsQuery, SearchPage,
    SearchQuery, Source, SourceError, Start, StreamAnswer, StreamQuery, WindowQuery,
};
use serde_json::json;
use url::Url;

/// Source that answers each call with a recorded reply, parsed exactly like one from the network.
#[derive(Debug, Clone)]
pub struct RecordedSource {
    /// Name of the source in errors.
    pub name: SourceName,
    /// Body of every `GET /v1/search`.
    pub search: String,
    /// Body of every record.
    pub record: String,
    /// Body of every list of records.
    pub records: String,
    /// Body of every schema.
    pub schema: String,
}

#[async_trait]
impl Source for RecordedSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.name.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        wire::schema(self.schema.as_bytes(), None)
    }

    async fn search(&self, _context: &CallContext, _query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let mut page = wire::search_page(self.search.as_bytes())?;
        let provider = ProviderUrl::parse_insecure("https://records.example.com");
        let provider = provider.map_err(|error| SourceError::Unreachable { problem: error.to_string() })?;
        page.hits.iter_mut().for_each(|hit| add_record_url(hit, &provider));
        Ok(page)
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let url = Url::parse("https://records.example.com/v1/streams/s/records/r");
        let url = url.map_err(|error| SourceError::Unreachable { problem: error.to_string() })?;
        wire::record(self.record.as_bytes(), &query.address, url)
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        wire::stream(self.schema.as_bytes(), &query.stream)?.map(StreamAnswer::from).ok_or_else(not_supported)
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let mut list = match &query.start {
            Start::First | Start::Changes(_) => {
                let input = RemoteInput { connection: query.connection.clone(), ..RemoteInput::default() };
                MergedList::start([input], query.direction)
            }
            Start::After(position) => MergedList::resume(MergePosition::open(position)?, query.direction),
        };
        let records = wire::records(self.records.as_bytes(), &query.stream, query.connection.as_ref())?;
        list.push_page(0, input_page(records, None));
        list.take(query.limit);
        Ok(list.page())
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        Err(not_supported())
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Err(not_supported())
    }
}

fn not_supported() -> SourceError {
    SourceError::InvalidQuery {
        fault: QueryFault::NotSupported,
        problem: "no such reply was recorded".to_owned(),
        hint: "Ask for the schema, a search, a list of records or a record.".to_owned(),
    }
}

/// Returns a large search reply: 200 hits of 500 characters, regardless of the limit.
#[must_use]
pub fn fat_search_reply() -> String {
    let hit = |number: usize| {
        json!({
            "id": format!("m{number}"),
            "stream": "mail",
            "title": format!("Subject {number}"),
            "snippet": { "text": "x".repeat(500) },
            "connection_id": "conn_1",
            "score": 0.9,
        })
    };
    json!({ "results": (0..200).map(hit).collect::<Vec<_>>(), "has_more": true }).to_string()
}

/// Returns a large list of records: 500 of 1,500 characters each, without `data`, regardless of the limit.
#[must_use]
pub fn fat_records_reply() -> String {
    let record = |number: usize| {
        json!({
            "object": "record",
            "id": format!("m{number}"),
            "subject": format!("Subject {number}"),
            "text": "x".repeat(1_500),
            "connection_id": "conn_1",
            "channel_id": "C-noisy",
            "ts": format!("1710000000.{number:06}"),
            "metadata": { "replicated": "x".repeat(200) },
        })
    };
    json!({ "data": (0..500).map(record).collect::<Vec<_>>(), "has_more": true }).to_string()
}

/// Returns a compact schema of one connection with `streams` streams of `fields` fields each.
#[must_use]
pub fn wide_schema_reply(streams: usize, fields: usize) -> String {
    let field = |number: usize| {
        (format!("field_number_{number}"), json!("t=string,eq,r=gte|lt,lex,a=count_distinct"))
    };
    let fields: serde_json::Map<String, serde_json::Value> = (0..fields).map(field).collect();
    let stream =
        |number: usize| json!({ "name": format!("stream_number_{number}"), "field_capabilities": fields });
    json!({ "connectors": [{
        "connector_key": "acme-mail",
        "granted_connections": [{ "connection_id": "conn_1", "display_name": "Work mail" }],
        "streams": (0..streams).map(stream).collect::<Vec<_>>(),
    }] })
    .to_string()
}

/// Returns a record reply with one long text.
#[must_use]
pub fn long_record_reply(text: &str) -> String {
    json!({
        "object": "record",
        "id": "m1",
        "stream": "mail",
        "data": { "subject": "Subject 1", "text": text },
        "emitted_at": "2026-04-01T00:00:00.000Z",
        "connection_id": "conn_1",
        "display_name": "Work mail",
        "connector_key": "https://registry.example/connectors/acme-mail",
    })
    .to_string()
}

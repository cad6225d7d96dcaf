//! A source behind a `streams` allow-list: over a source with fixed answers that returns other streams too, and over a
//! real store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName, StreamName};
use fetchwell_core::record::{
    ConnectionSchema, ExpandedRelation, Hit, HitId, HttpRoute, Record, Relation, RelationKind, Schema,
    SortValue, StreamDetail, StreamSchema, Window,
};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, AllowedStreams, BoundSource, Change, ConnectionChoice, Count, Expansion,
    Filter, Metric, QueryFault, RecordQuery, RecordsPage, RecordsPosition, RecordsQuery, SearchPage,
    SearchPosition, SearchQuery, Source, SourceError, StreamAnswer, StreamQuery, WindowQuery, WindowStart,
};
use fetchwell_sqlite::SqliteStore;
use serde_json::json;

use crate::support::demo_store;

/// Connections `both` (messages, files, secrets) and `hidden` (secrets).
#[derive(Debug, Default)]
struct Talkative {
    /// The streams of each search.
    searched: Mutex<Vec<String>>,
    schemas: Mutex<usize>,
}

fn name(text: &str) -> StreamName {
    text.parse().unwrap()
}

fn address(stream: &str, record: &str) -> RecordAddress {
    RecordAddress { connection: "both".parse().ok(), stream: name(stream), record: record.parse().unwrap() }
}

fn record(stream: &str, key: &str) -> Record {
    Record::new(address(stream, key), [("x".to_owned(), json!(1))].into_iter().collect())
}

fn route(stream: &str) -> HttpRoute {
    HttpRoute::new(&format!("/api/v1/{stream}"), name(stream), None).unwrap()
}

impl Talkative {
    fn unknown(stream: &StreamName) -> SourceError {
        SourceError::InvalidQuery {
            fault: QueryFault::UnknownStream,
            problem: format!("there is no stream `{stream}`"),
            hint: "Existing streams: files, messages, secrets.".to_owned(),
        }
    }
}

#[async_trait]
impl Source for Talkative {
    fn name(&self) -> &SourceName {
        static NAME: std::sync::OnceLock<SourceName> = std::sync::OnceLock::new();
        NAME.get_or_init(|| "talkative".parse().unwrap())
    }

    fn identity(&self) -> String {
        "talkative".to_owned()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        *self.schemas.lock().unwrap() += 1;
        let connection = |id: &str, streams: &[&str]| ConnectionSchema {
            connection_id: id.parse().unwrap(),
            source: None,
            display_name: None,
            connector_key: None,
            streams: streams.iter().map(|s| StreamSchema { name: name(s), record_count: None }).collect(),
            routes: streams.iter().map(|s| route(s)).collect(),
        };
        let connections =
            vec![connection("both", &["messages", "files", "secrets"]), connection("hidden", &["secrets"])];
        Ok(Schema { connections, ..Schema::default() })
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        if query.stream.as_str() != "messages" {
            return Err(Self::unknown(&query.stream));
        }
        let relation = |relation: &str, stream: &str| Relation {
            name: relation.to_owned(),
            stream: name(stream),
            kind: RelationKind::HasMany,
            foreign_key: "m".to_owned(),
            default_limit: None,
            max_limit: None,
        };
        let detail = StreamDetail {
            name: query.stream.clone(),
            connection_id: "both".parse().unwrap(),
            display_name: None,
            connector_key: None,
            record_count: None,
            primary_key: Vec::new(),
            cursor_field: None,
            fields: Vec::new(),
            views: Vec::new(),
            relations: vec![relation("attachments", "files"), relation("keys", "secrets")],
            declaration: Some(Arc::new(
                [("relationships".to_owned(), json!("secrets"))].into_iter().collect(),
            )),
        };
        Ok(vec![detail].into())
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let streams: Vec<&str> = query.streams.iter().map(StreamName::as_str).collect();
        self.searched.lock().unwrap().push(streams.join(" "));
        let hit = |id| Hit::new(id, "T".to_owned());
        let hits = vec![
            hit(HitId::Record(address("messages", "m1"))),
            hit(HitId::Record(address("secrets", "s1"))),
            hit(HitId::Opaque("secret 1".to_owned())),
            hit(HitId::Nameless),
        ];
        let next = Some(SearchPosition("2".to_owned()));
        Ok(SearchPage { hits, next, count: Some(Count::exact(4)), ..SearchPage::default() })
    }

    async fn records(
        &self,
        _context: &CallContext,
        _query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let gone = Change::Deleted { address: address("secrets", "s2"), deleted_at: None };
        let rows = vec![
            gone,
            Change::Present(Box::new(record("secrets", "s1"))),
            Change::Present(Box::new(record("messages", "m1"))),
        ];
        let next = Some(RecordsPosition("2".to_owned()));
        let places = ["a", "b", "c"].map(|text| SortValue::Text(text.to_owned())).to_vec();
        Ok(RecordsPage { rows, places, next, ..RecordsPage::default() })
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        match query.address.record.as_str() {
            "elsewhere" => Ok(record("secrets", "s1")),
            "no connection" => Err(SourceError::ConnectionNotFound {
                asked: "x".to_owned(),
                choices: vec![ConnectionChoice {
                    connection_id: "hidden".parse().unwrap(),
                    display_name: None,
                }],
            }),
            _ => {
                let related = vec![record("files", "f1"), record("secrets", "s1")];
                let expanded = ExpandedRelation {
                    relation: "attachments".to_owned(),
                    many: true,
                    records: related,
                    has_more: false,
                };
                Ok(Record { expanded: vec![expanded], ..record("messages", "m1") })
            }
        }
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        let address = address("secrets", "s1");
        Ok(Window { address, text: "x".to_owned(), start_chars: 0, total_chars: 1, found_chars: None })
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        Ok(AggregateAnswer::default())
    }
}

fn shown(streams: &[&str]) -> (Arc<Talkative>, BoundSource) {
    let inner = Arc::new(Talkative::default());
    let allowed = streams.iter().map(|stream| name(stream)).collect();
    (Arc::clone(&inner), AllowedStreams::new(inner, allowed).into())
}

/// Returns the error of a refused read, as a client sees it.
#[track_caller]
fn refusal<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> String {
    match answer.unwrap_err() {
        SourceError::InvalidQuery { fault, problem, hint } => format!("{}: {problem}. {hint}", fault.code()),
        SourceError::ConnectionNotFound { asked, choices } => {
            let ids: Vec<&str> = choices.iter().map(|choice| choice.connection_id.as_str()).collect();
            format!("no connection {asked}, there are {}", ids.join(" "))
        }
        other => other.to_string(),
    }
}

fn aggregate(stream: &str) -> AggregateQuery {
    AggregateQuery {
        stream: name(stream),
        connection: None,
        metric: Metric::Count,
        field: None,
        grouping: None,
        second_field: None,
        limit: 1,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    }
}

fn window(stream: &str) -> WindowQuery {
    let address = address(stream, "s1");
    WindowQuery { address, field: "x".to_owned(), start: WindowStart::Offset(0), limit_chars: 1 }
}

#[tokio::test]
async fn only_listed_streams_are_shown() {
    let (_, source) = shown(&["messages", "files", "none"]);
    let schema = source.schema().await.unwrap();
    let [both] = schema.connections.as_slice() else { panic!("{schema:?}") };
    let streams: Vec<&str> = both.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!((both.connection_id.as_str(), streams), ("both", vec!["messages", "files"]));
    assert_eq!(both.routes, [route("messages"), route("files")]);
    assert_eq!(source.identity(), r#"talkative streams ["files", "messages", "none"]"#);
    let query = StreamQuery { stream: name("messages"), connection: None };
    let detail = source.stream(&query).await.unwrap().details.remove(0);
    let relations: Vec<&str> = detail.relations.iter().map(|relation| relation.name.as_str()).collect();
    assert_eq!((relations, detail.declaration), (vec!["attachments"], None));
}

#[tokio::test]
async fn a_hidden_stream_is_refused_as_one_that_does_not_exist() {
    let (_, source) = shown(&["messages", "files", "none"]);
    let unknown = |stream: &str| {
        format!("stream_not_declared: there is no stream `{stream}`. Existing streams: files, messages.")
    };
    // A stream that is listed and does not exist, one that exists and is not listed, and one that is neither.
    for stream in ["none", "secrets", "nowhere"] {
        let query = StreamQuery { stream: name(stream), connection: None };
        assert_eq!(refusal(source.stream(&query).await), unknown(stream));
    }
    for stream in ["secrets", "nowhere"] {
        assert_eq!(refusal(source.records(&RecordsQuery::new(name(stream), 1)).await), unknown(stream));
        assert_eq!(refusal(source.aggregate(&aggregate(stream)).await), unknown(stream));
        let in_both = unknown(stream).replace("there is no stream", "connection `both` has no stream");
        assert_eq!(refusal(source.record(&RecordQuery::new(address(stream, "s1"))).await), in_both);
        assert_eq!(refusal(source.window(&window(stream)).await), in_both);
        let query = SearchQuery { streams: vec![name("messages"), name(stream)], ..SearchQuery::new("x", 9) };
        assert_eq!(refusal(source.search(&query).await), unknown(stream));
    }
    // A connection with hidden streams only is refused in the same way.
    let query = SearchQuery { connection: "hidden".parse().ok(), ..SearchQuery::new("x", 9) };
    assert_eq!(refusal(source.search(&query).await), "no connection hidden, there are both");
    let refused = source.record(&RecordQuery::new(address("messages", "no connection"))).await;
    assert!(!refusal(refused).contains("hidden"));
}

#[tokio::test]
async fn a_search_asks_only_for_streams_that_may_be_seen() {
    let (inner, source) = shown(&["messages", "files", "none"]);
    for streams in [vec![], vec![name("files")], vec![]] {
        let page = source.search(&SearchQuery { streams, ..SearchQuery::new("x", 9) }).await.unwrap();
        // Hits of streams that are not listed, and hits without a stream, are dropped; so is the total.
        let ids: Vec<&HitId> = page.hits.iter().map(|hit| &hit.id).collect();
        assert_eq!(ids, [&HitId::Record(address("messages", "m1"))]);
        assert_eq!((page.count, page.next), (None, Some(SearchPosition("2".to_owned()))));
    }
    assert_eq!(*inner.searched.lock().unwrap(), ["files messages", "files", "files messages"]);
    assert_eq!(*inner.schemas.lock().unwrap(), 1);
    // A list without an existing stream finds nothing and sends no request.
    let (inner, source) = shown(&["none"]);
    assert_eq!(source.search(&SearchQuery::new("x", 9)).await.unwrap(), SearchPage::default());
    assert!(inner.searched.lock().unwrap().is_empty());
}

#[tokio::test]
async fn rows_and_relations_of_other_streams_are_dropped() {
    let (_, source) = shown(&["messages", "files"]);
    let page = source.records(&RecordsQuery::new(name("messages"), 9)).await.unwrap();
    assert_eq!(page.rows, [Change::Present(Box::new(record("messages", "m1")))]);
    assert_eq!(page.places, [SortValue::Text("c".to_owned())]);
    let read = source.record(&RecordQuery::new(address("messages", "m1"))).await.unwrap();
    assert_eq!(read.expanded[0].records, [record("files", "f1")]);
    let refused = source.record(&RecordQuery::new(address("messages", "elsewhere"))).await;
    assert_eq!(refusal(refused), "there is no record `elsewhere` in stream `messages`");
    assert!(refusal(source.window(&window("messages")).await).starts_with("there is no record"));
}

#[tokio::test]
async fn relations_to_hidden_streams_are_refused_as_ones_that_do_not_exist() {
    let (_, source) = shown(&["messages", "files"]);
    let expand = |relation: &str| vec![Expansion { relation: relation.to_owned(), limit: None }];
    for relation in ["keys", "nowhere"] {
        let expect = format!(
            "invalid_expand: stream `messages` has no relation `{relation}`. Its relations are: attachments."
        );
        let query = RecordQuery { expand: expand(relation), ..RecordQuery::new(address("messages", "m1")) };
        assert_eq!(refusal(source.record(&query).await), expect);
        let query = RecordsQuery { expand: expand(relation), ..RecordsQuery::new(name("messages"), 1) };
        assert_eq!(refusal(source.records(&query).await), expect);
    }
    let query = RecordQuery { expand: expand("attachments"), ..RecordQuery::new(address("messages", "m1")) };
    assert!(source.record(&query).await.is_ok());
}

/// Returns the streams of all connections.
fn streams(schema: &Schema) -> Vec<&str> {
    schema.connections.iter().flat_map(|of| &of.streams).map(|stream| stream.name.as_str()).collect()
}

#[tokio::test]
async fn only_listed_streams_of_a_store_are_shown() {
    let (_folder, path) = demo_store();
    let store = SqliteStore::open("demo".parse().unwrap(), &path).unwrap();
    let all = store.schema(&CallContext::default()).await.unwrap();
    assert!(streams(&all).contains(&"files"), "{all:?}");
    // `tasks` does not exist in the store, which would refuse a search in it.
    let source =
        BoundSource::from(AllowedStreams::new(Arc::new(store), vec![name("messages"), name("tasks")]));
    assert_eq!(streams(&source.schema().await.unwrap()), ["messages", "messages"]);
    let found = source.search(&SearchQuery::new("invoice", 100)).await.unwrap();
    assert!(!found.hits.is_empty());
    for hit in &found.hits {
        assert!(
            matches!(&hit.id, HitId::Record(address) if address.stream.as_str() == "messages"),
            "{hit:?}"
        );
    }
    for connection in ["cin_work", "cin_home"] {
        let query = SearchQuery { connection: connection.parse().ok(), ..SearchQuery::new("invoice", 100) };
        assert!(source.search(&query).await.is_ok());
    }
    let refused = refusal(source.records(&RecordsQuery::new(name("files"), 1)).await);
    assert_eq!(refused, "stream_not_declared: there is no stream `files`. Existing streams: messages.");
    assert_eq!(
        refused.replace("files", "tasks"),
        refusal(source.records(&RecordsQuery::new(name("tasks"), 1)).await)
    );
}

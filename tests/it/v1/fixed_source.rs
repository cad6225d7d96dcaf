//! The record-server contract over a source with fixed answers: recorded answers come out unchanged, every failure has
//! its status, and every response matches `/openapi.json`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{
    Capability, ExpandedRelation, FieldDetail, Record, Relation, RelationKind, Scalar, Schema, StreamDetail,
    View, Window,
};
use fetchwell_http::{CallerCheck, RateLimiter, Site, bind, serve};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, Change, ChangesToken, ConnectionChoice, Count, Group, ProtocolFault,
    QueryFault, RecordQuery, RecordsPage, RecordsPosition, RecordsQuery, Refusal, SearchPage, SearchQuery,
    Source, SourceError, StreamAnswer, StreamQuery, WindowQuery,
};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{SharedToolbox, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Answer, fixture, get};

type LastQuery = Arc<Mutex<String>>;
type AnswerFn<T> = Box<dyn Fn() -> Result<T, SourceError> + Send + Sync>;

/// A source with fixed answers that remembers the last query.
struct FixedSource {
    name: SourceName,
    asked: LastQuery,
    schema: AnswerFn<Schema>,
    stream: AnswerFn<Vec<StreamDetail>>,
    records: AnswerFn<RecordsPage>,
    record: AnswerFn<Record>,
    window: AnswerFn<Window>,
    aggregate: AnswerFn<AggregateAnswer>,
}

impl std::fmt::Debug for FixedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Canned")
    }
}

impl FixedSource {
    fn new() -> Self {
        Self {
            name: "canned".parse().unwrap(),
            asked: LastQuery::default(),
            schema: Box::new(|| Ok(Schema::default())),
            stream: Box::new(|| panic!("a defect")),
            records: Box::new(|| Ok(RecordsPage::default())),
            record: Box::new(|| panic!("a defect")),
            window: Box::new(|| panic!("a defect")),
            aggregate: Box::new(|| Ok(AggregateAnswer::default())),
        }
    }

    fn note(&self, question: &dyn std::fmt::Debug) {
        *self.asked.lock().unwrap() = format!("{question:?}");
    }
}

#[async_trait]
impl Source for FixedSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.name.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        (self.schema)()
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        self.note(query);
        (self.stream)().map(StreamAnswer::from)
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        self.note(query);
        if query.text.words == "slow" {
            std::future::pending::<()>().await;
        }
        Ok(SearchPage::default())
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        self.note(query);
        (self.records)()
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        self.note(query);
        (self.record)()
    }

    async fn window(&self, _context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        self.note(query);
        (self.window)()
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        self.note(query);
        (self.aggregate)()
    }
}

/// A source served on a socket of this process.
struct ServedSource {
    address: String,
    asked: LastQuery,
    /// The runtime that serves until it is dropped.
    _runtime: tokio::runtime::Runtime,
}

fn serve_source(source: FixedSource) -> ServedSource {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let asked = Arc::clone(&source.asked);
    let source: Arc<dyn Source> = Arc::new(source);
    let live = SharedToolbox::new(Toolbox::new(source, Duration::from_millis(300)).unwrap());
    let listener = runtime.block_on(bind("127.0.0.1:0".parse().unwrap(), CallerCheck::ByNobody)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    runtime.spawn(serve(
        listener,
        None,
        Site::of_this_machine(live, Telemetry::default(), RateLimiter::default()),
        CancellationToken::new(),
    ));
    ServedSource { address, asked, _runtime: runtime }
}

impl ServedSource {
    /// Returns a successful response after a check against `/openapi.json`.
    #[track_caller]
    fn ok(&self, route: &str, target: &str) -> Value {
        let answer = get(&self.address, target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text);
        let document = get(&self.address, "/openapi.json").json();
        let described =
            &document["paths"][route]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let mut schema = described.clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let body = answer.json();
        if let Err(error) = validator.validate(&body) {
            panic!("{target}: {error} at {}", error.instance_path());
        }
        body
    }

    #[track_caller]
    fn check_asked(&self, target: &str, parts: &[&str]) {
        let answer = get(&self.address, target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.text);
        let asked = self.asked.lock().unwrap().clone();
        for part in parts {
            assert!(asked.contains(part), "{target}: no {part} in {asked}");
        }
    }

    #[track_caller]
    fn check_refused(&self, target: &str, status: u16, code: &str, param: impl Into<Value>) -> Answer {
        let answer = get(&self.address, target);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (status, &json!(code), &param.into()),
            "{target}"
        );
        answer
    }
}

fn recorded(name: &str) -> (String, Value) {
    let recorded: Value = serde_json::from_str(&fixture(&format!("record-server/{name}.json"))).unwrap();
    let target = recorded["request"].as_str().unwrap().strip_prefix("GET ").unwrap().to_owned();
    (target, recorded["response"].clone())
}

fn address(connection: &str, stream: &str, record: &str) -> RecordAddress {
    RecordAddress {
        connection: Some(connection.parse().unwrap()),
        stream: stream.parse().unwrap(),
        record: record.parse().unwrap(),
    }
}

fn record_of(row: &Value) -> Record {
    let text = |name: &str| row[name].as_str().map(str::to_owned);
    let address = address(&text("connection_id").unwrap(), &text("stream").unwrap(), &text("id").unwrap());
    Record {
        emitted_at: text("emitted_at"),
        connector_key: text("connector_key"),
        display_name: text("display_name"),
        ..Record::new(address, row["data"].as_object().unwrap().clone())
    }
}

const RECORDS: &str = "/v1/streams/{stream}/records";
const RECORD: &str = "/v1/streams/{stream}/records/{id}";
const WINDOW: &str = "/v1/streams/{stream}/records/{id}/field-window";
const AGGREGATE: &str = "/v1/streams/{stream}/aggregate";

#[test]
fn recorded_pages_of_records_come_out_unchanged() {
    for name in ["records-conn-limit2", "records-conn-cursor-page2"] {
        let (target, expect) = recorded(name);
        let page = expect.clone();
        let source = FixedSource {
            records: Box::new(move || {
                let rows = page["data"].as_array().unwrap().iter().map(record_of);
                Ok(RecordsPage {
                    rows: rows.map(|record| Change::Present(Box::new(record))).collect(),
                    next: page["next_cursor"].as_str().map(|next| RecordsPosition(next.to_owned())),
                    has_more: page["has_more"] == true,
                    ..RecordsPage::default()
                })
            }),
            ..FixedSource::new()
        };
        assert_eq!(serve_source(source).ok(RECORDS, &target), expect, "{name}");
    }
}

#[test]
fn a_recorded_record_comes_out_unchanged() {
    let (target, expect) = recorded("record-connection");
    let row = expect.clone();
    let source = FixedSource { record: Box::new(move || Ok(record_of(&row))), ..FixedSource::new() };
    assert_eq!(serve_source(source).ok(RECORD, &target), expect);
}

#[test]
fn recorded_windows_come_out_unchanged() {
    for name in ["fw-offset", "fw-beyond", "fw-q", "fw-limit-huge"] {
        let (target, mut expect) = recorded(name);
        let window = expect["window"].clone();
        let number = |name: &str| usize::try_from(window[name].as_u64()?).ok();
        let answer = Window {
            address: address("cin_work", "messages", "shared-1"),
            text: window["text"].as_str().unwrap().to_owned(),
            start_chars: number("start_chars").unwrap(),
            total_chars: number("total_chars").unwrap(),
            found_chars: number("match_start_chars").map(|start| start..number("match_end_chars").unwrap()),
        };
        let source = FixedSource { window: Box::new(move || Ok(answer.clone())), ..FixedSource::new() };
        let mut sent = serve_source(source).ok(WINDOW, &target);
        // fetchwell has its own texts of warnings.
        for body in [&mut expect, &mut sent] {
            for warning in body["meta"]["warnings"].as_array_mut().unwrap() {
                *warning = json!({ "code": warning["code"] });
            }
        }
        assert_eq!(sent, expect, "{name}");
    }
}

#[test]
fn recorded_aggregates_come_out_unchanged() {
    for name in ["agg-count", "agg-sum", "agg-group-by"] {
        let (target, expect) = recorded(name);
        let scalar = |value: &Value| serde_json::from_value::<Option<Scalar>>(value.clone()).unwrap();
        let group = |group: &Value| Group {
            key: scalar(&group["key"]),
            value: scalar(&group["count"]),
            ..Group::default()
        };
        let answer = AggregateAnswer {
            value: scalar(&expect["value"]),
            groups: expect["groups"].as_array().map(|groups| groups.iter().map(group).collect()),
            other_count: expect["other_count"].as_u64(),
            filtered_count: expect["filtered_record_count"].as_u64(),
            ..AggregateAnswer::default()
        };
        let source = FixedSource { aggregate: Box::new(move || Ok(answer.clone())), ..FixedSource::new() };
        assert_eq!(serve_source(source).ok(AGGREGATE, &target), expect, "{name}");
    }
}

#[test]
fn a_window_counts_code_points_and_names_the_next_offset() {
    let window = Window {
        address: address("cin_work", "messages", "m2"),
        text: "😀é".to_owned(),
        start_chars: 3,
        total_chars: 9,
        found_chars: None,
    };
    let source = FixedSource { window: Box::new(move || Ok(window.clone())), ..FixedSource::new() };
    let body = serve_source(source)
        .ok(WINDOW, "/v1/streams/messages/records/m2/field-window?field=body&offset_chars=3&limit_chars=2");
    let window = &body["window"];
    assert_eq!((&window["end_chars"], &window["next_offset_chars"]), (&json!(5), &json!(5)));
    assert_eq!((&window["previous_offset_chars"], &window["complete"]), (&json!(1), &json!(false)));
}

#[test]
fn changes_deletions_counts_and_relations_have_their_shapes() {
    let child = Record { expanded: Vec::new(), ..record_of(&recorded("record-connection").1) };
    let mut parent = child.clone();
    let related = |relation: &str, many, records: &[Record]| ExpandedRelation {
        relation: relation.to_owned(),
        many,
        records: records.to_vec(),
        has_more: many,
    };
    parent.expanded = vec![
        related("parts", true, std::slice::from_ref(&child)),
        related("thread", false, &[child]),
        related("owner", false, &[]),
    ];
    let source = FixedSource {
        records: Box::new(move || {
            Ok(RecordsPage {
                rows: vec![
                    Change::Present(Box::new(parent.clone())),
                    Change::Deleted {
                        address: address("cin_work", "messages", "gone"),
                        deleted_at: Some("2026-05-01T00:00:00Z".to_owned()),
                    },
                ],
                next_changes: Some(ChangesToken::Verified(b"tok=1".to_vec())),
                has_more: true,
                count: Some(Count::exact(80)),
                notes: vec!["worth knowing".to_owned()],
                ..RecordsPage::default()
            })
        }),
        stream: Box::new(|| Ok(Vec::new())),
        ..FixedSource::new()
    };
    let body =
        serve_source(source).ok(RECORDS, "/v1/streams/messages/records?changes_since=beginning&limit=2");
    let expanded = &body["data"][0]["expanded"];
    assert_eq!(
        (&expanded["parts"]["object"], &expanded["parts"]["has_more"]),
        (&json!("list"), &json!(true))
    );
    assert_eq!(
        (&expanded["parts"]["data"][0]["id"], &expanded["thread"]["id"]),
        (&json!("m2"), &json!("m2"))
    );
    assert!(expanded["owner"].is_null() && expanded.as_object().unwrap().contains_key("owner"));
    assert_eq!(
        body["data"][1],
        json!({"object": "record", "id": "gone", "stream": "messages", "deleted": true, "deleted_at": "2026-05-01T00:00:00Z"})
    );
    assert_eq!(body["meta"]["count"], json!({"kind": "exact", "value": 80}));
    assert_eq!(body["meta"]["warnings"][0]["message"], "worth knowing");
    let token = body["next_changes_since"].as_str().unwrap();
    assert!(token.starts_with("fw1_"), "{token}");
    assert_eq!(body["links"]["next"], format!("/v1/streams/messages/records?limit=2&changes_since={token}"));
}

fn detail(connection: &str) -> StreamDetail {
    let field = |name: &str, kind: &str, capabilities: &[Capability]| FieldDetail {
        name: name.to_owned(),
        types: vec![kind.to_owned()],
        capabilities: capabilities.iter().copied().collect(),
    };
    StreamDetail {
        name: "messages".parse().unwrap(),
        connection_id: connection.parse().unwrap(),
        display_name: Some(connection.to_uppercase()),
        connector_key: Some("acme-mail".to_owned()),
        record_count: Some(4),
        primary_key: vec!["id".to_owned()],
        cursor_field: Some("received_at".to_owned()),
        fields: vec![
            field("amount", "number", &[Capability::Equal, Capability::Range, Capability::Sum]),
            field("received_at", "date-time", &[]),
        ],
        views: vec![View { name: "brief".to_owned(), fields: vec!["id".to_owned()] }],
        relations: vec![Relation {
            name: "attachments".to_owned(),
            stream: "attachments".parse().unwrap(),
            kind: RelationKind::HasMany,
            foreign_key: "message_id".to_owned(),
            default_limit: Some(3),
            max_limit: None,
        }],
        declaration: None,
    }
}

#[test]
fn a_stream_of_several_connections_is_one_object() {
    let source = FixedSource {
        stream: Box::new(|| Ok(vec![detail("cin_work"), detail("cin_home")])),
        ..FixedSource::new()
    };
    let body = serve_source(source).ok("/v1/streams/{stream}", "/v1/streams/messages");
    let (_, expect) = recorded("stream-detail");
    for member in expect.as_object().unwrap().keys() {
        assert!(body.get(member).is_some(), "{member}");
    }
    assert_eq!(body["instance_ids"], json!(["cin_work", "cin_home"]));
    let amount = &body["field_capabilities"]["amount"];
    assert_eq!(amount["range_filter"]["operators"], json!(["gte", "gt", "lte", "lt"]));
    assert_eq!(
        (&amount["aggregation"]["sum"]["usable"], &amount["lexical_search"]["usable"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(body["schema"]["properties"]["received_at"], json!({"type": "string", "format": "date-time"}));
    assert_eq!(body["expand_capabilities"][0]["cardinality"], "has_many");
    assert_eq!(
        (&body["views"][0]["name"], &body["relationships"][0]["foreign_key"]),
        (&json!("brief"), &json!("message_id"))
    );
}

/// Checks the status and the code of each failure of a source.
#[test]
fn every_failure_has_its_status_and_code() {
    let choice = || vec![ConnectionChoice { connection_id: "cin_a".parse().unwrap(), display_name: None }];
    let corrected =
        |fault| SourceError::InvalidQuery { fault, problem: "it is so".into(), hint: "Do that.".into() };
    let refused = |status| {
        SourceError::Refused(Box::new(Refusal {
            fault: None,
            advice: None,
            status,
            code: "field_not_granted".to_owned(),
            message: "no".to_owned(),
            hint: None,
            param: Some("fields".to_owned()),
            choices: Vec::new(),
        }))
    };
    let text = || "x".to_owned();
    let rows: Vec<(SourceError, u16, &str)> = vec![
        (SourceError::AmbiguousConnection { what: text(), choices: choice() }, 409, "ambiguous_connection"),
        (SourceError::ConnectionNotFound { asked: text(), choices: choice() }, 404, "connection_not_found"),
        (SourceError::NotFound { what: text() }, 404, "not_found"),
        (SourceError::UnknownField { stream: text(), field: text(), known: vec![] }, 400, "unknown_field"),
        (SourceError::InvalidCursor, 400, "invalid_cursor"),
        (SourceError::Timeout { after: Duration::from_secs(1) }, 504, "source_timeout"),
        (SourceError::Unreachable { problem: text() }, 503, "source_unavailable"),
        (SourceError::RateLimited { retry_after: Some(Duration::from_secs(7)) }, 503, "source_rate_limited"),
        (SourceError::Protocol(ProtocolFault::WrongShape { missing: "list" }), 502, "source_protocol"),
        (SourceError::Reauthorize { problem: text(), remedy: text() }, 502, "reauthorize"),
        (refused(403), 403, "field_not_granted"),
        (refused(401), 403, "field_not_granted"),
        (refused(500), 502, "field_not_granted"),
        (corrected(QueryFault::UnknownStream), 404, "stream_not_declared"),
        (corrected(QueryFault::UnknownField), 400, "unknown_field"),
        (corrected(QueryFault::InvalidFilter), 400, "invalid_filter"),
        (corrected(QueryFault::InvalidSort), 400, "invalid_sort"),
        (corrected(QueryFault::InvalidView), 400, "invalid_argument"),
        (corrected(QueryFault::InvalidExpand), 400, "invalid_expand"),
        (corrected(QueryFault::InvalidAggregate), 400, "invalid_argument"),
        (corrected(QueryFault::MismatchedCursor), 400, "invalid_cursor"),
        (corrected(QueryFault::MalformedCursor), 400, "invalid_cursor"),
        (corrected(QueryFault::ExpiredCursor), 410, "cursor_expired"),
        (corrected(QueryFault::InvalidWindow), 400, "invalid_window"),
        (corrected(QueryFault::FieldNotFound), 404, "field_not_found"),
        (corrected(QueryFault::FieldNotText), 422, "field_not_text"),
        (corrected(QueryFault::QueryNotFound), 404, "query_not_found"),
        (corrected(QueryFault::InvalidArgument), 400, "invalid_argument"),
        (corrected(QueryFault::NotSupported), 400, "not_supported"),
    ];
    let expected: Vec<(u16, &str)> = rows.iter().map(|(_, status, code)| (*status, *code)).collect();
    let errors = Mutex::new(rows.into_iter().map(|(error, ..)| error).rev().collect::<Vec<_>>());
    let source = FixedSource {
        records: Box::new(move || Err(errors.lock().unwrap().pop().unwrap())),
        ..FixedSource::new()
    };
    let served = serve_source(source);
    for (status, code) in expected {
        let answer = get(&served.address, "/v1/streams/s/records");
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, error["code"].as_str().unwrap()), (status, code));
        let offers = ["ambiguous_connection", "connection_not_found"].contains(&code);
        assert_eq!(error["retry_with"] == "connection_id", offers, "{error}");
        assert_eq!(error["available_connections"].is_array(), offers, "{error}");
        assert_eq!(answer.header("retry-after"), (code == "source_rate_limited").then_some("7"));
        if code == "invalid_sort" {
            assert_eq!(
                (&error["param"], &error["message"], &error["hint"]),
                (&json!("sort"), &json!("it is so"), &json!("Do that."))
            );
        }
    }
}

#[test]
fn panics_and_hanging_sources_are_answered() {
    let served = serve_source(FixedSource::new());
    served.check_refused("/v1/streams/s", 500, "internal_error", Value::Null);
    served.check_refused("/v1/search?q=slow", 504, "source_timeout", Value::Null);
    assert_eq!(get(&served.address, "/v1/search?q=quick").status, 200);
}

#[test]
fn parameters_become_the_query() {
    let served = serve_source(FixedSource::new());
    let records = |query: &str| format!("/v1/streams/s/records?{query}");
    served.check_asked(&records(""), &["limit: 25", "direction: Descending", "start: First", "count: None"]);
    served.check_asked(&records("limit=7&order=asc&count=exact"), &["limit: 7", "Ascending", "count: Exact"]);
    served.check_asked(&records("limit=999"), &["limit: 100"]);
    served.check_asked(&records("sort=-t"), &["Descending", "sort: Some(\"t\")"]);
    served.check_asked(&records("sort=t"), &["Ascending", "sort: Some(\"t\")"]);
    served.check_asked(&records("sort=t&order=desc"), &["Descending"]);
    served.check_asked(&records("fields=a,b&fields=c"), &["Fields([\"a\", \"b\", \"c\"])"]);
    served.check_asked(&records("view=brief"), &["View(\"brief\")"]);
    served.check_asked(&records("cursor=c1"), &["After(RecordsPosition(\"c1\"))"]);
    served.check_asked(&records("connection_id=cin_a&changes_since=beginning"), &["Changes(None)"]);
    served.check_asked(
        &records("connection_id=cin_a&changes_since=t%3D"),
        &["Changes(Some(Unverified(\"t=\")))"],
    );
    served.check_asked(
        &records("filter%5Ba%20b%5D=x%2By&filter[n][gte]=1&filter[n][lt]=9&filter[i][in]=1&filter[i][in]=2"),
        &[
            "field: \"a b\", test: Equal(Text(\"x+y\"))",
            "Range(GreaterOrEqual, Text(\"1\"))",
            "Range(Less, Text(\"9\"))",
            "In([Text(\"1\"), Text(\"2\")])",
        ],
    );
    served.check_asked(
        &records("expand=a&expand[]=b&expand_limit[b]=2"),
        &["relation: \"a\", limit: None", "relation: \"b\", limit: Some(2)"],
    );
    served
        .check_asked(&records("connector_instance_id=cin_a"), &["connection: Some(ConnectionId(\"cin_a\"))"]);
    let aggregate = |query: &str| format!("/v1/streams/s/aggregate?{query}");
    served.check_asked(&aggregate("metric=count&group_by=f"), &["Field(\"f\")", "limit: 25"]);
    served.check_asked(
        &aggregate("metric=max&field=n&group_by_time=t&granularity=week&time_zone=Europe/Oslo&limit=3"),
        &["metric: Max", "field: Some(\"n\")", "granularity: Week", "Europe/Oslo", "limit: 3"],
    );
}

#[test]
fn conflicting_parameters_are_refused() {
    let served = serve_source(FixedSource::new());
    for (query, code, param) in [
        ("view=a&fields=b", "invalid_request", "view"),
        ("fields=", "invalid_request", "fields"),
        ("changes_since=beginning&cursor=c", "invalid_request", "changes_since"),
        ("order=up", "invalid_request", "order"),
        ("count=all", "invalid_request", "count"),
        ("sort=", "invalid_sort", "sort"),
        ("sort=-", "invalid_sort", "sort"),
        ("sort=-t&order=asc", "invalid_sort", "sort"),
        ("filter[a][like]=1", "invalid_filter", "filter"),
        ("filter[]=1", "invalid_filter", "filter"),
        ("filter=1", "invalid_request", "filter"),
        ("expand_limit[a]=1", "invalid_expand", "expand_limit"),
        ("expand=a&expand_limit[a]=0", "invalid_expand", "expand_limit"),
        ("limit=1&limit=2", "invalid_request", "limit"),
    ] {
        served.check_refused(&format!("/v1/streams/s/records?{query}"), 400, code, param);
    }
    for (query, code, param) in [
        ("", "invalid_field_path", "field"),
        ("field=", "invalid_field_path", "field"),
        ("field=a&offset_chars=-1", "invalid_window", "offset_chars"),
        ("field=a&limit_chars=0", "invalid_window", "limit_chars"),
        ("field=a&q=x&offset_chars=1", "invalid_window", "offset_chars"),
        ("field=a&q=", "invalid_window", "q"),
        ("field=a&before_chars=1", "invalid_window", "before_chars"),
        ("field=a&q=x&after_chars=8193", "invalid_window", "after_chars"),
    ] {
        served.check_refused(&format!("/v1/streams/s/records/r/field-window?{query}"), 400, code, param);
    }
    for (query, param) in [
        ("", "metric"),
        ("metric=median", "metric"),
        ("metric=sum", "field"),
        ("metric=count&group_by=a&group_by_time=b", "group_by"),
        ("metric=count&group_by_time=b", "granularity"),
        ("metric=count&granularity=day", "granularity"),
        ("metric=count&group_by_time=b&granularity=eon", "granularity"),
        ("metric=count&group_by_time=b&granularity=day&time_zone=Mars/X", "time_zone"),
        ("metric=count&limit=101", "limit"),
        ("metric=count&limit=0", "limit"),
    ] {
        served.check_refused(&format!("/v1/streams/s/aggregate?{query}"), 400, "invalid_request", param);
    }
}

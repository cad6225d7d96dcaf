//! The behaviour that every source must have: the same checks for each kind of source.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_core::handle::{ConnectionId, RecordAddress};
use fetchwell_core::record::{Capability, HitId, Scalar};
use fetchwell_pdpp::{Credentials, Pdpp, ProviderUrl};
use fetchwell_source::{
    AggregateQuery, BoundSource, Change, Count, CountMode, Direction, Expansion, Filter, Granularity, Group,
    Grouping, Metric, RecordQuery, RecordsQuery, SearchMode, SearchQuery, Selection, SourceError, Start,
    StreamQuery, WindowQuery, WindowStart,
};
use fetchwell_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, FakeServer, HttpServer, Reply, binary, connect, fetchwell, text};

/// Number of records in `messages` of each of the two connections.
const MESSAGES: usize = 40;

pub(crate) const MANIFEST: &str = include_str!("../../../fixtures/conformance/manifest.json");

/// Imports the corpus: two accounts of one connector with colliding record ids.
pub(crate) fn corpus() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("corpus.db");
    import_corpus(text(&store));
    (folder, store)
}

/// Imports the corpus into a store: a file or a database.
pub(crate) fn import_corpus(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, MANIFEST).unwrap();
    for (connection, label) in [("cin_work", "Work mail"), ("cin_home", "Home mail")] {
        let file = folder.path().join(format!("{connection}.ndjson"));
        std::fs::write(&file, lines(label).join("\n")).unwrap();
        let output = fetchwell([
            "import",
            "records",
            text(&file),
            "--store",
            store,
            "--connection",
            connection,
            "--name",
            label,
            "--manifest",
            text(&manifest),
        ]);
        assert!(output.status.success(), "{output:?}");
    }
}

fn lines(label: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |stream: &str, key: Value, data: Value| {
        let emitted_at = "2026-04-28T00:00:00Z";
        lines.push(json!({"stream": stream, "key": key, "data": data, "emitted_at": emitted_at}).to_string());
    };
    for number in 0..MESSAGES {
        let data = json!({
            "id": format!("m{number}"),
            "subject": format!("{label} invoice {number} 😀"),
            "from_email": format!("billing{}@acme.test", number % 3),
            // Four messages a day.
            "received_at": format!("2026-04-{:02}T{:02}:00:00.000Z", 1 + number / 4, number % 4 * 6),
            "amount": number as f64 * 10.5,
            "labels": ["inbox", format!("l{}", number % 4)],
            "body": format!("Please pay the invoice number {number}. 👩‍👩‍👧 é").repeat(100),
        });
        line("messages", json!(format!("m{number}")), data);
    }
    for number in 0..8 {
        let data = json!({"id": format!("a{number}"), "message_id": format!("m{}", number / 4), "filename": format!("f{number}.pdf"),
            "received_at": format!("2026-04-0{}T00:00:00Z", 1 + number)});
        line("attachments", json!(format!("a{number}")), data);
    }
    for day in 1..=4 {
        let data = json!({"user_id": "user_123", "day": format!("2026-04-0{day}"), "note": format!("compound stat day {day}")});
        line("daily_stats", json!(["user_123", format!("2026-04-0{day}")]), data);
    }
    lines
}

pub(crate) fn records_of(stream: &str) -> RecordsQuery {
    RecordsQuery::new(stream.parse().unwrap(), 25)
}

fn filter(json: Value) -> Filter {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn address(connection: &str, stream: &str, record: &str) -> RecordAddress {
    RecordAddress {
        connection: Some(connection.parse().unwrap()),
        stream: stream.parse().unwrap(),
        record: record.parse().unwrap(),
    }
}

/// Returns all records of a list, page by page, as `connection/key`.
pub(crate) async fn walk(source: &BoundSource, query: &RecordsQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let page = source.records(&query).await.unwrap();
        assert!(page.rows.len() <= query.limit);
        seen.extend(page.rows.iter().map(name));
        let Some(next) = page.next else { return seen };
        assert!(!page.rows.is_empty(), "an empty page with a next one");
        query.start = Start::After(next);
    }
    panic!("the pages never end");
}

pub(crate) fn name(change: &Change) -> String {
    let address = match change {
        Change::Present(record) => &record.address,
        Change::Deleted { address, .. } => address,
    };
    format!("{}/{}", address.connection.as_ref().map_or("", ConnectionId::as_str), address.record)
}

/// Returns the code of an error, of fetchwell's own or passed on.
#[track_caller]
pub(crate) fn code<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> String {
    match answer.unwrap_err() {
        SourceError::InvalidQuery { fault, .. } => fault.code().to_owned(),
        SourceError::Refused(refusal) => refusal.code,
        SourceError::UnknownField { .. } => "unknown_field".to_owned(),
        SourceError::ConnectionNotFound { .. } => "connection_not_found".to_owned(),
        SourceError::AmbiguousConnection { .. } => "ambiguous_connection".to_owned(),
        SourceError::NotFound { .. } => "not_found".to_owned(),
        SourceError::InvalidCursor => "invalid_cursor".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// The expected description of a corpus: its connections, and the streams of each with their numbers of records.
struct ExpectedCorpus<'a> {
    connections: &'a [&'a str],
    connector_key: &'a str,
    counts: &'a [(&'a str, u64)],
    /// The field that messages are ordered by, if the source tells it.
    cursor_field: Option<&'a str>,
}

/// The end of an expected list: its last page, or a page with a position for more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    Further,
}

async fn check_described(source: &BoundSource, expect: &ExpectedCorpus<'_>) {
    let schema = source.schema().await.unwrap();
    let ids: Vec<&str> = schema.connections.iter().map(|c| c.connection_id.as_str()).collect();
    assert_eq!(ids, expect.connections);
    for connection in &schema.connections {
        let counts: Vec<(&str, u64)> =
            connection.streams.iter().map(|s| (s.name.as_str(), s.record_count.unwrap())).collect();
        assert_eq!(counts, expect.counts);
        assert_eq!(connection.connector_key.as_deref(), Some(expect.connector_key));
    }
    let one = StreamQuery {
        stream: "messages".parse().unwrap(),
        connection: Some(expect.connections[0].parse().unwrap()),
    };
    let details = source.stream(&one).await.unwrap().details;
    let [messages] = details.as_slice() else { panic!("{details:?}") };
    assert_eq!(messages.cursor_field.as_deref(), expect.cursor_field);
    assert!(messages.field("amount").is_some() && messages.field("nope").is_none());
    let everywhere = StreamQuery { connection: None, ..one };
    assert_eq!(source.stream(&everywhere).await.unwrap().details.len(), expect.connections.len());
    let unknown = StreamQuery { stream: "nope".parse().unwrap(), connection: None };
    assert_eq!(code(source.stream(&unknown).await), "stream_not_declared");
}

/// Checks that a list has exactly these records in this order, page by page.
async fn check_order(source: &BoundSource, query: &RecordsQuery, expect: &[String], end: End) {
    let mut query = query.clone();
    let mut seen: Vec<String> = Vec::new();
    loop {
        let page = source.records(&query).await.unwrap();
        assert!(page.rows.len() <= query.limit);
        assert_eq!(page.has_more, page.next.is_some());
        seen.extend(page.rows.iter().map(name));
        match page.next {
            Some(next) if end == End::Reached || seen.len() < expect.len() => {
                assert!(!page.rows.is_empty(), "an empty page with a next one");
                query.start = Start::After(next);
            }
            next => {
                assert_eq!(next.is_some(), end == End::Further, "{query:?}");
                break;
            }
        }
    }
    assert_eq!(seen, expect, "{query:?}");
}

async fn check_record(source: &BoundSource, address: &RecordAddress, field: &str, expect: &Value) {
    let record = source.record(&RecordQuery::new(address.clone())).await.unwrap();
    assert_eq!(&record.address, address);
    assert_eq!(&record.data[field], expect);
}

async fn check_record_refused(source: &BoundSource, query: &RecordQuery, expect: &str) {
    assert_eq!(code(source.record(query).await), expect, "{query:?}");
}

async fn check_records_refused(source: &BoundSource, query: &RecordsQuery, expect: &str) {
    assert_eq!(code(source.records(query).await), expect, "{query:?}");
}

/// Checks the text of a window, its start, and the range that was found.
async fn check_window(
    source: &BoundSource,
    query: &WindowQuery,
    expect: (&str, usize, Option<std::ops::Range<usize>>),
) {
    let window = source.window(query).await.unwrap();
    assert_eq!((&*window.text, window.start_chars, window.found_chars), expect, "{query:?}");
}

async fn check_figure(source: &BoundSource, query: &AggregateQuery, expect: &Scalar) {
    let answer = source.aggregate(query).await.unwrap();
    let same = match (&answer.value, expect) {
        (Some(Scalar::Number(a)), Scalar::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a.as_ref() == Some(b),
    };
    assert!(same, "{query:?}: {answer:?}");
}

/// Checks the groups of an aggregate, the number of records in other groups, and the total.
async fn check_groups(
    source: &BoundSource,
    query: &AggregateQuery,
    expect: &[(&str, &str)],
    others: Option<(u64, u64)>,
) {
    let answer = source.aggregate(query).await.unwrap();
    let shown = |scalar: &Option<Scalar>| scalar.as_ref().unwrap().to_string();
    let groups: Vec<(String, String)> =
        answer.groups.unwrap().iter().map(|group| (shown(&group.key), shown(&group.value))).collect();
    let groups: Vec<(&str, &str)> = groups.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(groups, expect, "{query:?}");
    if let Some((other, all)) = others {
        assert_eq!((answer.other_count, answer.filtered_count), (Some(other), Some(all)), "{query:?}");
    }
}

async fn check_aggregate_refused(source: &BoundSource, query: &AggregateQuery, expect: &[&str]) {
    let refused = code(source.aggregate(query).await);
    assert!(expect.contains(&refused.as_str()), "{query:?}: {refused}");
}

/// Checks the number of different hits of a search, page by page. Each must name its record.
async fn check_search(source: &BoundSource, query: &SearchQuery, hits: usize, end: End) {
    let mut query = query.clone();
    let mut seen = Vec::new();
    loop {
        let page = source.search(&query).await.unwrap();
        assert!(page.hits.len() <= query.limit);
        seen.extend(page.hits.iter().map(|hit| match &hit.id {
            HitId::Record(address) => format!("{address:?}"),
            other => panic!("{other:?}"),
        }));
        match page.next {
            Some(next) if end == End::Reached || seen.len() < hits => query.position = Some(next),
            next => {
                assert_eq!(next.is_some(), end == End::Further, "{query:?}");
                break;
            }
        }
    }
    assert_eq!(seen.len(), hits, "{query:?}");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), hits, "{query:?}: repeated");
}

async fn check_changes(source: &BoundSource, query: &RecordsQuery, expect: usize) {
    let mut query = RecordsQuery { start: Start::Changes(None), ..query.clone() };
    let mut seen = Vec::new();
    let last = loop {
        let page = source.records(&query).await.unwrap();
        seen.extend(page.rows.iter().map(name));
        let token = page.next_changes.unwrap();
        if !page.has_more {
            break token;
        }
        query.start = Start::Changes(Some(token));
    };
    assert_eq!(seen.len(), expect);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), expect);
    let later = RecordsQuery { start: Start::Changes(Some(last)), limit: 25, ..query };
    let nothing = source.records(&later).await.unwrap();
    assert!(nothing.rows.is_empty() && !nothing.has_more);
}

/// Runs all checks.
pub(crate) async fn conforms(source: &BoundSource) {
    describes_itself(source).await;
    pages(source).await;
    narrows(source).await;
    sorts(source).await;
    refuses(source).await;
    expands(source).await;
    reads_records(source).await;
    reads_windows(source).await;
    counts(source).await;
    tells_changes(source).await;
    searches(source).await;
}

async fn describes_itself(source: &BoundSource) {
    let expect = ExpectedCorpus {
        connections: &["cin_work", "cin_home"],
        connector_key: "acme-mail",
        counts: &[("messages", 40), ("attachments", 8), ("daily_stats", 4)],
        cursor_field: Some("received_at"),
    };
    check_described(source, &expect).await;
    let query =
        StreamQuery { stream: "messages".parse().unwrap(), connection: Some("cin_home".parse().unwrap()) };
    let details = source.stream(&query).await.unwrap().details;
    let [messages] = details.as_slice() else { panic!("{details:?}") };
    assert_eq!(messages.display_name.as_deref(), Some("Home mail"));
    let amount = messages.field("amount").unwrap();
    assert_eq!(amount.types, ["number"]);
    assert!(
        amount.capabilities.contains(&Capability::Sum) && amount.capabilities.contains(&Capability::Equal)
    );
    assert!(!messages.field("subject").unwrap().capabilities.contains(&Capability::Range));
    assert_eq!(messages.relation("attachments").unwrap().max_limit, Some(5));
}

/// Returns the messages in the order of their times. Both accounts have the same times and keys, so they alternate.
fn messages_in_order(connections: &[&str], direction: Direction) -> Vec<String> {
    let oldest_first =
        (0..MESSAGES).flat_map(|number| connections.iter().map(move |c| format!("{c}/m{number}")));
    match direction {
        Direction::Ascending => oldest_first.collect(),
        Direction::Descending => oldest_first.rev().collect(),
    }
}

async fn pages(source: &BoundSource) {
    for direction in [Direction::Descending, Direction::Ascending] {
        for limit in [1, 7, 40, 100] {
            let both = RecordsQuery { direction, limit, ..records_of("messages") };
            let expect = messages_in_order(&["cin_work", "cin_home"], direction);
            check_order(source, &both, &expect, End::Reached).await;
            // The order is the same if the field of the order is not selected.
            for selection in [Selection::View("preview".to_owned()), Selection::Fields(vec!["id".to_owned()])]
            {
                check_order(source, &RecordsQuery { selection, ..both.clone() }, &expect, End::Reached).await;
            }
            let one = RecordsQuery { connection: Some("cin_work".parse().unwrap()), ..both };
            check_order(source, &one, &messages_in_order(&["cin_work"], direction), End::Reached).await;
        }
    }
    let page = source
        .records(&RecordsQuery { count: CountMode::Exact, limit: 3, ..records_of("messages") })
        .await
        .unwrap();
    let count = page.count.unwrap();
    assert_eq!(count, Count::exact(80));
    assert!(page.has_more && page.rows.len() == 3);
}

async fn sorts(source: &BoundSource) {
    for (direction, limit) in
        [(Direction::Ascending, 7), (Direction::Descending, 7), (Direction::Descending, 100)]
    {
        let sort = Some("amount".to_owned());
        let query = RecordsQuery { sort, direction, limit, ..records_of("messages") };
        // Amounts grow with the numbers of the messages, as times do.
        let expect = messages_in_order(&["cin_work", "cin_home"], direction);
        check_order(source, &query, &expect, End::Reached).await;
    }
}

/// Checks operators that stores have and record servers do not have.
pub(crate) async fn narrows_further(source: &BoundSource) {
    for (conditions, expect) in [
        (json!({"labels": ["l1", "l2"]}), 40),
        (json!({"labels": {"prefix": "INB"}}), 80),
        (json!({"subject": {"contains": "INVOICE 7"}}), 2),
        (json!({"from_email": {"in": ["billing0@acme.test", "nobody"]}}), 28),
        (json!({"amount": {"exists": false}}), 0),
        (json!({"nowhere": {"exists": true}}), 0),
    ] {
        let query = RecordsQuery {
            filter: filter(conditions.clone()),
            limit: 30,
            count: CountMode::Exact,
            ..records_of("messages")
        };
        if conditions.get("nowhere").is_some() {
            check_records_refused(source, &query, "invalid_filter").await;
            continue;
        }
        assert_eq!(source.records(&query).await.unwrap().count.unwrap().value, expect, "{conditions}");
        assert_eq!(walk(source, &query).await.len() as u64, expect, "{conditions}");
    }
    let count = AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: None,
        metric: Metric::Count,
        field: None,
        grouping: None,
        second_field: None,
        limit: 10,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    };
    let mean = AggregateQuery { metric: Metric::Avg, field: Some("amount".to_owned()), ..count.clone() };
    assert_eq!(source.aggregate(&mean).await.unwrap().value.unwrap().to_string(), "204.75");
    let labels = AggregateQuery { grouping: Some(Grouping::Field("labels".to_owned())), ..count };
    let pairs = AggregateQuery { second_field: Some("from_email".to_owned()), limit: 3, ..labels.clone() };
    let pairs = source.aggregate(&pairs).await.unwrap();
    let second = |group: &Group| group.second_key.as_ref().unwrap().to_string();
    let seconds: Vec<String> = pairs.groups.as_ref().unwrap().iter().map(second).collect();
    assert_eq!(seconds, ["billing0@acme.test", "billing1@acme.test", "billing2@acme.test"]);
    let groups = source.aggregate(&labels).await.unwrap().groups.unwrap();
    let shown: Vec<String> = groups
        .iter()
        .map(|group| format!("{} {}", group.key.as_ref().unwrap(), group.value.as_ref().unwrap()))
        .collect();
    assert_eq!(shown, ["inbox 80", "l0 20", "l1 20", "l2 20", "l3 20"]);
}

async fn narrows(source: &BoundSource) {
    for (conditions, expect) in [
        (json!({"from_email": "billing1@acme.test"}), 26),
        (json!({"amount": 21}), 2),
        (json!({"received_at": {"gte": "2026-04-02T00:00:00Z", "lt": "2026-04-03T00:00:00Z"}}), 8),
        (json!({"received_at": {"gt": "2026-04-10T12:00:00.000Z"}}), 2),
        (json!({"from_email": "billing1@acme.test", "received_at": {"lte": "2026-04-01T06:00:00Z"}}), 2),
        (json!({"from_email": "nobody"}), 0),
        (json!({"labels": "l3"}), 20),
        (json!({"received_at": "2026-04-02"}), 8),
    ] {
        let query = RecordsQuery {
            filter: filter(conditions.clone()),
            limit: 3,
            count: CountMode::Exact,
            ..records_of("messages")
        };
        let page = source.records(&query).await.unwrap();
        assert_eq!(page.count.unwrap().value, expect, "{conditions}");
        assert_eq!(walk(source, &query).await.len() as u64, expect, "{conditions}");
    }
    let fields = Selection::Fields(vec!["amount".to_owned(), "subject".to_owned()]);
    for selection in [fields, Selection::View("preview".to_owned())] {
        let query = RecordsQuery { selection, limit: 1, ..records_of("messages") };
        let page = source.records(&query).await.unwrap();
        let [Change::Present(record)] = page.rows.as_slice() else { panic!("{page:?}") };
        let mut names: Vec<&str> = record.data.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["amount", "subject"]);
    }
}

async fn refuses(source: &BoundSource) {
    let messages = || records_of("messages");
    for (query, expect) in [
        (records_of("nope"), "stream_not_declared"),
        (RecordsQuery { connection: Some("nobody".parse().unwrap()), ..messages() }, "connection_not_found"),
        (RecordsQuery { sort: Some("labels".to_owned()), ..messages() }, "invalid_sort"),
        (RecordsQuery { filter: filter(json!({"nope": 1})), ..messages() }, "invalid_filter"),
        (RecordsQuery { filter: filter(json!({"subject": {"gt": "a"}})), ..messages() }, "invalid_filter"),
        (
            RecordsQuery { selection: Selection::Fields(vec!["nope".to_owned()]), ..messages() },
            "unknown_field",
        ),
        (RecordsQuery { start: Start::Changes(None), ..messages() }, "invalid_argument"),
        (
            RecordsQuery {
                expand: vec![Expansion { relation: "nope".to_owned(), limit: None }],
                ..messages()
            },
            "invalid_expand",
        ),
        (
            RecordsQuery {
                expand: vec![Expansion { relation: "attachments".to_owned(), limit: Some(6) }],
                ..messages()
            },
            "invalid_expand",
        ),
    ] {
        check_records_refused(source, &query, expect).await;
    }
    // A position is valid for one query only.
    let first = source.records(&RecordsQuery { limit: 2, ..messages() }).await.unwrap();
    let after = Start::After(first.next.unwrap());
    for other in [
        RecordsQuery { direction: Direction::Ascending, ..messages() },
        RecordsQuery { filter: filter(json!({"amount": 21})), ..messages() },
        RecordsQuery { connection: Some("cin_home".parse().unwrap()), ..messages() },
        records_of("attachments"),
    ] {
        let query = RecordsQuery { start: after.clone(), ..other };
        check_records_refused(source, &query, "invalid_cursor").await;
    }
    for nonsense in ["", "nonsense", "e30", "bnVsbA"] {
        let start = Start::After(fetchwell_source::RecordsPosition(nonsense.to_owned()));
        check_records_refused(source, &RecordsQuery { start, ..messages() }, "invalid_cursor").await;
    }
}

async fn expands(source: &BoundSource) {
    let expand = vec![Expansion { relation: "attachments".to_owned(), limit: Some(3) }];
    let query = RecordsQuery {
        connection: Some("cin_work".parse().unwrap()),
        direction: Direction::Ascending,
        limit: 3,
        expand: expand.clone(),
        ..records_of("messages")
    };
    let page = source.records(&query).await.unwrap();
    let brought: Vec<(usize, bool)> = page
        .rows
        .iter()
        .map(|row| match row {
            Change::Present(record) => (record.expanded[0].records.len(), record.expanded[0].has_more),
            Change::Deleted { .. } => panic!("{row:?}"),
        })
        .collect();
    assert_eq!(brought, [(3, true), (3, true), (0, false)]);
    let query = RecordQuery { expand, ..RecordQuery::new(address("cin_home", "messages", "m1")) };
    let record = source.record(&query).await.unwrap();
    let first = &record.expanded[0].records[0];
    assert_eq!(first.address, address("cin_home", "attachments", "a7"));
    let expand = vec![Expansion { relation: "message".to_owned(), limit: None }];
    let query = RecordQuery { expand, ..RecordQuery::new(address("cin_home", "attachments", "a5")) };
    let record = source.record(&query).await.unwrap();
    assert!(!record.expanded[0].many);
    assert_eq!(record.expanded[0].records[0].address, address("cin_home", "messages", "m1"));
}

async fn reads_records(source: &BoundSource) {
    let compound = address("cin_work", "daily_stats", r#"["user_123","2026-04-01"]"#);
    check_record(source, &compound, "note", &json!("compound stat day 1")).await;
    let anywhere = RecordAddress { connection: None, ..address("cin_work", "messages", "m1") };
    check_record_refused(source, &RecordQuery::new(anywhere), "ambiguous_connection").await;
    let nowhere = address("cin_work", "messages", "m999");
    check_record_refused(source, &RecordQuery::new(nowhere), "not_found").await;
}

async fn reads_windows(source: &BoundSource) {
    let of = |field: &str, start: WindowStart, limit_chars: usize| WindowQuery {
        address: address("cin_work", "messages", "m7"),
        field: field.to_owned(),
        start,
        limit_chars,
    };
    let whole = source.record(&RecordQuery::new(address("cin_work", "messages", "m7"))).await.unwrap();
    let whole = whole.data["body"].as_str().unwrap().to_owned();
    for limit in [1, 97, 1_000, 16_384] {
        let (mut text, mut at) = (String::new(), 0);
        loop {
            let window = source.window(&of("body", WindowStart::Offset(at), limit)).await.unwrap();
            assert_eq!(window.total_chars, whole.chars().count());
            assert_eq!(window.start_chars, at);
            at = window.end_chars();
            text.push_str(&window.text);
            if at >= window.total_chars || (limit == 1 && at > 50) {
                break;
            }
        }
        assert!(whole.starts_with(&text) && (limit == 1 || text == whole), "{limit}");
    }
    let around = WindowStart::Around { text: "NUMBER 7".to_owned(), before: 4, after: 3 };
    check_window(source, &of("body", around, 100), ("ice number 7. 👩", 19, Some(23..31))).await;
    let past = WindowStart::Offset(1_000_000);
    check_window(source, &of("body", past, 10), ("", whole.chars().count(), None)).await;
    let absent = WindowStart::Around { text: "zzzz".to_owned(), before: 0, after: 0 };
    assert_eq!(code(source.window(&of("body", absent, 10)).await), "query_not_found");
    assert_eq!(code(source.window(&of("amount", WindowStart::Offset(0), 10)).await), "field_not_text");
    assert_eq!(code(source.window(&of("nope", WindowStart::Offset(0), 10)).await), "field_not_found");
}

async fn counts(source: &BoundSource) {
    let of = |metric: Metric, field: Option<&str>, grouping: Option<Grouping>| AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: Some("cin_work".parse().unwrap()),
        metric,
        field: field.map(str::to_owned),
        grouping,
        second_field: None,
        limit: 2,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    };
    let number = |value: u64| Scalar::Number(value.into());
    for (query, expect) in [
        (of(Metric::Count, None, None), number(40)),
        (AggregateQuery { connection: None, ..of(Metric::Count, None, None) }, number(80)),
        (of(Metric::Sum, Some("amount"), None), number(8_190)),
        (of(Metric::CountDistinct, Some("from_email"), None), number(3)),
        (of(Metric::Min, Some("received_at"), None), Scalar::Text("2026-04-01T00:00:00.000Z".to_owned())),
        (
            AggregateQuery {
                filter: filter(json!({"from_email": "billing0@acme.test"})),
                ..of(Metric::Count, None, None)
            },
            number(14),
        ),
    ] {
        check_figure(source, &query, &expect).await;
    }
    let by_sender = of(Metric::Count, None, Some(Grouping::Field("from_email".to_owned())));
    let expect = [("billing0@acme.test", "14"), ("billing1@acme.test", "13")];
    check_groups(source, &by_sender, &expect, Some((13, 40))).await;
    let by_day = |zone: &str| Grouping::Time {
        field: "received_at".to_owned(),
        granularity: Granularity::Day,
        time_zone: zone.parse().unwrap(),
    };
    for (zone, expect) in [
        ("UTC", [("2026-04-09", "4"), ("2026-04-10", "4")]),
        // The last message of each day belongs to the next day in Tokyo.
        ("Asia/Tokyo", [("2026-04-10", "4"), ("2026-04-11", "1")]),
    ] {
        check_groups(source, &of(Metric::Count, None, Some(by_day(zone))), &expect, None).await;
    }
    for query in [
        of(Metric::Sum, None, None),
        of(Metric::Sum, Some("subject"), None),
        of(Metric::Count, None, Some(Grouping::Field("nope".to_owned()))),
    ] {
        check_aggregate_refused(source, &query, &["invalid_argument", "invalid_request"]).await;
    }
}

async fn tells_changes(source: &BoundSource) {
    let of = |start: Start| RecordsQuery {
        connection: Some("cin_work".parse().unwrap()),
        limit: 15,
        start,
        ..records_of("messages")
    };
    check_changes(source, &of(Start::First), MESSAGES).await;
    let nonsense = Start::Changes(Some(fetchwell_source::ChangesToken::Unverified("nonsense".to_owned())));
    assert_eq!(code(source.records(&of(nonsense)).await), "invalid_cursor");
}

async fn searches(source: &BoundSource) {
    let query = SearchQuery {
        streams: vec!["messages".parse().unwrap()],
        filter: filter(json!({"from_email": "billing1@acme.test"})),
        ..SearchQuery::new("invoice", 7)
    };
    check_search(source, &query, 26, End::Reached).await;
    let anywhere = SearchQuery { streams: Vec::new(), ..query };
    assert_eq!(code(source.search(&anywhere).await), "invalid_filter");
}

#[tokio::test]
async fn the_embedded_store_conforms() {
    let (_folder, path) = corpus();
    conforms(&open(&path)).await;
    narrows_further(&open(&path)).await;
}

/// Checks the same store through its own `/v1`, read by the client for record servers.
#[tokio::test]
async fn the_store_conforms_through_its_own_api() {
    let (folder, path) = corpus();
    let server = HttpServer::start(["--store", text(&path)]);
    conforms(&remote(&server.url(""), folder.path())).await;
}

/// Opens the client for a record server.
fn remote(provider: &str, cache: &Path) -> BoundSource {
    connect(cache, provider, CREDENTIAL);
    let provider: ProviderUrl = provider.parse().unwrap();
    let credentials = Credentials::new(&provider, cache);
    Pdpp::new("remote".parse().unwrap(), provider, credentials, Duration::from_secs(20)).into()
}

fn open(path: &Path) -> BoundSource {
    SqliteStore::open("store".parse().unwrap(), path).unwrap().into()
}

/// Returns the code, the message and the hint of an error.
#[track_caller]
fn advice<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> (&'static str, String, String) {
    match answer {
        Err(SourceError::InvalidQuery { fault, problem, hint }) => (fault.code(), problem, hint),
        Err(SourceError::Refused(refusal)) if refusal.fault.is_some() => {
            let (fault, hint) = refusal.correction().unwrap();
            (fault.code(), refusal.message, hint)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hints_of_the_api_pass_through_the_remote_client() {
    let (folder, path) = corpus();
    let store = open(&path);
    let server = HttpServer::start(["--store", text(&path)]);
    let remote = remote(&server.url(""), folder.path());
    let said = |(code, problem, hint): (&'static str, String, String)| {
        (code, problem, format!("The record server says: {hint}"))
    };
    let without_stream =
        SearchQuery { filter: filter(json!({"amount": 21})), ..SearchQuery::new("invoice", 5) };
    let expect = said(advice(store.search(&without_stream).await));
    assert_eq!(advice(remote.search(&without_stream).await), expect);
    let window = |field: &str, start: WindowStart| WindowQuery {
        address: address("cin_work", "messages", "m7"),
        field: field.to_owned(),
        start,
        limit_chars: 100,
    };
    let absent = WindowStart::Around { text: "zzzz".to_owned(), before: 0, after: 0 };
    for query in [
        window("body", absent),
        window("nope", WindowStart::Offset(0)),
        window("amount", WindowStart::Offset(0)),
    ] {
        let expect = said(advice(store.window(&query).await));
        assert_eq!(advice(remote.window(&query).await), expect);
    }
    for query in [
        RecordsQuery { sort: Some("labels".to_owned()), ..records_of("messages") },
        RecordsQuery { filter: filter(json!({"nope": 1})), ..records_of("messages") },
        RecordsQuery { selection: Selection::View("nope".to_owned()), ..records_of("messages") },
    ] {
        let query = RecordsQuery { connection: Some("cin_work".parse().unwrap()), ..query };
        let expect = said(advice(store.records(&query).await));
        assert_eq!(advice(remote.records(&query).await), expect);
    }
    // Neither source searches by meaning, and both report so.
    for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
        let query = SearchQuery { mode, ..SearchQuery::new("invoice", 5) };
        let (found, expect) = (remote.search(&query).await.unwrap(), store.search(&query).await.unwrap());
        assert!(found.lexical_instead && expect.lexical_instead && !found.hits.is_empty());
        assert_eq!(found.hits.len(), expect.hits.len());
    }
}

/// Starts a record server that gives recorded replies by request. A parameter with its default value equals an absent
/// one, and the order of parameters does not matter.
fn recorded_server() -> FakeServer {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/record-server");
    let mut replies = HashMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        // Replies to other tokens are not part of the corpus.
        if recorded["status"] != 401 || recorded["response"]["error"]["code"] == "context.instance_mismatch" {
            let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
            let line = canonical(recorded["request"].as_str().unwrap());
            replies.insert(line, (status, recorded["response"].to_string()));
        }
    }
    FakeServer::start(move |request| match replies.get(&canonical(&request.line)) {
        Some((status, body)) => Reply::Json(*status, body.clone()),
        None => {
            Reply::Json(500, json!({"error": {"code": "not_recorded", "message": request.line}}).to_string())
        }
    })
}

fn canonical(line: &str) -> (String, Vec<(String, String)>) {
    const DEFAULTS: [(&str, &str); 6] = [
        ("order", "desc"),
        ("limit", "25"),
        ("offset_chars", "0"),
        ("limit_chars", "4096"),
        ("before_chars", "1024"),
        ("after_chars", "1024"),
    ];
    let url = url::Url::parse(&format!("http://x{}", line.trim_start_matches("GET "))).unwrap();
    let mut parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    parameters.retain(|(name, value)| !DEFAULTS.contains(&(name, value)));
    // Groups were recorded with another limit than the one that the client sends.
    parameters.retain(|(name, _)| name != "limit" || !url.path().ends_with("/aggregate"));
    parameters.sort();
    (url.path().to_owned(), parameters)
}

/// Checks the recorded reference server, as far as the recordings suffice. They do not contain
/// - a list over both connections, or one with fields, a sort or a filter: only the reference's own page over both was
/// recorded, and the client reads each connection by itself;
/// - a list or a search to its end, or a list with the oldest first: the first two pages were recorded;
/// - changes by pages, or with a deletion: they were recorded on one page;
/// - views, filters, expansions and groups by time that succeed: the reference refuses the first three to client
/// tokens, and the last were not recorded;
/// - a window around a text near the end of a long field, and positions of another query.
#[tokio::test]
async fn the_recorded_reference_server_conforms() {
    let server = recorded_server();
    let cache = tempfile::tempdir().unwrap();
    let source = &remote(&server.url, cache.path());
    recorded_descriptions_and_lists(source).await;
    recorded_records_and_windows(source).await;
    recorded_figures_and_searches(source).await;
}

async fn recorded_descriptions_and_lists(source: &BoundSource) {
    let expect = ExpectedCorpus {
        connections: &["cin_work", "cin_home"],
        connector_key: "acme-mail",
        counts: &[("messages", 40), ("attachments", 8), ("daily_stats", 5), ("labels", 5)],
        // The reference does not tell it to client tokens, and neither the types and capabilities of fields.
        cursor_field: None,
    };
    check_described(source, &expect).await;
    let of = |connection: &str| RecordsQuery {
        connection: Some(connection.parse().unwrap()),
        ..records_of("messages")
    };
    let work = ["m27", "m26", "m25", "m24"].map(|key| format!("cin_work/{key}"));
    check_order(source, &RecordsQuery { limit: 2, ..of("cin_work") }, &work, End::Further).await;
    let home = ["cin_home/m27".to_owned()];
    check_order(source, &RecordsQuery { limit: 1, ..of("cin_home") }, &home, End::Further).await;
    check_changes(source, &RecordsQuery { limit: 100, ..of("cin_work") }, 40).await;
    let unknown = RecordsQuery { limit: 1, ..of("cin_zzz") };
    check_records_refused(source, &unknown, "connection_not_found").await;
    check_records_refused(source, &records_of("nope"), "stream_not_declared").await;
    let expand = vec![Expansion { relation: "attachments".to_owned(), limit: Some(2) }];
    check_records_refused(source, &RecordsQuery { limit: 3, expand, ..of("cin_work") }, "invalid_expand")
        .await;
}

async fn recorded_records_and_windows(source: &BoundSource) {
    for (stream, record, field, expect) in [
        ("messages", "m2", "subject", json!("Work invoice 2 😀")),
        ("daily_stats", r#"["user_123","2026-04-01"]"#, "note", json!("compound stat day 1")),
        ("labels", "Projects/2026/Q2", "name", json!("Projects/2026/Q2")),
        ("labels", "my label", "name", json!("my label")),
    ] {
        check_record(source, &address("cin_work", stream, record), field, &expect).await;
    }
    let anywhere = RecordAddress { connection: None, ..address("cin_work", "messages", "shared-1") };
    check_record_refused(source, &RecordQuery::new(anywhere), "ambiguous_connection").await;
    let nowhere = address("cin_work", "messages", "zzz");
    check_record_refused(source, &RecordQuery::new(nowhere), "not_found").await;
    let expand = vec![Expansion { relation: "attachments".to_owned(), limit: Some(2) }];
    let expanded = RecordQuery { expand, ..RecordQuery::new(address("cin_work", "messages", "m2")) };
    check_record_refused(source, &expanded, "invalid_expand").await;
    let of = |field: &str, start: WindowStart, limit_chars: usize| WindowQuery {
        address: address("cin_work", "messages", "shared-1"),
        field: field.to_owned(),
        start,
        limit_chars,
    };
    let around = |text: &str, before, after| WindowStart::Around { text: text.to_owned(), before, after };
    let found = ("Quarterly overdraft report for the shar", 0, Some(10..19));
    check_window(source, &of("body", around("overdraft", 10, 20), 4_096), found).await;
    check_window(source, &of("body", WindowStart::Offset(9_999_999), 4_096), ("", 20_400, None)).await;
    let whole = source.window(&of("body", WindowStart::Offset(0), 4_096)).await.unwrap();
    let piece: String = whole.text.chars().skip(100).take(50).collect();
    check_window(source, &of("body", WindowStart::Offset(100), 50), (&piece, 100, None)).await;
    for (field, start, expect) in [
        ("body", around("zzzz", 1_024, 1_024), "query_not_found"),
        ("amount", WindowStart::Offset(0), "field_not_text"),
        ("nope", WindowStart::Offset(0), "field_not_granted"),
    ] {
        assert_eq!(code(source.window(&of(field, start, 4_096)).await), expect);
    }
}

async fn recorded_figures_and_searches(source: &BoundSource) {
    let of = |metric: Metric, field: Option<&str>, connection: Option<&str>| AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: connection.map(|id| id.parse().unwrap()),
        metric,
        field: field.map(str::to_owned),
        grouping: None,
        second_field: None,
        limit: 2,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    };
    let work = Some("cin_work");
    let number = |value: u64| Scalar::Number(value.into());
    for (query, expect) in [
        (of(Metric::Count, None, None), number(80)),
        (of(Metric::Sum, Some("amount"), work), number(8_190)),
        (of(Metric::CountDistinct, Some("from_email"), work), number(3)),
        (of(Metric::Min, Some("received_at"), work), Scalar::Text("2026-04-01T00:00:00.000Z".to_owned())),
    ] {
        check_figure(source, &query, &expect).await;
    }
    let grouping = Some(Grouping::Field("from_email".to_owned()));
    let expect = [("billing0@acme.test", "14"), ("billing1@acme.test", "13")];
    let by_sender = AggregateQuery { grouping, ..of(Metric::Count, None, work) };
    check_groups(source, &by_sender, &expect, Some((13, 40))).await;
    check_aggregate_refused(source, &of(Metric::Sum, Some("subject"), None), &["invalid_request"]).await;
    check_aggregate_refused(source, &of(Metric::Sum, None, None), &["invalid_request"]).await;
    let filter = filter(json!({"from_email": "billing1@acme.test"}));
    let filtered = AggregateQuery { filter: filter.clone(), ..of(Metric::Count, None, None) };
    check_aggregate_refused(source, &filtered, &["invalid_filter"]).await;
    check_search(source, &SearchQuery::new("invoice", 25), 50, End::Further).await;
    check_search(source, &SearchQuery::new("qqqqzzzz", 25), 0, End::Reached).await;
    let home = SearchQuery { connection: "cin_home".parse().ok(), ..SearchQuery::new("invoice", 2) };
    check_search(source, &home, 2, End::Further).await;
    let streams = vec!["messages".parse().unwrap()];
    let filtered = SearchQuery { filter, streams, ..SearchQuery::new("invoice", 2) };
    assert_eq!(code(source.search(&filtered).await), "invalid_filter");
    let streams = vec!["nope".parse().unwrap()];
    let ungranted = SearchQuery { streams, ..SearchQuery::new("invoice", 25) };
    assert_eq!(code(source.search(&ungranted).await), "stream_not_declared");
}

/// Returns records with values of all kinds, many of them equal, and keys of two parts. Each connection has some of
/// them.
fn mixed(connection: usize, with_field: bool) -> String {
    let values = [
        json!(null),
        json!(0),
        json!(-0.0),
        json!(9),
        json!(10.5),
        json!(true),
        json!("9"),
        json!(""),
        json!("2026-04-01"),
        json!("2026-04-01T00:00:00Z"),
        json!("2026-04-01T02:00:00.000+02:00"),
        json!("2026-04-01T00:00:00.5Z"),
        json!("2026-03-31T23:30:00-02:00"),
        json!("2026-04-01T00:00:00 is no moment"),
        json!(["a list"]),
        json!("é"),
    ];
    let mut lines = String::new();
    for number in 0..64_usize {
        if (number * 7 + connection).is_multiple_of(3) {
            continue;
        }
        let value = &values[(number + connection * 5) % values.len()];
        let mut data = json!({"n": number});
        if with_field && !number.is_multiple_of(11) {
            data["at"] = value.clone();
        }
        // The emission times have another order, and some are unknown.
        let at = (97 - number) * 13 % 7;
        let emitted_at = if number.is_multiple_of(5) {
            Value::Null
        } else {
            json!(format!("2026-01-0{}T00:00:00+0{at}:00", 1 + at))
        };
        let key = if number.is_multiple_of(2) {
            json!(["user", number.to_string()])
        } else {
            json!(format!("k{}", number / 4))
        };
        let line = json!({"stream": "mixed", "key": key, "data": data, "emitted_at": emitted_at});
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    lines
}

#[tokio::test]
async fn the_remote_client_gives_records_in_the_order_of_the_store() {
    // Sorted by a field that all connections have, by the emission time in all, and by both in one list. A schema lists
    // the connections of one connector together, and so does a list of records that are equal otherwise.
    for with_field in [[true, true, true], [false, false, false], [true, true, false]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mixed.db");
        let manifest = folder.path().join("manifest.json");
        let declared = json!({"protocol_version": "0.1.0", "connector_id": "https://registry.example/connectors/mixed",
            "streams": [{"name": "mixed", "cursor_field": "at"}]});
        std::fs::write(&manifest, declared.to_string()).unwrap();
        for (number, with_field) in with_field.into_iter().enumerate() {
            let (connection, file) = (format!("z{}", 3 - number), folder.path().join("records.ndjson"));
            std::fs::write(&file, mixed(number, with_field)).unwrap();
            let import =
                ["import", "records", text(&file), "--store", text(&path), "--connection", &connection];
            let output = if with_field {
                binary().args(import).args(["--manifest", text(&manifest)]).output().unwrap()
            } else {
                binary().args(import).output().unwrap()
            };
            assert!(output.status.success(), "{output:?}");
        }
        let store = open(&path);
        let server = HttpServer::start(["--store", text(&path)]);
        let remote = remote(&server.url(""), folder.path());
        for direction in [Direction::Descending, Direction::Ascending] {
            let query = RecordsQuery { direction, limit: 100, ..records_of("mixed") };
            let expect = walk(&store, &query).await;
            let mut forward =
                walk(&store, &RecordsQuery { direction: Direction::Ascending, ..query.clone() }).await;
            if direction == Direction::Descending {
                forward.reverse();
            }
            assert_eq!(expect, forward, "one direction is the other backwards");
            assert!(expect.len() > 100);
            for limit in [100, 9, 1] {
                check_order(&remote, &RecordsQuery { limit, ..query.clone() }, &expect, End::Reached).await;
            }
        }
    }
}

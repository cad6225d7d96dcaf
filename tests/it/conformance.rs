//! What every source has to do, asked of each kind of source in the same words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell::handle::{ConnectionId, RecordAddress};
use fetchwell::record::{Capability, Scalar};
use fetchwell::source::pdpp::{Credentials, Pdpp, ProviderUrl};
use fetchwell::source::store::Store;
use fetchwell::source::{
    AggregateQuery, Change, CountMode, Direction, Expansion, Filter, Granularity, Grouping, Metric,
    RecordQuery, RecordsQuery, SearchQuery, Selection, Source, SourceError, Start, StreamQuery, WindowQuery,
    WindowStart,
};
use serde_json::{Value, json};

use crate::support::{CREDENTIAL, HttpServer, connect, fetchwell, text};

/// Records in `messages` of each of the two connections.
const MESSAGES: usize = 40;

pub(crate) const MANIFEST: &str = include_str!("../../fixtures/conformance/manifest.json");

/// The corpus: two accounts of one connector whose record ids collide.
pub(crate) fn corpus() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("corpus.db");
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
            text(&store),
            "--connection",
            connection,
            "--name",
            label,
            "--manifest",
            text(&manifest),
        ]);
        assert!(output.status.success(), "{output:?}");
    }
    (folder, store)
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
    RecordsQuery::of(stream.parse().unwrap(), 25)
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

/// Every record of a question, page by page, as `connection/key`.
pub(crate) async fn walk(source: &dyn Source, query: &RecordsQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let page = source.records(&query).await.unwrap();
        assert!(page.rows.len() <= query.limit);
        seen.extend(page.rows.iter().map(name));
        let Some(next) = page.next else { return seen };
        assert!(!page.rows.is_empty(), "a page of nothing that goes on");
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

/// The code of a refusal, of fetchwell's own or passed on.
#[track_caller]
pub(crate) fn code<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> String {
    match answer.unwrap_err() {
        SourceError::CorrectQuery { fault, .. } => fault.code().to_owned(),
        SourceError::Refused(refusal) => refusal.code,
        SourceError::UseKnownField { .. } => "unknown_field".to_owned(),
        SourceError::UseKnownConnection { .. } => "connection_not_found".to_owned(),
        SourceError::ChooseConnection { .. } => "ambiguous_connection".to_owned(),
        SourceError::SearchAgain { .. } => "not_found".to_owned(),
        SourceError::RestartSearch => "invalid_cursor".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// All of it.
async fn conforms(source: &dyn Source) {
    describes_itself(source).await;
    pages(source).await;
    narrows(source).await;
    refuses(source).await;
    expands(source).await;
    reads_records(source).await;
    reads_windows(source).await;
    counts(source).await;
    tells_changes(source).await;
    searches(source).await;
}

async fn describes_itself(source: &dyn Source) {
    let schema = source.schema().await.unwrap();
    let ids: Vec<&str> = schema.connections.iter().map(|c| c.connection_id.as_str()).collect();
    assert_eq!(ids, ["cin_work", "cin_home"]);
    for connection in &schema.connections {
        let counts: Vec<(&str, Option<u64>)> =
            connection.streams.iter().map(|s| (s.name.as_str(), s.record_count)).collect();
        assert_eq!(counts, [("messages", Some(40)), ("attachments", Some(8)), ("daily_stats", Some(4))]);
        assert_eq!(connection.connector_key.as_deref(), Some("acme-mail"));
    }
    let query =
        StreamQuery { stream: "messages".parse().unwrap(), connection: Some("cin_home".parse().unwrap()) };
    let details = source.stream(&query).await.unwrap();
    let [messages] = details.as_slice() else { panic!("{details:?}") };
    assert_eq!(messages.display_name.as_deref(), Some("Home mail"));
    assert_eq!(messages.cursor_field.as_deref(), Some("received_at"));
    let amount = &messages.field("amount").unwrap();
    assert_eq!(amount.types, ["number"]);
    assert!(
        amount.capabilities.contains(&Capability::Sum) && amount.capabilities.contains(&Capability::Equal)
    );
    assert!(!messages.field("subject").unwrap().capabilities.contains(&Capability::Range));
    assert_eq!(messages.relation("attachments").unwrap().max_limit, Some(5));
    let everywhere = StreamQuery { connection: None, ..query };
    assert_eq!(source.stream(&everywhere).await.unwrap().len(), 2);
    let unknown = StreamQuery { stream: "nope".parse().unwrap(), connection: None };
    assert_eq!(code(source.stream(&unknown).await), "stream_not_declared");
}

async fn pages(source: &dyn Source) {
    for direction in [Direction::Descending, Direction::Ascending] {
        for limit in [1, 7, 40, 100] {
            let query = RecordsQuery { direction, limit, ..records_of("messages") };
            let all = walk(source, &query).await;
            assert_eq!(all.len(), 2 * MESSAGES, "{direction:?} {limit}");
            let mut unique = all.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), all.len(), "{direction:?} {limit}: repeated");
            let mut one =
                walk(source, &RecordsQuery { connection: Some("cin_work".parse().unwrap()), ..query }).await;
            assert_eq!(one.len(), MESSAGES);
            let newest = if direction == Direction::Descending { "m39" } else { "m0" };
            assert_eq!(one.remove(0), format!("cin_work/{newest}"));
            // Both accounts have the same times, so they take turns.
            assert!(all[..2].iter().all(|name| name.ends_with(&format!("/{newest}"))), "{all:?}");
        }
    }
    let page = source
        .records(&RecordsQuery { count: CountMode::Exact, limit: 3, ..records_of("messages") })
        .await
        .unwrap();
    let count = page.count.unwrap();
    assert_eq!((count.value, count.exact), (80, true));
    assert!(page.has_more && page.rows.len() == 3);
}

async fn narrows(source: &dyn Source) {
    for (conditions, expect) in [
        (json!({"from_email": "billing1@acme.test"}), 26),
        (json!({"amount": 21}), 2),
        (json!({"received_at": {"gte": "2026-04-02T00:00:00Z", "lt": "2026-04-03T00:00:00Z"}}), 8),
        (json!({"received_at": {"gt": "2026-04-10T12:00:00.000Z"}}), 2),
        (json!({"from_email": "billing1@acme.test", "received_at": {"lte": "2026-04-01T06:00:00Z"}}), 2),
        (json!({"from_email": "nobody"}), 0),
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

async fn refuses(source: &dyn Source) {
    let messages = || records_of("messages");
    for (query, expect) in [
        (records_of("nope"), "stream_not_declared"),
        (RecordsQuery { connection: Some("nobody".parse().unwrap()), ..messages() }, "connection_not_found"),
        (RecordsQuery { sort: Some("amount".to_owned()), ..messages() }, "invalid_sort"),
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
        assert_eq!(code(source.records(&query).await), expect, "{query:?}");
    }
    // A position belongs to one question.
    let first = source.records(&RecordsQuery { limit: 2, ..messages() }).await.unwrap();
    let after = Start::After(first.next.unwrap());
    for other in [
        RecordsQuery { direction: Direction::Ascending, ..messages() },
        RecordsQuery { filter: filter(json!({"amount": 21})), ..messages() },
        RecordsQuery { connection: Some("cin_home".parse().unwrap()), ..messages() },
        records_of("attachments"),
    ] {
        let query = RecordsQuery { start: after.clone(), ..other };
        assert_eq!(code(source.records(&query).await), "invalid_cursor", "{query:?}");
    }
    for nonsense in ["", "nonsense", "e30", "bnVsbA"] {
        let start = Start::After(fetchwell::source::RecordsPosition(nonsense.to_owned()));
        assert_eq!(code(source.records(&RecordsQuery { start, ..messages() }).await), "invalid_cursor");
    }
}

async fn expands(source: &dyn Source) {
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
    let query = RecordQuery { expand, ..RecordQuery::of(address("cin_home", "messages", "m1")) };
    let record = source.record(&query).await.unwrap();
    let first = &record.expanded[0].records[0];
    assert_eq!(first.address, address("cin_home", "attachments", "a7"));
    let expand = vec![Expansion { relation: "message".to_owned(), limit: None }];
    let query = RecordQuery { expand, ..RecordQuery::of(address("cin_home", "attachments", "a5")) };
    let record = source.record(&query).await.unwrap();
    assert!(!record.expanded[0].many);
    assert_eq!(record.expanded[0].records[0].address, address("cin_home", "messages", "m1"));
}

async fn reads_records(source: &dyn Source) {
    let compound = address("cin_work", "daily_stats", r#"["user_123","2026-04-01"]"#);
    let record = source.record(&RecordQuery::of(compound.clone())).await.unwrap();
    assert_eq!(record.address, compound);
    assert_eq!(record.data["note"], "compound stat day 1");
    let anywhere = RecordAddress { connection: None, ..address("cin_work", "messages", "m1") };
    assert_eq!(code(source.record(&RecordQuery::of(anywhere)).await), "ambiguous_connection");
    let nowhere = address("cin_work", "messages", "m999");
    assert_eq!(code(source.record(&RecordQuery::of(nowhere)).await), "not_found");
}

async fn reads_windows(source: &dyn Source) {
    let of = |field: &str, start: WindowStart, limit_chars: usize| WindowQuery {
        address: address("cin_work", "messages", "m7"),
        field: field.to_owned(),
        start,
        limit_chars,
    };
    let whole = source.record(&RecordQuery::of(address("cin_work", "messages", "m7"))).await.unwrap();
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
    let window = source.window(&of("body", around, 100)).await.unwrap();
    assert_eq!(window.text, "ice number 7. 👩");
    assert_eq!(window.found_chars, Some(23..31));
    let past = source.window(&of("body", WindowStart::Offset(1_000_000), 10)).await.unwrap();
    assert_eq!((past.text.as_str(), past.start_chars), ("", past.total_chars));
    let absent = WindowStart::Around { text: "zzzz".to_owned(), before: 0, after: 0 };
    assert_eq!(code(source.window(&of("body", absent, 10)).await), "query_not_found");
    assert_eq!(code(source.window(&of("amount", WindowStart::Offset(0), 10)).await), "field_not_text");
    assert_eq!(code(source.window(&of("nope", WindowStart::Offset(0), 10)).await), "field_not_found");
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn counts(source: &dyn Source) {
    let of = |metric: Metric, field: Option<&str>, grouping: Option<Grouping>| AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: Some("cin_work".parse().unwrap()),
        metric,
        field: field.map(str::to_owned),
        grouping,
        limit: 2,
        filter: Filter::default(),
    };
    let number = |value: u64| Some(Scalar::Number(value.into()));
    for (query, expect) in [
        (of(Metric::Count, None, None), number(40)),
        (AggregateQuery { connection: None, ..of(Metric::Count, None, None) }, number(80)),
        (of(Metric::Sum, Some("amount"), None), number(8_190)),
        (of(Metric::CountDistinct, Some("from_email"), None), number(3)),
        (
            of(Metric::Min, Some("received_at"), None),
            Some(Scalar::Text("2026-04-01T00:00:00.000Z".to_owned())),
        ),
        (
            AggregateQuery {
                filter: filter(json!({"from_email": "billing0@acme.test"})),
                ..of(Metric::Count, None, None)
            },
            number(14),
        ),
    ] {
        let answer = source.aggregate(&query).await.unwrap();
        let same = match (&answer.value, &expect) {
            (Some(Scalar::Number(a)), Some(Scalar::Number(b))) => a.as_f64() == b.as_f64(),
            (a, b) => a == b,
        };
        assert!(same, "{query:?}: {answer:?}");
    }
    let by_sender = of(Metric::Count, None, Some(Grouping::Field("from_email".to_owned())));
    let answer = source.aggregate(&by_sender).await.unwrap();
    let groups: Vec<(String, String)> = answer
        .groups
        .unwrap()
        .iter()
        .map(|group| (group.key.as_ref().unwrap().to_string(), group.value.as_ref().unwrap().to_string()))
        .collect();
    let expect = [("billing0@acme.test", "14"), ("billing1@acme.test", "13")];
    assert_eq!(groups, expect.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!((answer.other_count, answer.filtered_count), (Some(13), Some(40)));
    let by_day = |zone: &str| Grouping::Time {
        field: "received_at".to_owned(),
        granularity: Granularity::Day,
        time_zone: zone.parse().unwrap(),
    };
    for (zone, expect) in [
        ("UTC", [("2026-04-09", "4"), ("2026-04-10", "4")]),
        // The last message of each day is of the next day in Tokyo.
        ("Asia/Tokyo", [("2026-04-10", "4"), ("2026-04-11", "1")]),
    ] {
        let answer = source.aggregate(&of(Metric::Count, None, Some(by_day(zone)))).await.unwrap();
        let groups = answer.groups.unwrap();
        let shown: Vec<(String, String)> = groups
            .iter()
            .map(|group| (group.key.as_ref().unwrap().to_string(), group.value.as_ref().unwrap().to_string()))
            .collect();
        assert_eq!(shown, expect.map(|(key, value)| (key.to_owned(), value.to_owned())), "{zone}");
    }
    for query in [
        of(Metric::Sum, None, None),
        of(Metric::Sum, Some("subject"), None),
        of(Metric::Count, None, Some(Grouping::Field("nope".to_owned()))),
    ] {
        let refused = code(source.aggregate(&query).await);
        assert!(["invalid_argument", "invalid_request"].contains(&refused.as_str()), "{query:?}: {refused}");
    }
}

async fn tells_changes(source: &dyn Source) {
    let of = |start: Start| RecordsQuery {
        connection: Some("cin_work".parse().unwrap()),
        limit: 15,
        start,
        ..records_of("messages")
    };
    let mut start = Start::Changes(None);
    let mut seen = Vec::new();
    let last = loop {
        let page = source.records(&of(start)).await.unwrap();
        seen.extend(page.rows.iter().map(name));
        let token = page.next_changes.unwrap();
        if !page.has_more {
            break token;
        }
        start = Start::Changes(Some(token));
    };
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), MESSAGES);
    let nothing = source.records(&of(Start::Changes(Some(last)))).await.unwrap();
    assert!(nothing.rows.is_empty() && !nothing.has_more);
    let nonsense = Start::Changes(Some(fetchwell::source::ChangesToken("nonsense".to_owned())));
    assert_eq!(code(source.records(&of(nonsense)).await), "invalid_cursor");
}

async fn searches(source: &dyn Source) {
    let query = SearchQuery {
        streams: vec!["messages".parse().unwrap()],
        filter: filter(json!({"from_email": "billing1@acme.test"})),
        ..SearchQuery::of("invoice", 7)
    };
    let mut position = None;
    let mut seen = Vec::new();
    loop {
        let page = source.search(&SearchQuery { position, ..query.clone() }).await.unwrap();
        assert!(page.hits.len() <= 7);
        seen.extend(page.hits.iter().map(|hit| format!("{:?}", hit.id)));
        position = page.next;
        if position.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 26);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 26);
    let anywhere = SearchQuery { streams: Vec::new(), ..query };
    assert_eq!(code(source.search(&anywhere).await), "invalid_filter");
}

#[tokio::test]
async fn the_embedded_store_conforms() {
    let (_folder, path) = corpus();
    conforms(&open(&path)).await;
}

/// The same store through its own `/v1`, read by the client for other people's record servers.
#[tokio::test]
async fn the_store_conforms_through_its_own_api() {
    let (folder, path) = corpus();
    let server = HttpServer::start(["--store", text(&path)]);
    let provider = server.url("");
    connect(folder.path(), &provider, CREDENTIAL);
    let provider: ProviderUrl = provider.parse().unwrap();
    let credentials = Credentials::of(&provider, folder.path());
    let remote = Pdpp::new("remote".parse().unwrap(), provider, credentials, Duration::from_secs(20));
    conforms(&remote).await;
}

fn open(path: &Path) -> Store {
    Store::open("store".parse().unwrap(), path).unwrap()
}

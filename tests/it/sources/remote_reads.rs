//! The other reads of a record server, over a real socket: streams, lists, windows and aggregates, their requests, and
//! their errors.

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{Capability, Record, Window};
use fetchwell_lab::recorded::{RecordedSource, fat_records_reply};
use fetchwell_source::{
    AggregateQuery, BoundSource, Change, ChangesToken, Count, CountMode, Direction, Expansion, Filter,
    Granularity, Grouping, Metric, QueryFault, RecordQuery, RecordsPage, RecordsPosition, RecordsQuery,
    SearchMode, SearchPosition, SearchQuery, Selection, SourceError, Start, StreamQuery, WindowQuery,
    WindowStart,
};
use serde_json::{Value, json};

use crate::support::remote::Remote;
use crate::support::{Reply, Request, recorded};

fn messages() -> RecordsQuery {
    RecordsQuery::new("messages".parse().unwrap(), 2)
}

fn of_work() -> RecordsQuery {
    RecordsQuery { connection: "cin_work".parse().ok(), ..messages() }
}

fn address(connection: Option<&str>, stream: &str, record: &str) -> RecordAddress {
    RecordAddress {
        connection: connection.map(|id| id.parse().unwrap()),
        stream: stream.parse().unwrap(),
        record: record.parse().unwrap(),
    }
}

fn present(page: &RecordsPage) -> Vec<&Record> {
    fn record(row: &Change) -> Option<&Record> {
        match row {
            Change::Present(record) => Some(record),
            Change::Deleted { .. } => None,
        }
    }
    page.rows.iter().filter_map(record).collect()
}

fn names(page: &RecordsPage) -> Vec<String> {
    let name = |record: &&Record| {
        format!(
            "{}/{}",
            record.address.connection.as_ref().map_or("?", |id| id.as_str()),
            record.address.record
        )
    };
    present(page).iter().map(name).collect()
}

#[track_caller]
fn fault<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> (QueryFault, String) {
    match answer {
        Err(SourceError::InvalidQuery { fault, hint, .. }) => (fault, hint),
        Err(SourceError::Refused(refusal)) if refusal.fault.is_some() => refusal.correction().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn code<Answer: std::fmt::Debug>(answer: Result<Answer, SourceError>) -> String {
    match answer {
        Err(SourceError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_connection_is_read_page_by_page() {
    let remote = Remote::start(|request| {
        if request.line.contains("cursor=") {
            recorded("records-conn-cursor-page2")
        } else {
            recorded("records-conn-limit2")
        }
    });
    let first = remote.pdpp.records(&of_work()).await.unwrap();
    assert_eq!(names(&first), ["cin_work/m27", "cin_work/m26"]);
    let record = present(&first)[0];
    assert_eq!(record.data["subject"], "Work invoice 27 😀");
    assert_eq!(record.display_name.as_deref(), Some("Work mail"));
    assert_eq!(record.emitted_at.as_deref(), Some("2026-04-28T00:00:00.000Z"));
    let second = RecordsQuery { start: Start::After(first.next.clone().unwrap()), ..of_work() };
    let page = remote.pdpp.records(&second).await.unwrap();
    assert_eq!(names(&page), ["cin_work/m25", "cin_work/m24"]);
    assert!(page.has_more && page.next != first.next);
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/records?limit=2&order=desc&connection_id=cin_work",
            "/v1/streams/messages/records?limit=2&order=desc&connection_id=cin_work&cursor=eyJjdXJzb3JfdmFsdWUiOiIyMDI2LTA0LTI3VDA4OjAwOjAwLjAwMFoiLCJraW5kIjoicGFnZSIsIm9yZGVyIjoiREVTQyIsInByaW1hcnlfa2V5IjpbIm0yNiJdLCJzZXNzaW9uIjoicmVjb3JkcyJ9",
        ]
    );
}

#[tokio::test]
async fn all_arguments_are_sent() {
    let remote = Remote::start(|_| recorded("records-connection"));
    let filter: Filter = serde_json::from_str(r#"{"from":"a@b","amount":{"gte":1,"lt":2}}"#).unwrap();
    let query = RecordsQuery {
        selection: Selection::Fields(vec!["subject".to_owned(), "amount".to_owned()]),
        filter,
        sort: Some("received_at".to_owned()),
        count: CountMode::Exact,
        expand: vec![Expansion { relation: "files".to_owned(), limit: Some(3) }],
        limit: 1,
        ..of_work()
    };
    remote.pdpp.records(&query).await.unwrap();
    let view = RecordsQuery { selection: Selection::View("short".to_owned()), limit: 1, ..of_work() };
    remote.pdpp.records(&RecordsQuery { direction: Direction::Ascending, ..view }).await.unwrap();
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/records?limit=1&fields=subject&fields=amount&filter[from]=a@b&filter[amount][gte]=1&filter[amount][lt]=2&expand=files&expand_limit[files]=3&count=exact&sort=-received_at&connection_id=cin_work",
            "/v1/streams/messages/records?limit=1&view=short&order=asc&connection_id=cin_work",
        ]
    );
}

/// Returns replies of two connections of 40 records each. Adjacent records share their time, and one record of
/// `cin_home` is missing.
fn two_accounts(request: &Request) -> Reply {
    let url = url::Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
    let param =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if url.path() == "/v1/schema" {
        return recorded("schema-compact-stream");
    }
    let connection = param("connection_id").unwrap();
    let limit: usize = param("limit").unwrap().parse().unwrap();
    let time = |number: usize| if connection == "cin_home" { number / 3 } else { number / 2 + 10 };
    let mut rows: Vec<(usize, usize)> = (0..40).map(|number| (time(number), number)).collect();
    if param("order").as_deref() == Some("desc") {
        rows.reverse();
    }
    let start: usize = param("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let data: Vec<Value> = rows
        .iter()
        .skip(start)
        .take(limit)
        .map(|(time, number)| {
            json!({"id": format!("m{number:02}"), "stream": "messages", "connection_id": connection,
                "emitted_at": format!("2026-01-01T00:00:{time:02}Z"), "data": {"n": number}})
        })
        .collect();
    let end = start + data.len();
    let mut body = json!({"data": data, "has_more": end < 40});
    if end < 40 {
        body["next_cursor"] = json!(end.to_string());
    }
    if param("count").is_some() {
        body["meta"] = json!({"count": {"kind": "exact", "value": 40}});
    }
    Reply::Json(200, body.to_string())
}

#[tokio::test]
async fn two_connections_are_one_list_without_loss_or_repetition() {
    for direction in [Direction::Descending, Direction::Ascending] {
        let remote = Remote::start(two_accounts);
        let mut query = RecordsQuery { limit: 7, direction, count: CountMode::Exact, ..messages() };
        let mut seen: Vec<(String, String)> = Vec::new();
        let mut pages = Vec::new();
        loop {
            let page = remote.pdpp.records(&query).await.unwrap();
            pages.push(page.rows.len());
            seen.extend(
                present(&page)
                    .iter()
                    .zip(names(&page))
                    .map(|(r, name)| (r.emitted_at.clone().unwrap(), name)),
            );
            assert_eq!(page.count, Some(Count::exact(80)));
            assert_eq!(page.has_more, page.next.is_some());
            let Some(next) = page.next else { break };
            query.start = Start::After(next);
        }
        assert_eq!(pages, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 3]);
        let different: std::collections::BTreeSet<&String> = seen.iter().map(|(_, name)| name).collect();
        assert_eq!((seen.len(), different.len()), (80, 80), "lost or repeated");
        let mut times: Vec<&String> = seen.iter().map(|(time, _)| time).collect();
        if direction == Direction::Descending {
            times.reverse();
        }
        assert!(times.is_sorted(), "{seen:?}");
        // The connections are looked up once; each page reads each connection at most twice.
        let asked = remote.asked();
        assert_eq!(asked[0], "/v1/schema?view=compact&stream=messages");
        assert_eq!(asked.iter().filter(|line| line.starts_with("/v1/schema")).count(), 2, "{asked:#?}");
        assert!(asked.len() <= 2 + 12 * 4, "{} requests", asked.len());
    }
}

#[tokio::test]
async fn connections_are_merged_by_the_streams_own_order() {
    // The record that was emitted first is the newer one.
    let remote = Remote::start(|request| {
        if request.line.contains("detail=full") {
            let stream = json!({"object": "stream_metadata", "name": "messages", "cursor_field": "at",
                "field_capabilities": {"at": {}, "n": {}}, "granted_connections": [{"connection_id": "cin_work"}]});
            return Reply::Json(200, json!({"connectors": [{"streams": [stream]}]}).to_string());
        }
        if request.line.contains("/v1/schema") {
            return recorded("schema-compact-stream");
        }
        let (at, emitted) =
            if request.line.contains("cin_home") { (2, "2026-01-01") } else { (1, "2026-01-02") };
        let row =
            json!({"id": "m", "data": {"at": at, "n": 1}, "emitted_at": format!("{emitted}T00:00:00Z")});
        Reply::Json(200, json!({"data": [row], "has_more": false}).to_string())
    });
    let page = remote.pdpp.records(&messages()).await.unwrap();
    assert_eq!(names(&page), ["cin_home/m", "cin_work/m"]);
    assert_eq!((page.has_more, page.next), (false, None));
    // A field that only the order needs is requested, and not shown.
    let fields = RecordsQuery { selection: Selection::Fields(vec!["n".to_owned()]), ..messages() };
    let page = remote.pdpp.records(&fields).await.unwrap();
    assert_eq!(names(&page), ["cin_home/m", "cin_work/m"]);
    assert!(present(&page).iter().all(|record| Value::Object(record.data.clone()) == json!({"n": 1})));
    let asked = remote.asked();
    assert_eq!(asked[1], "/v1/schema?detail=full&stream=messages&connection_id=cin_work");
    assert!(
        asked.contains(
            &"/v1/streams/messages/records?limit=2&fields=at&fields=n&order=desc&connection_id=cin_home"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn one_connection_that_fails_fails_the_list() {
    let remote = Remote::start(|request| {
        if request.line.contains("connection_id=cin_home") {
            recorded("records-connection-unknown")
        } else {
            two_accounts(request)
        }
    });
    assert_eq!(code(remote.pdpp.records(&messages()).await), "context.instance_mismatch");
}

#[tokio::test]
async fn a_server_without_a_schema_is_read_as_one_list() {
    for schema in [Reply::Json(404, "{}".to_owned()), Reply::Json(200, "{}".to_owned())] {
        let remote = Remote::start(move |request| {
            if request.line.contains("/v1/schema") {
                schema.clone()
            } else {
                Reply::Json(200, fat_records_reply())
            }
        });
        // The server gives 500 rows whatever the limit, and no cursor.
        let mut query = RecordsQuery { stream: "mail".parse().unwrap(), limit: 100, ..messages() };
        let mut seen = Vec::new();
        loop {
            let page = remote.pdpp.records(&query).await.unwrap();
            assert_eq!((page.rows.len(), page.has_more), (100, true));
            seen.extend(names(&page));
            let Some(next) = page.next else {
                assert!(page.notes[0].contains("no way to read on"), "{:?}", page.notes);
                break;
            };
            query.start = Start::After(next);
        }
        let expect: Vec<String> = (0..500).map(|number| format!("conn_1/m{number}")).collect();
        assert_eq!(seen, expect);
    }
}

#[tokio::test]
async fn recorded_lists_are_read_as_remote_ones() {
    let source = BoundSource::from(RecordedSource {
        name: "fixture".parse().unwrap(),
        search: String::new(),
        record: String::new(),
        records: fat_records_reply(),
        schema: String::new(),
    });
    let query = RecordsQuery { limit: 100, ..of_work() };
    let first = source.records(&query).await.unwrap();
    assert_eq!((first.rows.len(), first.has_more), (100, true));
    assert_eq!(present(&first)[0].data["text"].as_str().unwrap().len(), 1_500);
    let second =
        source.records(&RecordsQuery { start: Start::After(first.next.unwrap()), ..query }).await.unwrap();
    assert_eq!(names(&second)[0], "conn_1/m100");
}

#[tokio::test]
async fn records_without_a_valid_name_are_left_out_and_counted() {
    let remote = Remote::start(|_| {
        Reply::Json(200, json!({"data": [{"id": ".."}, {"id": "m1"}, 7, {"id": "m2"}]}).to_string())
    });
    let page = remote.pdpp.records(&of_work()).await.unwrap();
    assert_eq!(names(&page), ["cin_work/m1", "cin_work/m2"]);
    assert_eq!(page.notes, ["2 records are left out, because no handle can name them."]);
}

#[tokio::test]
async fn changes_are_read_for_one_connection() {
    let remote = Remote::start(|request| match &*request.line {
        line if line.contains("/v1/schema") => recorded("schema-compact-stream"),
        line if line.contains("changes_since=beginning") => Reply::Json(
            200,
            json!({"data": [
                {"id": "m1", "stream": "messages", "deleted": true, "deleted_at": "2026-01-01T00:00:00Z"},
                {"id": "m2", "stream": "messages", "data": {"n": 2}},
                {"id": "m3", "stream": "messages", "data": {"n": 3}},
            ], "has_more": false, "next_changes_since": "dG9rZW4="})
            .to_string(),
        ),
        _ => recorded("records-changes-next"),
    });
    let changes = |since: Option<ChangesToken>| RecordsQuery { start: Start::Changes(since), ..of_work() };
    // Two of three changes are requested; the token leads to the third, and then to the server's own token.
    let first = remote.pdpp.records(&changes(None)).await.unwrap();
    assert!(
        matches!(&first.rows[0], Change::Deleted { address: gone, deleted_at: Some(_) } if *gone == address(Some("cin_work"), "messages", "m1"))
    );
    assert_eq!((names(&first), first.has_more, &first.next), (vec!["cin_work/m2".to_owned()], true, &None));
    let second = remote.pdpp.records(&changes(first.next_changes)).await.unwrap();
    assert_eq!((names(&second), second.has_more), (vec!["cin_work/m3".to_owned()], false));
    let third = remote.pdpp.records(&changes(second.next_changes)).await.unwrap();
    assert_eq!((third.rows.len(), third.has_more), (0, false));
    assert!(third.next_changes.is_some());
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/records?limit=2&changes_since=beginning&connection_id=cin_work",
            "/v1/streams/messages/records?limit=4&changes_since=beginning&connection_id=cin_work",
            "/v1/streams/messages/records?limit=2&changes_since=dG9rZW4=&connection_id=cin_work",
        ]
    );
    let several = RecordsQuery { connection: None, ..changes(None) };
    let (refused, hint) = fault(remote.pdpp.records(&several).await);
    assert_eq!(refused, QueryFault::InvalidArgument);
    assert_eq!(hint, "Set `connection_id` to one of: cin_work, cin_home.");
    let malformed =
        fault(remote.pdpp.records(&changes(Some(ChangesToken::Unverified("{\"x\":1}".to_owned())))).await);
    assert_eq!(malformed.0, QueryFault::MalformedCursor);
}

#[tokio::test]
async fn invalid_positions_are_distinguished() {
    let after = |position: &str| RecordsQuery {
        start: Start::After(RecordsPosition(position.to_owned())),
        ..of_work()
    };
    let remote = Remote::start(|_| recorded("records-bad-cursor"));
    assert_eq!(fault(remote.pdpp.records(&after("garbage")).await).0, QueryFault::MalformedCursor);
    let first = Remote::start(|_| recorded("records-conn-limit2"));
    let next = first.pdpp.records(&of_work()).await.unwrap().next.unwrap();
    let question = next.0.split(' ').next().unwrap();
    let of_home = RecordsQuery {
        connection: Some("cin_home".parse().unwrap()),
        start: Start::After(next.clone()),
        ..of_work()
    };
    assert_eq!(fault(remote.pdpp.records(&of_home).await).0, QueryFault::MismatchedCursor);
    assert_eq!(fault(remote.pdpp.records(&after(question)).await).0, QueryFault::MalformedCursor);
    assert!(remote.asked().is_empty());
    let of_work = &format!(r#"{question} {{"lanes":[{{"name":{{"connection":"cin_work"}},"cursor":"x"}}]}}"#);
    assert_eq!(fault(remote.pdpp.records(&after(of_work)).await).0, QueryFault::MismatchedCursor);
    assert_eq!(remote.asked().len(), 1, "the server itself refused it");
    let expired = json!({"error": {"code": "cursor_expired", "message": "too old"}}).to_string();
    let remote = Remote::start(move |_| Reply::Json(410, expired.clone()));
    assert_eq!(fault(remote.pdpp.records(&after(of_work)).await).0, QueryFault::ExpiredCursor);
    let changes = RecordsQuery {
        start: Start::Changes(Some(ChangesToken::Unverified("old".to_owned()))),
        ..after(of_work)
    };
    let (refused, hint) = fault(remote.pdpp.records(&changes).await);
    assert_eq!(refused, QueryFault::ExpiredCursor);
    assert!(hint.contains("beginning"), "{hint}");
}

#[tokio::test]
async fn a_stream_with_compound_keys_says_that_it_has_one_page() {
    let remote = Remote::start(|request| {
        if request.line.contains("cursor=") {
            let error = json!({"code": "api_error", "type": "api_error",
                "message": "cursor seek is not implemented for multi-part primary keys"});
            return Reply::Json(500, json!({ "error": error }).to_string());
        }
        let row = |key: &str| json!({"id": key, "data": {"n": 1}});
        let data = json!([row(r#"["u","1"]"#), row(r#"["u","2"]"#)]);
        Reply::Json(200, json!({"data": data, "has_more": true, "next_cursor": "c"}).to_string())
    });
    let first = remote.pdpp.records(&of_work()).await.unwrap();
    assert_eq!((first.rows.len(), first.has_more), (2, true));
    let on = RecordsQuery { start: Start::After(first.next.unwrap()), ..of_work() };
    let (refused, hint) = fault(remote.pdpp.records(&on).await);
    assert_eq!(refused, QueryFault::NotSupported);
    assert!(hint.contains("without `cursor`, with `limit` 100"), "{hint}");
}

#[tokio::test]
async fn requests_that_client_tokens_may_not_make_have_a_hint() {
    let filter: Filter = serde_json::from_str(r#"{"from_email":"a"}"#).unwrap();
    for (reply, expect, part) in [
        ("records-filter-exact", QueryFault::InvalidFilter, "leave `filter` out"),
        ("records-expand", QueryFault::InvalidExpand, "leave `expand`"),
        ("records-view", QueryFault::InvalidView, "leave `view` out"),
    ] {
        let remote = Remote::start(move |_| recorded(reply));
        let (refused, hint) = fault(remote.pdpp.records(&of_work()).await);
        assert_eq!(refused, expect);
        assert!(hint.contains(part), "{hint}");
    }
    let remote = Remote::start(|_| recorded("search-filter"));
    let query = SearchQuery {
        filter: filter.clone(),
        streams: vec!["messages".parse().unwrap()],
        mode: SearchMode::Lexical,
        ..SearchQuery::new("invoice", 2)
    };
    assert_eq!(fault(remote.pdpp.search(&query).await).0, QueryFault::InvalidFilter);
    assert_eq!(remote.asked(), ["/v1/search?q=invoice&limit=2&streams=messages&filter[from_email]=a"]);
    let remote = Remote::start(|_| recorded("record-expand"));
    let expand = vec![Expansion { relation: "attachments".to_owned(), limit: Some(2) }];
    let query = RecordQuery { expand, ..RecordQuery::new(address(Some("cin_work"), "messages", "m2")) };
    assert_eq!(fault(remote.pdpp.record(&query).await).0, QueryFault::InvalidExpand);
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/records/m2?connection_id=cin_work&expand=attachments&expand_limit[attachments]=2"
        ]
    );
    let remote = Remote::start(|_| recorded("agg-filter"));
    assert_eq!(
        fault(remote.pdpp.aggregate(&AggregateQuery { filter, ..count() }).await).0,
        QueryFault::InvalidFilter
    );
}

#[tokio::test]
async fn other_refusals_keep_their_codes() {
    for (reply, expect) in [
        ("records-fields-unknown", "unknown_field"),
        ("records-sort-unsupported", "invalid_sort"),
        ("records-connection-unknown", "context.instance_mismatch"),
        ("records-changes-bad", "invalid_argument"),
    ] {
        let remote = Remote::start(move |_| recorded(reply));
        assert_eq!(code(remote.pdpp.records(&of_work()).await), expect);
    }
    for (reply, expect) in [
        ("fw-nontext", "field_not_text"),
        ("fw-q-miss", "query_not_found"),
        ("fw-missing", "field_not_granted"),
        ("fw-noconn", "ambiguous_connection"),
    ] {
        let remote = Remote::start(move |_| recorded(reply));
        assert_eq!(code(remote.pdpp.window(&body_of("shared-1", 0)).await), expect);
    }
    let remote = Remote::start(|_| recorded("agg-badfield"));
    assert_eq!(code(remote.pdpp.aggregate(&count()).await), "invalid_request");
}

#[tokio::test]
async fn a_search_uses_the_route_of_its_mode() {
    let remote = Remote::start(|request| match &*request.line {
        line if line.contains("/hybrid") => recorded("search-hybrid"),
        line if line.contains("/semantic") => recorded("search-semantic"),
        _ => recorded("search-lexical"),
    });
    let mode = |mode, position: Option<&str>| SearchQuery {
        mode,
        position: position.map(|position| SearchPosition(position.to_owned())),
        ..SearchQuery::new("invoice", 2)
    };
    let semantic = remote.pdpp.search(&mode(SearchMode::Semantic, Some("sem1.x"))).await.unwrap();
    assert!(semantic.next.is_some());
    let hybrid = remote.pdpp.search(&mode(SearchMode::Hybrid, None)).await.unwrap();
    assert_eq!((hybrid.hits.len(), &hybrid.next), (2, &None));
    // Hybrid search gives no position; this one belongs to a search by words.
    let words = remote.pdpp.search(&mode(SearchMode::Hybrid, Some("x"))).await.unwrap();
    assert!(words.lexical_instead && !hybrid.lexical_instead && !semantic.lexical_instead);
    assert_eq!(
        remote.asked(),
        [
            "/v1/search/semantic?q=invoice&limit=2&cursor=sem1.x",
            "/.well-known/oauth-protected-resource?",
            "/v1/search/hybrid?q=invoice&limit=2",
            "/v1/search?q=invoice&limit=2&cursor=x",
        ]
    );
    let remote = Remote::start(|_| {
        Reply::Json(200, json!({"data": [], "has_more": true, "next_cursor": "made up"}).to_string())
    });
    assert_eq!(remote.pdpp.search(&mode(SearchMode::Hybrid, None)).await.unwrap().next, None);
}

#[tokio::test]
async fn a_record_is_expanded_with_its_related_records() {
    let remote = Remote::start(|_| {
        let file = json!({"id": "f1", "stream": "files", "data": {"name": "a.pdf"}});
        let body = json!({"id": "m2", "stream": "messages", "data": {"n": 1},
            "expanded": {"attachments": {"object": "list", "data": [file], "has_more": true}}});
        Reply::Json(200, body.to_string())
    });
    let record = remote.pdpp.record(&RecordQuery::new(address(Some("c"), "messages", "m2"))).await.unwrap();
    let attachments = &record.expanded[0];
    assert_eq!((&*attachments.relation, attachments.many, attachments.has_more), ("attachments", true, true));
    assert_eq!(attachments.records[0].address, address(Some("c"), "files", "f1"));
}

fn body_of(record: &str, offset: usize) -> WindowQuery {
    WindowQuery {
        address: address(Some("cin_work"), "messages", record),
        field: "body".to_owned(),
        start: WindowStart::Offset(offset),
        limit_chars: 50,
    }
}

#[tokio::test]
async fn windows_are_read_by_place_and_by_text() {
    let remote =
        Remote::start(
            |request| if request.line.contains("q=") { recorded("fw-q") } else { recorded("fw-offset") },
        );
    let window = remote.pdpp.window(&body_of("shared-1", 100)).await.unwrap();
    assert_eq!((window.start_chars, window.end_chars(), window.total_chars), (100, 150, 20_400));
    let around = |before, after| WindowQuery {
        start: WindowStart::Around { text: "overdraft".to_owned(), before, after },
        ..body_of("shared-1", 0)
    };
    let window: Window = remote.pdpp.window(&around(10, 20)).await.unwrap();
    assert_eq!((window.start_chars, window.found_chars), (0, Some(10..19)));
    // Of at most 50 characters, 9 in the middle are the text of the search.
    remote.pdpp.window(&around(30, 9_999)).await.unwrap();
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/records/shared-1/field-window?field=body&connection_id=cin_work&offset_chars=100&limit_chars=50",
            "/v1/streams/messages/records/shared-1/field-window?field=body&connection_id=cin_work&q=overdraft&before_chars=10&after_chars=20",
            "/v1/streams/messages/records/shared-1/field-window?field=body&connection_id=cin_work&q=overdraft&before_chars=20&after_chars=21",
        ]
    );
}

/// A server may compare case-sensitively; `q` does not.
#[tokio::test]
async fn a_text_is_found_in_any_case_on_a_case_sensitive_server() {
    let remote = Remote::start(|request| {
        let body = format!("{}Overdraft Fee{}", "a".repeat(100), "b".repeat(100));
        match &*request.line {
            line if line.contains("q=Overdraft") => recorded("fw-q"),
            line if line.contains("/field-window") => {
                Reply::Json(404, json!({"error": {"code": "query_not_found", "message": "no"}}).to_string())
            }
            _ => {
                let record = json!({"id": "m1", "stream": "messages", "connection_id": "cin_work",
                    "data": {"body": body}});
                Reply::Json(200, record.to_string())
            }
        }
    });
    let around = |text: &str| WindowQuery {
        start: WindowStart::Around { text: text.to_owned(), before: 500, after: 500 },
        ..body_of("m1", 0)
    };
    let window = remote.pdpp.window(&around("OVERDRAFT fee")).await.unwrap();
    assert_eq!((window.start_chars, window.end_chars(), &window.found_chars), (82, 132, &Some(100..113)));
    assert_eq!(window.total_chars, 213);
    assert_eq!(remote.asked()[1], "/v1/streams/messages/records/m1?connection_id=cin_work&fields=body");
    assert_eq!(code(remote.pdpp.window(&around("overdue")).await), "query_not_found");
}

#[tokio::test]
async fn windows_of_a_text_of_emoji_join_to_the_text() {
    let text = "Work invoice 😀 für Ä 👩‍👩‍👧 ".repeat(40);
    let whole: Vec<char> = text.chars().collect();
    let remote = Remote::start(move |request| {
        let url = url::Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
        let number =
            |name| url.query_pairs().find(|(key, _)| key == name).unwrap().1.parse::<usize>().unwrap();
        let start = number("offset_chars").min(whole.len());
        let piece: String = whole.iter().skip(start).take(number("limit_chars")).collect();
        // The reference server counts wrongly: it adds UTF-16 units to code points.
        let wrong = start + piece.encode_utf16().count();
        let window = json!({"text": piece, "start_chars": start, "end_chars": wrong, "next_offset_chars": wrong,
            "total_chars": whole.len(), "has_more": true});
        Reply::Json(200, json!({"object": "field_window", "window": window}).to_string())
    });
    let mut put_together = String::new();
    let mut offset = 0;
    loop {
        let window = remote.pdpp.window(&body_of("m1", offset)).await.unwrap();
        assert_eq!(window.start_chars, offset);
        put_together.push_str(&window.text);
        offset = window.end_chars();
        if offset >= window.total_chars {
            break;
        }
    }
    assert_eq!(put_together, text);
}

#[tokio::test]
async fn a_key_with_a_percent_sign_has_windows_too() {
    let remote = Remote::start(|request| {
        let error =
            |code: &str| Reply::Json(404, json!({"error": {"code": code, "message": "no"}}).to_string());
        match &*request.line {
            line if line.contains("/records/100%2525/field-window") && line.contains("q=zzz") => {
                error("query_not_found")
            }
            line if line.contains("/records/100%2525/field-window") => recorded("fw-default"),
            line if line.contains("/records/1%25/field-window") => error("query_not_found"),
            line if line.contains("/records/1%25?") => {
                let record =
                    json!({"id": "1%", "stream": "messages", "data": {"body": "nothing of the kind"}});
                Reply::Json(200, record.to_string())
            }
            _ => error("not_found"),
        }
    });
    let window = remote.pdpp.window(&body_of("100%", 0)).await.unwrap();
    assert_eq!(window.address, address(Some("cin_work"), "messages", "100%"));
    assert_eq!(remote.asked().len(), 2);
    let around = |record| WindowQuery {
        start: WindowStart::Around { text: "zzz".to_owned(), before: 1, after: 1 },
        ..body_of(record, 0)
    };
    assert_eq!(code(remote.pdpp.window(&around("100%")).await), "query_not_found");
    // A server that decodes once found the record, so only the text in another case is tried again.
    let before = remote.asked().len();
    assert_eq!(code(remote.pdpp.window(&around("1%")).await), "query_not_found");
    assert_eq!(remote.asked().len(), before + 2);
}

fn count() -> AggregateQuery {
    AggregateQuery {
        stream: "messages".parse().unwrap(),
        connection: None,
        metric: Metric::Count,
        field: None,
        grouping: None,
        second_field: None,
        limit: 2,
        filter: Filter::default(),
        purpose: fetchwell_source::Purpose::Answer,
    }
}

#[tokio::test]
async fn figures_are_read_with_and_without_groups() {
    let remote = Remote::start(|request| match &*request.line {
        line if line.contains("group_by") => recorded("agg-group-by"),
        line if line.contains("metric=sum") => recorded("agg-sum"),
        _ => recorded("agg-count"),
    });
    assert_eq!(remote.pdpp.aggregate(&count()).await.unwrap().filtered_count, Some(80));
    let work = "cin_work".parse().ok();
    let sum =
        AggregateQuery { metric: Metric::Sum, field: Some("amount".to_owned()), connection: work, ..count() };
    assert_eq!(remote.pdpp.aggregate(&sum).await.unwrap().value.unwrap().to_string(), "8190");
    let grouped = |grouping| AggregateQuery { grouping: Some(grouping), ..count() };
    let by_sender = grouped(Grouping::Field("from_email".to_owned()));
    let answer = remote.pdpp.aggregate(&by_sender).await.unwrap();
    assert_eq!((answer.groups.unwrap().len(), answer.other_count), (2, Some(13)));
    let by_week = grouped(Grouping::Time {
        field: "received_at".to_owned(),
        granularity: Granularity::Week,
        time_zone: "Europe/Oslo".parse().unwrap(),
    });
    remote.pdpp.aggregate(&by_week).await.unwrap();
    assert_eq!(
        remote.asked(),
        [
            "/v1/streams/messages/aggregate?metric=count",
            "/v1/streams/messages/aggregate?metric=sum&field=amount&connection_id=cin_work",
            "/v1/streams/messages/aggregate?metric=count&group_by=from_email&limit=100",
            "/v1/streams/messages/aggregate?metric=count&group_by_time=received_at&granularity=week&time_zone=Europe/Oslo&limit=100",
        ]
    );
}

fn described(connection: Option<&str>) -> StreamQuery {
    StreamQuery { stream: "messages".parse().unwrap(), connection: connection.map(|id| id.parse().unwrap()) }
}

#[tokio::test]
async fn a_stream_is_described_in_full_if_the_server_can() {
    let remote = Remote::start(|request| {
        if request.line.contains("detail=full") {
            recorded("schema-detail-full-stream-conn")
        } else {
            recorded("schema-compact-stream")
        }
    });
    let one = remote.pdpp.stream(&described(Some("cin_work"))).await.unwrap().details;
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].declaration.as_ref().unwrap()["object"], "stream_metadata");
    let both = remote.pdpp.stream(&described(None)).await.unwrap().details;
    let ids: Vec<&str> = both.iter().map(|detail| detail.connection_id.as_str()).collect();
    assert_eq!(ids, ["cin_work", "cin_home"]);
    assert_eq!(both[0].fields.len(), 10);
    assert_eq!(
        remote.asked(),
        [
            "/v1/schema?detail=full&stream=messages&connection_id=cin_work",
            "/v1/schema?view=compact&stream=messages",
        ]
    );
    // If a server refuses the full form, the compact form is used.
    let remote = Remote::start(|request| {
        if request.line.contains("detail=full") {
            recorded("schema-detail-full-global")
        } else {
            let flags = json!({"at": "t=date-time,role=cursor,r=gte|lt", "from": "t=string,eq,lex"});
            let schema = json!({"connectors": [{"streams": [{"name": "messages", "field_capabilities": flags}],
                "granted_connections": [{"connection_id": "cin_work"}, {"connection_id": "cin_home"}]}]});
            Reply::Json(200, schema.to_string())
        }
    });
    let one = remote.pdpp.stream(&described(Some("cin_work"))).await.unwrap().details;
    assert_eq!((one.len(), one[0].cursor_field.as_deref(), &one[0].declaration), (1, Some("at"), &None));
    assert!(one[0].field("from").unwrap().capabilities.contains(&Capability::Lexical));
    assert_eq!(remote.asked()[1], "/v1/schema?view=compact&stream=messages&connection_id=cin_work");
}

#[tokio::test]
async fn a_missing_stream_is_refused_with_the_existing_ones() {
    let remote = Remote::start(|request| match &*request.line {
        "GET /v1/schema?view=compact" => recorded("schema-compact-global"),
        "GET /v1/streams" => recorded("streams"),
        _ => recorded("schema-unknown-stream"),
    });
    let expect = (
        QueryFault::UnknownStream,
        "Existing streams: attachments, daily_stats, labels, messages.".to_owned(),
    );
    assert_eq!(fault(remote.pdpp.stream(&described(None)).await), expect);
    assert_eq!(fault(remote.pdpp.stream(&described(Some("cin_work"))).await), expect);
    assert_eq!(fault(remote.pdpp.records(&messages()).await), expect);
    let unknown = remote.pdpp.stream(&described(Some("cin_zzz"))).await;
    assert!(matches!(unknown, Err(SourceError::ConnectionNotFound { choices, .. }) if choices.len() == 2));
    // At most twelve are named.
    let remote = Remote::start(|request| match &*request.line {
        "GET /v1/schema?view=compact" => {
            let streams: Vec<Value> = (0..30).map(|number| json!({"name": format!("s{number}")})).collect();
            let granted = json!([{"connection_id": "c"}]);
            Reply::Json(
                200,
                json!({"connectors": [{"streams": streams, "granted_connections": granted}]}).to_string(),
            )
        }
        _ => recorded("schema-unknown-stream"),
    });
    let (_, hint) = fault(remote.pdpp.stream(&described(None)).await);
    assert!(hint.contains(" s19 and 18 more") && !hint.contains("s2,"), "{hint}");
}

#[tokio::test]
async fn answers_without_the_expected_members_are_protocol_errors() {
    for body in ["{}", "[]", "7", "{\"data\":{}}"] {
        let remote = Remote::start(move |_| Reply::Json(200, body.to_owned()));
        let faults = [
            remote.pdpp.records(&of_work()).await.err(),
            remote.pdpp.window(&body_of("m1", 0)).await.err(),
            remote.pdpp.aggregate(&count()).await.err(),
            remote.pdpp.stream(&described(None)).await.err(),
        ];
        for fault in faults {
            assert!(matches!(fault, Some(SourceError::Protocol(_))), "{body}: {fault:?}");
        }
    }
}

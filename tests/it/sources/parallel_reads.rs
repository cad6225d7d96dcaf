//! Lists over several connections of a record server: the number of requests, and their concurrency.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fetchwell_source::{Change, QueryFault, RecordsPage, RecordsQuery, SourceError, Start};
use serde_json::json;

use crate::support::remote::Remote;
use crate::support::{Reply, Request};

/// A barrier for requests: each waits until all of a round have arrived.
#[derive(Default)]
struct Round {
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl Round {
    /// Returns true if `size` requests arrived before the first was answered.
    fn meet(&self, size: usize) -> bool {
        let mut waiting = self.waiting.lock().unwrap();
        *waiting += 1;
        self.changed.notify_all();
        let before = *waiting - 1;
        let target = before / size * size + size;
        // Sequential requests end by this timeout, which is long enough for any machine.
        let (_waiting, timed_out) =
            self.changed.wait_timeout_while(waiting, Duration::from_secs(20), |came| *came < target).unwrap();
        !timed_out.timed_out()
    }
}

fn schema(connections: &[&str]) -> Reply {
    let granted: Vec<_> = connections.iter().map(|id| json!({"connection_id": id})).collect();
    let stream = json!({"name": "messages", "field_capabilities": {"at": "t=string,role=cursor"}});
    let connector = json!({"connector_key": "mail", "streams": [stream], "granted_connections": granted});
    Reply::Json(200, json!({"connectors": [connector]}).to_string())
}

fn page(connection: &str) -> Reply {
    let row = |number: usize| json!({"id": format!("m{number}"), "data": {"at": format!("2026-01-0{number}")}, "connection_id": connection});
    let body = json!({"data": [row(2), row(1)], "has_more": true, "next_cursor": "c"});
    Reply::Json(200, body.to_string())
}

fn connection_of(request: &Request) -> String {
    let (_, rest) = request.line.split_once("connection_id=").unwrap();
    rest.split('&').next().unwrap().to_owned()
}

fn connections_of(page: &RecordsPage) -> Vec<String> {
    let id = |row: &Change| row.address().connection.as_ref().unwrap().to_string();
    page.rows.iter().map(id).collect()
}

fn query() -> RecordsQuery {
    RecordsQuery::new("messages".parse().unwrap(), 2)
}

#[tokio::test]
async fn a_list_is_one_round_of_one_request_for_each_connection() {
    const IDS: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    let (round, in_sequence) = (Round::default(), Arc::new(AtomicUsize::new(0)));
    let alone = Arc::clone(&in_sequence);
    let remote = Remote::start(move |request| {
        if request.line.contains("/v1/schema") {
            return schema(&IDS);
        }
        if !round.meet(IDS.len()) {
            alone.fetch_add(1, Ordering::SeqCst);
        }
        page(&connection_of(request))
    });
    let counts = |asked: &[String]| {
        let schemas = asked.iter().filter(|line| line.starts_with("/v1/schema")).count();
        (schemas, asked.len() - schemas)
    };
    for calls in 1..=5 {
        let page = remote.pdpp.records(&query()).await.unwrap();
        assert_eq!(page.rows.len(), 2);
        // The schema is read once, before the first list.
        assert_eq!(counts(&remote.asked()), (1, calls * IDS.len()));
    }
    assert_eq!(in_sequence.load(Ordering::SeqCst), 0);
}

/// At most 16 requests to a server run at a time; a list may use half of them.
#[tokio::test]
async fn a_list_over_many_connections_leaves_room_for_other_calls() {
    let ids: Vec<String> = (0..24).map(|number| format!("c{number}")).collect();
    let (running, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let remote = Remote::start(move |request| {
        if request.line.contains("/v1/schema") {
            return schema(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        }
        seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::park_timeout(Duration::from_millis(50));
        running.fetch_sub(1, Ordering::SeqCst);
        page(&connection_of(request))
    });
    remote.pdpp.records(&query()).await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

/// Only a server without that route is read without its answer.
#[tokio::test]
async fn a_refused_schema_is_an_error_and_not_a_missing_schema() {
    let remote = Remote::start(|request| match &*request.line {
        line if line.contains("/v1/schema") => {
            let error = json!({"code": "invalid_request", "message": "this stream is being migrated"});
            Reply::Json(409, json!({ "error": error }).to_string())
        }
        _ => page("a"),
    });
    let refused = remote.pdpp.records(&query()).await.unwrap_err();
    assert!(refused.to_string().contains("being migrated"), "{refused}");
}

#[tokio::test]
async fn the_order_of_a_stream_is_requested_once() {
    let remote = Remote::start(|request| match &*request.line {
        line if line.contains("detail=full") => Reply::Json(404, "{}".to_owned()),
        line if line.contains("/v1/schema") => {
            let granted = json!([{"connection_id": "a"}, {"connection_id": "b"}]);
            let connector = json!({"streams": [{"name": "messages"}], "granted_connections": granted});
            Reply::Json(200, json!({"connectors": [connector]}).to_string())
        }
        _ => page(&connection_of(request)),
    });
    for _ in 0..3 {
        remote.pdpp.records(&query()).await.unwrap();
    }
    let asked = remote.asked();
    assert_eq!(asked.iter().filter(|line| line.contains("detail=full")).count(), 1, "{asked:#?}");
    assert_eq!(asked.len(), 2 + 3 * 2, "{asked:#?}");
}

#[tokio::test]
async fn a_revoked_connection_is_left_out() {
    let taken_back = Arc::new(AtomicUsize::new(0));
    let is_taken = Arc::clone(&taken_back);
    let remote = Remote::start(move |request| {
        let is_taken = is_taken.load(Ordering::SeqCst) > 0;
        if request.line.contains("/v1/schema") {
            return schema(if is_taken { &["a"] } else { &["a", "b"] });
        }
        let connection = connection_of(request);
        if is_taken && connection == "b" {
            let error = json!({"code": "context.instance_mismatch", "message": "no"});
            return Reply::Json(401, json!({ "error": error }).to_string());
        }
        page(&connection)
    });
    let first = remote.pdpp.records(&query()).await.unwrap();
    assert_eq!(connections_of(&first), ["b", "a"]);
    taken_back.store(1, Ordering::SeqCst);
    let left = remote.pdpp.records(&query()).await.unwrap();
    assert_eq!(connections_of(&left), ["a", "a"]);
    // A list that began with the removed connection starts again.
    let on = RecordsQuery { start: Start::After(first.next.unwrap()), ..query() };
    match remote.pdpp.records(&on).await {
        Err(SourceError::InvalidQuery { fault: QueryFault::ExpiredCursor, hint, .. }) => {
            assert_eq!(hint, "List again without `cursor`.");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn another_grant_has_a_schema_of_its_own() {
    let remote = Remote::start(|request| {
        let is_new = request.authorization.as_deref() == Some("Bearer tok_new");
        if request.line.contains("/v1/schema") {
            schema(if is_new { &["c", "d"] } else { &["a", "b"] })
        } else {
            page(&connection_of(request))
        }
    });
    assert_eq!(connections_of(&remote.pdpp.records(&query()).await.unwrap()), ["b", "a"]);
    remote.reconnect(r#"{"access_token":"tok_new"}"#);
    assert_eq!(connections_of(&remote.pdpp.records(&query()).await.unwrap()), ["d", "c"]);
}

#[tokio::test]
async fn a_new_connection_is_listed_after_the_schema_is_read() {
    let added = Arc::new(AtomicUsize::new(0));
    let is_added = Arc::clone(&added);
    let remote = Remote::start(move |request| {
        if request.line.contains("/v1/schema") {
            schema(if is_added.load(Ordering::SeqCst) > 0 { &["a", "b", "c"] } else { &["a", "b"] })
        } else {
            page(&connection_of(request))
        }
    });
    remote.pdpp.records(&query()).await.unwrap();
    added.store(1, Ordering::SeqCst);
    remote.pdpp.schema().await.unwrap();
    assert_eq!(connections_of(&remote.pdpp.records(&query()).await.unwrap()), ["c", "b"]);
}

//! The HTTP client of record servers: concurrency, retries and cursors, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fetchwell_pdpp::{Credentials, Pdpp, ProviderUrl};
use fetchwell_source::{
    BoundSource, RecordsQuery, SearchMode, SearchPosition, SearchQuery, SourceError, Start,
};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::{CREDENTIAL, FakeServer, Reply, Request, connect, recorded};

/// Requests that the client has in flight at the same time.
const MAX_IN_FLIGHT: usize = 16;

/// Returns the client of a server with these answers.
fn client(
    deadline: Duration,
    answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (BoundSource, FakeServer) {
    let server = FakeServer::start(answer);
    let cache = tempfile::tempdir().unwrap();
    connect(cache.path(), &server.url, CREDENTIAL);
    let provider: ProviderUrl = server.url.parse().unwrap();
    let credentials = Credentials::new(&provider, cache.path());
    // The credential file must exist as long as the client.
    std::mem::forget(cache);
    (Pdpp::new("provider".parse().unwrap(), provider, credentials, deadline).into(), server)
}

fn search(position: Option<&str>) -> SearchQuery {
    let position = position.map(|position| SearchPosition(position.to_owned()));
    SearchQuery { position, mode: SearchMode::Lexical, ..SearchQuery::new("x", 2) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_gets_a_bounded_number_of_requests_at_a_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let (pdpp, server) = client(Duration::from_secs(60), move |_| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Long enough for all concurrent requests to arrive.
        std::thread::park_timeout(Duration::from_millis(100));
        inside.fetch_sub(1, Ordering::SeqCst);
        recorded("search-zero")
    });
    let query = search(None);
    for answer in join_all((0..40).map(|_| pdpp.search(&query))).await {
        answer.unwrap();
    }
    assert_eq!(server.requests().len(), 40);
    let most = most.load(Ordering::SeqCst);
    assert!((2..=MAX_IN_FLIGHT).contains(&most), "{most} at a time");
}

#[tokio::test]
async fn waiting_for_a_slot_counts_against_the_deadline() {
    let (pdpp, _server) = client(Duration::from_secs(2), |_| Reply::Hang);
    let (query, started) = (search(None), Instant::now());
    for answer in join_all((0..6 * MAX_IN_FLIGHT).map(|_| pdpp.search(&query))).await {
        assert!(matches!(answer, Err(SourceError::Timeout { .. })), "{answer:?}");
    }
    // Six rounds of two seconds would take twelve seconds.
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_pause_is_made_if_it_is_named_and_fits_the_deadline() {
    let date = |seconds: i64| {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
        at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    for (status, header, times) in [
        (429, None, 1),
        (429, Some("0".to_owned()), 2),
        (429, Some("3600".to_owned()), 1),
        (429, Some("soon".to_owned()), 1),
        (429, Some(date(-60)), 2),
        (429, Some(date(3_600)), 1),
        (503, None, 2),
        (503, Some("3600".to_owned()), 1),
        (500, Some("0".to_owned()), 1),
    ] {
        let shown = format!("{status} {header:?}");
        let headers: Vec<(&'static str, String)> =
            header.iter().map(|value| ("retry-after", value.clone())).collect();
        let (pdpp, server) =
            client(Duration::from_secs(20), move |_| Reply::Full(status, headers.clone(), String::new()));
        let refused = pdpp.search(&search(None)).await.unwrap_err();
        assert_eq!(server.requests().len(), times, "{shown}");
        if let SourceError::RateLimited { retry_after } = refused {
            let named = header.is_some_and(|header| header != "soon");
            assert_eq!((status, retry_after.is_some()), (429, named), "{shown}: {retry_after:?}");
        } else {
            assert_ne!(status, 429, "{shown}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_or_repeated_cursor_ends_the_list() {
    for cursor in ["", "same"] {
        let body = json!({"has_more": true, "next_cursor": cursor, "data": [
            {"id": "m1", "stream": "messages", "connection_id": "c", "title": "T", "data": {"n": 1}}]});
        let (pdpp, _server) = client(Duration::from_secs(20), move |_| Reply::Json(200, body.to_string()));
        let first = pdpp.search(&search(None)).await.unwrap();
        assert_eq!((first.hits.len(), first.next.is_some()), (1, cursor == "same"));
        let again = pdpp.search(&search(Some("same"))).await.unwrap();
        assert_eq!((again.hits.len(), again.next), (1, None));
        // A list follows its cursor to a page with the same cursor, and no further.
        let query = RecordsQuery {
            connection: "c".parse().ok(),
            ..RecordsQuery::new("messages".parse().unwrap(), 1)
        };
        let (mut pages, mut start) = (0, Start::First);
        loop {
            let page = pdpp.records(&RecordsQuery { start, ..query.clone() }).await.unwrap();
            pages += 1;
            assert!(pages < 5, "{page:?}");
            match page.next {
                Some(next) => start = Start::After(next),
                None => {
                    assert!(page.has_more && page.notes[0].contains("no way to read on"), "{page:?}");
                    break;
                }
            }
        }
        assert_eq!(pages, if cursor == "same" { 2 } else { 1 });
    }
}

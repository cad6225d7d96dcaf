//! `GET /api/v1/search/stream` over real sockets: events while the search runs, and clients that disconnect.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::support::handbook::{Site, embedded, import, refused};
use crate::support::hosted::{ANN, BOB, HEAD, PUBLIC, Place, STORES, bearer, call, start, token};
use crate::support::{FakeServer, Reply, ask, binary, get, post, stdout};

const TARGET: &str = "/api/v1/search/stream?query=JWT+tokens&project_id=handbook&top_k=3";

/// A response that is read while it is sent. HTTP/1.0 has no chunks, so that its body is the events alone.
struct EventReader(BufReader<TcpStream>);

impl EventReader {
    #[track_caller]
    fn open(address: &str, target: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {target} HTTP/1.0\r\nhost: {address}\r\n\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.contains(" 200 ") && head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("cache-control: no-store"), "{head}");
        Self(reader)
    }

    /// Reads the next event.
    #[track_caller]
    fn next(&mut self) -> (String, Value) {
        let mut block = String::new();
        while !block.ends_with("\n\n") {
            assert_ne!(self.0.read_line(&mut block).unwrap(), 0, "the events ended: {block}");
        }
        events(&block).remove(0)
    }

    /// Reads the rest of the body.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// Returns the names and the data of events.
fn events(body: &str) -> Vec<(String, Value)> {
    let blocks = body.split("\n\n").filter(|block| block.contains("event: "));
    let read = |block: &str| {
        let line = |start: &str| block.lines().find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
        (line("event: ").unwrap(), serde_json::from_str(&line("data: ").unwrap()).unwrap())
    };
    blocks.map(read).collect()
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

/// Returns the records of streamed searches.
fn recorded(site: &Site) -> Vec<Value> {
    let arguments = ["telemetry", "tail", "--json", "--endpoint", "/api/v1/search/stream", "--state-dir"];
    let shown = binary().args(arguments).arg(site.path("state")).output().unwrap();
    stdout(&shown).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_search_is_streamed_by_stages() {
    let site = Site::new();
    let body = EventReader::open(&site.server.address, TARGET).rest();
    let stages = events(&body);
    assert_eq!(names(&stages), ["search_started", "cache_check", "search_results", "complete"]);
    assert_eq!(stages[0].1, json!({"query": "JWT tokens", "project_id": "handbook"}));
    assert_eq!(stages[1].1["hit"], false);
    assert!(stages[1].1["key"].as_str().unwrap().starts_with("fraim:handbook:v2:search:"), "{stages:?}");
    assert!(body.contains("event: complete\nid: "), "{body}");
    // The same search is a hit, also for `POST`, and has the same results.
    let again = events(&EventReader::open(&site.server.address, TARGET).rest());
    assert_eq!(names(&again), ["search_started", "cache_check", "complete"]);
    assert_eq!((&again[1].1["hit"], &again[2].1["results"]), (&json!(true), &stages[3].1["results"]));
    let posted = site.found(&json!({"query": "JWT tokens", "project_id": "handbook", "top_k": 3}));
    assert_eq!((&posted["cache_hit"], &posted["results"]), (&json!(true), &stages[3].1["results"]));
    assert_eq!(stages[2].1["count"], posted["total_found"]);
    // The record of a stream has its size, and is written when the search has ended.
    site.server.wait_until("both streams are recorded", || recorded(&site).len() == 2);
    let record = recorded(&site).into_iter().find(|record| record["response_bytes"] == body.len());
    assert_eq!(record.unwrap()["outcome"], "ok");
}

#[test]
fn the_session_of_a_page_opens_the_stream() {
    let place = Place::new();
    import(&place.path("docs"), &place.path("ann.db"));
    let server = start(&place.of_two());
    let sign_in = |token: &str| {
        let form = format!("to=%2F&token={token}");
        let answer = post(&server.address, "/records/-/sign-in", &[&format!("origin: {PUBLIC}")], &form);
        assert_eq!(answer.status, 303, "{answer:?}");
        format!("cookie: {}", answer.header("set-cookie").unwrap().split(';').next().unwrap())
    };
    let open = |headers: &[&str]| ask(&server.address, "GET", TARGET, headers);
    let [ann, bob] = [ANN, BOB].map(sign_in);
    for headers in [vec![ann.as_str()], vec![&ann, "sec-fetch-site: same-origin"]] {
        let answer = open(&headers);
        assert!(answer.status == 200 && answer.text.contains("event: complete"), "{answer:?}");
    }
    // A person sees the projects of the own grant only, and a token takes precedence over the session.
    refused(&open(&[&bob]), 404, "PROJECT_NOT_FOUND");
    refused(&open(&[&ann, &bearer(BOB)]), 404, "PROJECT_NOT_FOUND");
    for headers in [
        vec![],
        vec!["cookie: fetchwell_session=guessed"],
        vec![&ann, "sec-fetch-site: same-site"],
        vec![&ann, "sec-fetch-mode: navigate"],
        vec![&ann, "origin: http://localhost:3000"],
    ] {
        assert_eq!(open(&headers).status, 401, "{headers:?}");
    }
    assert_eq!(ask(&server.address, "HEAD", TARGET, &[&ann]).status, 200);
    // A link opens its record only.
    let record = call(&server, ANN, "fetch", &json!({"id": "cin_ann/letters:ann01"}));
    let (path, key) =
        record["url"].as_str().unwrap().strip_prefix(PUBLIC).unwrap().split_once("?link=").unwrap();
    let followed = post(&server.address, path, &[&format!("origin: {PUBLIC}")], &format!("link={key}"));
    let linked = format!("cookie: {}", followed.header("set-cookie").unwrap().split(';').next().unwrap());
    assert_eq!((ask(&server.address, "GET", path, &[&linked]).status, open(&[&linked]).status), (200, 401));
    // The session opens no other path, and ends with its token.
    let others = ["/api/v1/projects", "/v1/streams", "/api/v1/search/stream/"];
    assert_eq!(others.map(|path| ask(&server.address, "GET", path, &[&ann]).status), [401; 3]);
    place.configure(&format!("{HEAD}{}{STORES}", token("bob", BOB)));
    server.wait_until("the token is gone", || open(&[&ann]).status == 401);
}

#[test]
fn a_client_that_reconnects_after_the_last_event_is_told_to_stop() {
    let site = Site::configured("");
    let config = site.path("fetchwell.toml");
    let sources = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("search_history = false\n{sources}")).unwrap();
    let body = || get(&site.server.address, TARGET).text;
    site.server.wait_until("the history is off", || body().contains("event: complete\nid: end\n"));
    let again = ask(&site.server.address, "GET", TARGET, &["last-event-id: end"]);
    assert_eq!((again.status, again.text.as_str()), (204, ""));
}

#[test]
fn invalid_streams_are_refused_before_any_event() {
    let site = Site::new();
    for (query, status, code, place) in [
        ("query=&project_id=handbook", 400, "INVALID_QUERY", json!(["query", "query"])),
        ("query=x&project_id=none", 404, "PROJECT_NOT_FOUND", Value::Null),
        ("query=x&project_id=handbook&top_k=51", 400, "INVALID_ARGUMENT", json!(["query", "top_k"])),
        ("query=x&query=y&project_id=handbook", 400, "INVALID_QUERY", json!(["query", "query"])),
        ("query=x&project_id=handbook&top_k=1&top_k=2", 400, "INVALID_ARGUMENT", json!(["query", "top_k"])),
        ("query=x&project_id=handbook&limit=1", 400, "INVALID_ARGUMENT", json!(["query", "limit"])),
    ] {
        let answer = get(&site.server.address, &format!("/api/v1/search/stream?{query}"));
        assert_eq!(refused(&answer, status, code)["errors"][0]["loc"], place, "{query}");
    }
}

/// An embedding service that answers the query of [`TARGET`] only after it was opened.
struct GatedService {
    server: FakeServer,
    is_open: Arc<(Mutex<bool>, Condvar)>,
}

impl GatedService {
    fn start() -> Self {
        let is_open: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let gate = Arc::clone(&is_open);
        let server = FakeServer::start(move |request| {
            if is_query(&request.body) {
                let (is_open, opened) = &*gate;
                drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
            }
            embedded(&request.body, &json!(vec![0.5; 32]))
        });
        Self { server, is_open }
    }

    fn open(&self) {
        *self.is_open.0.lock().unwrap() = true;
        self.is_open.1.notify_all();
    }
}

/// Returns true for a request to embed the query of [`TARGET`].
fn is_query(body: &str) -> bool {
    body.contains("\"JWT tokens\"")
}

#[test]
fn events_come_while_the_search_runs() {
    let service = GatedService::start();
    let site = Site::embedded(&service.server, "");
    let mut first = EventReader::open(&site.server.address, TARGET);
    assert_eq!(first.next().0, "search_started");
    let (name, check) = first.next();
    assert_eq!((name.as_str(), &check["hit"]), ("cache_check", &json!(false)));
    // An equal search waits for the answer of the first one.
    let mut second = EventReader::open(&site.server.address, TARGET);
    assert_eq!(second.next().0, "search_started");
    let queries = || service.server.requests().iter().filter(|request| is_query(&request.body)).count();
    site.server.wait_until("the query is sent", || queries() > 0);
    service.open();
    let rest = events(&first.rest());
    assert_eq!(names(&rest), ["embedding", "search_results", "complete"]);
    assert!(rest[0].1["model"].is_string() && rest[0].1["latency_ms"].is_u64(), "{rest:?}");
    let shared = events(&second.rest());
    assert_eq!(names(&shared), ["cache_check", "complete"]);
    assert_eq!((&shared[0].1["hit"], &shared[1].1["results"]), (&json!(true), &rest[2].1["results"]));
    assert_eq!(queries(), 1);
}

#[test]
fn all_candidates_are_reranked() {
    let service = FakeServer::start(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let count = body["documents"].as_array().unwrap().len();
        let score = |index: usize| json!({"index": index, "relevance_score": index});
        Reply::Json(200, json!({"results": (0..count).map(score).collect::<Vec<_>>()}).to_string())
    });
    let site = Site::configured(&format!(
        "[rerank]\nprovider = \"http\"\nurl = \"{}/v1\"\nmodel = \"r\"\n",
        service.url
    ));
    for top_k in [1, 3, 12, 20, 50] {
        let target = format!("/api/v1/search/stream?query=queue&project_id=handbook&top_k={top_k}");
        let stages = events(&EventReader::open(&site.server.address, &target).rest());
        assert_eq!(names(&stages), ["search_started", "cache_check", "search_results", "rerank", "complete"]);
        let posted = site.found(&json!({"query": "queue", "project_id": "handbook", "top_k": top_k}));
        let (found, rerank) = (&posted["total_found"], &stages[3].1);
        assert_eq!((found, &stages[2].1["count"], &rerank["input"]), (&json!(20), found, found), "{top_k}");
        assert_eq!(rerank["output"], posted["results"].as_array().unwrap().len(), "{top_k}");
    }
}

/// Starts an embedding service that never answers the query of [`TARGET`].
fn silent_service() -> FakeServer {
    FakeServer::start(|request| {
        if is_query(&request.body) { Reply::Hang } else { embedded(&request.body, &json!(vec![0.5; 32])) }
    })
}

/// Lets the server recognize the model by a query that is answered. The query that recognizes a model is not cancelled.
fn recognize_model(site: &Site) {
    assert_eq!(site.search(&json!({"query": "refresh", "project_id": "handbook"})).status, 200);
}

#[test]
fn a_client_that_disconnects_cancels_the_work() {
    let service = silent_service();
    let site = Site::embedded(&service, "");
    recognize_model(&site);
    let mut client = EventReader::open(&site.server.address, TARGET);
    assert_eq!((client.next().0, client.next().0), ("search_started".into(), "cache_check".into()));
    site.server
        .wait_until("the query is sent", || service.requests().iter().any(|request| is_query(&request.body)));
    assert_eq!(service.abandoned(), 0);
    drop(client);
    service.wait_until_abandoned();
    site.server.wait_until("the stream is recorded", || {
        recorded(&site).iter().map(|record| &record["outcome"]).eq([&json!("cancelled")])
    });
}

#[test]
fn an_error_is_the_last_event() {
    let service = silent_service();
    let site = Site::embedded(&service, "call_deadline = \"1500ms\"\n");
    recognize_model(&site);
    let body = EventReader::open(&site.server.address, TARGET).rest();
    let stages = events(&body);
    assert_eq!(names(&stages), ["search_started", "cache_check", "error"]);
    assert_eq!(stages[2].1["code"], "SOURCE_TIMEOUT");
    assert_eq!(stages[2].1["detail"], "no answer within 1500 ms");
    let posted = site.search(&json!({"query": "JWT tokens", "project_id": "handbook"}));
    assert_eq!(refused(&posted, 504, "SOURCE_TIMEOUT")["detail"], "no answer within 1500 ms");
    assert!(stages[2].1["request_id"].as_str().unwrap().starts_with("req_"), "{stages:?}");
    site.server.wait_until("the stream is recorded", || recorded(&site).len() == 1);
    let record = &recorded(&site)[0];
    assert_eq!(
        (&record["outcome"], &record["response_bytes"]),
        (&json!("source_timeout"), &json!(body.len()))
    );
    service.wait_until_abandoned();
    // The server goes on.
    assert_eq!(get(&site.server.address, "/api/v1/projects").status, 200);
}

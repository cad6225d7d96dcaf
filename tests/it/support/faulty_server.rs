//! A small record server with data of its own that answers correctly until a fault is injected.
//!
//! It has one connection with one stream, `messages`, and answers as the reference server does
//! (`fixtures/record-server` has its replies), as far as fetchwell reads them. A [`Fault`] takes effect with the next
//! request, so that a test can inject it in the middle of a list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use super::fake_server::{FakeServer, Reply, Request};

/// A fault of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It accepts the request and does not answer.
    Hang,
    /// It does not answer every third request, so that its circuit never stays open.
    HangNowAndThen,
    /// It sends half of its answer.
    HangInBody,
    /// It sends a byte a second.
    Drip,
    /// It resets the connection.
    Abort,
    /// No program listens on the port.
    Refused,
    /// It answers with this status.
    Status(u16),
    /// It answers 429 with a time to retry that is after every deadline.
    RateLimited,
    /// A proxy answers with an HTML page.
    Html,
    /// It answers with JSON of another shape.
    WrongShape,
    /// It sends 200 MiB without announcing the length.
    Huge,
    /// It announces 200 MiB.
    HugeAnnounced,
    /// Its JSON has bytes that are not UTF-8.
    InvalidUtf8,
    /// The cursor of a page leads to the same page.
    CursorLoop,
    /// The cursors of two pages lead to each other.
    CursorCycle,
    /// There is another page, and the cursor is empty.
    EmptyCursor,
    /// The last two rows of a page are repeated on the next.
    DuplicateRows,
}

const HUGE_BYTES: usize = 200 * 1024 * 1024;

impl Fault {
    /// Every lasting fault, with each status that matters.
    pub(crate) const ALL: [Self; 21] = [
        Self::Hang,
        Self::HangInBody,
        Self::Drip,
        Self::Abort,
        Self::Refused,
        Self::Status(401),
        Self::Status(403),
        Self::Status(409),
        Self::Status(429),
        Self::RateLimited,
        Self::Status(500),
        Self::Status(503),
        Self::Html,
        Self::WrongShape,
        Self::Huge,
        Self::HugeAnnounced,
        Self::InvalidUtf8,
        Self::CursorLoop,
        Self::CursorCycle,
        Self::EmptyCursor,
        Self::DuplicateRows,
    ];

    /// Returns the name of the fault in `docs/faults.md`.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::Hang => "hangs before headers",
            Self::HangNowAndThen => "hangs now and then",
            Self::HangInBody => "hangs in the body",
            Self::Drip => "sends one byte a second",
            Self::Abort => "resets the connection",
            Self::Refused => "refuses connections",
            Self::Status(status) => return format!("answers {status}"),
            Self::RateLimited => "answers 429 with Retry-After: 60",
            Self::Html => "answers HTML with 200",
            Self::WrongShape => "answers JSON of another shape",
            Self::Huge => "sends 200 MiB",
            Self::HugeAnnounced => "announces 200 MiB",
            Self::InvalidUtf8 => "sends invalid UTF-8",
            Self::CursorLoop => "returns a cursor that does not advance",
            Self::CursorCycle => "returns cursors in a cycle",
            Self::EmptyCursor => "returns `next_cursor: \"\"`",
            Self::DuplicateRows => "repeats rows on the next page",
        };
        name.to_owned()
    }

    /// Returns the error codes that an answer may name the server with; none for a benign fault.
    pub(crate) fn codes(self) -> &'static [&'static str] {
        match self {
            Self::Hang | Self::HangNowAndThen | Self::HangInBody | Self::Drip => &["source_timeout"],
            Self::Abort | Self::Refused | Self::Status(503) => &["source_unavailable"],
            Self::Status(401 | 403) => &["reauthorize"],
            Self::Status(409) => &["ambiguous_connection"],
            Self::Status(429) | Self::RateLimited => &["source_rate_limited"],
            Self::Status(_) => &["http_500"],
            Self::Html | Self::WrongShape | Self::HugeAnnounced | Self::InvalidUtf8 => &["source_protocol"],
            // On a busy machine the deadline may pass before the limit of 16 MiB is reached.
            Self::Huge => &["source_protocol", "source_timeout"],
            Self::CursorLoop | Self::CursorCycle | Self::EmptyCursor | Self::DuplicateRows => &[],
        }
    }

    /// Returns true if a server with the fault still gives answers.
    pub(crate) fn is_benign(self) -> bool {
        self.codes().is_empty()
    }

    /// Returns the answer to any request, if the fault leaves no other.
    fn reply(self) -> Option<Reply> {
        let refusal = |status: u16, code: &str| {
            let error = json!({"type": "api_error", "code": code, "message": "no", "request_id": "req_1"});
            Reply::Json(status, json!({ "error": error }).to_string())
        };
        Some(match self {
            Self::Hang | Self::HangNowAndThen => Reply::Hang,
            Self::HangInBody => Reply::HangInBody,
            Self::Drip => Reply::Drip(br#"{"object":"list","data":[],"has_more":false}"#.to_vec(), SECOND),
            Self::Abort => Reply::Abort,
            Self::Refused => Reply::Reset,
            Self::Status(401) => refusal(401, "context.active_false"),
            Self::Status(403) => refusal(403, "grant_revoked"),
            Self::Status(409) => refusal(409, "ambiguous_connection"),
            // Frameworks answer like this, without a code.
            Self::Status(status) => {
                Reply::Json(status, json!({"message": "no", "error": "No", "statusCode": status}).to_string())
            }
            Self::RateLimited => Reply::Full(429, vec![("retry-after", "60".to_owned())], String::new()),
            Self::Html => {
                let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
                Reply::Full(200, headers, "<!doctype html><title>Sign in</title>".to_owned())
            }
            Self::WrongShape => Reply::Json(200, json!({"ok": true, "items": 3}).to_string()),
            Self::Huge => Reply::Endless(HUGE_BYTES),
            Self::HugeAnnounced => Reply::Announced(HUGE_BYTES),
            Self::InvalidUtf8 => {
                Reply::Bytes(b"{\"data\":[{\"title\":\"caf\xe9\"}],\"has_more\":false}".to_vec())
            }
            Self::CursorLoop | Self::CursorCycle | Self::EmptyCursor | Self::DuplicateRows => return None,
        })
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The data of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    /// Its only connection.
    pub(crate) connection: &'static str,
    /// The number of records in its only stream.
    pub(crate) records: usize,
    /// The delay before each answer.
    pub(crate) pause: Duration,
}

impl Account {
    /// Returns an account without a delay.
    pub(crate) fn of(connection: &'static str, records: usize) -> Self {
        Self { connection, records, pause: Duration::ZERO }
    }

    /// Returns the handle of a record.
    pub(crate) fn handle(&self, number: usize) -> String {
        format!("{}/messages:{}", self.connection, key(number))
    }

    /// Returns the handles of all of its records, in the order of a search.
    pub(crate) fn handles(&self) -> Vec<String> {
        (0..self.records).map(|number| self.handle(number)).collect()
    }
}

/// A record server, stopped when it is dropped.
pub(crate) struct RecordServer {
    pub(crate) account: Account,
    fake: FakeServer,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl RecordServer {
    /// Starts a healthy server.
    pub(crate) fn start(account: Account) -> Self {
        let fault: Arc<Mutex<Option<Fault>>> = Arc::default();
        let current = Arc::clone(&fault);
        let requests = AtomicUsize::new(0);
        let fake = FakeServer::start(move |request| {
            let number = requests.fetch_add(1, Ordering::SeqCst);
            if !account.pause.is_zero() {
                std::thread::park_timeout(account.pause);
            }
            let fault = *current.lock().unwrap();
            let fault = fault.filter(|fault| *fault != Fault::HangNowAndThen || number % 3 == 2);
            fault.and_then(Fault::reply).unwrap_or_else(|| Call::of(request).answer(account, fault))
        });
        Self { account, fake, fault }
    }

    /// Starts a server with this fault from the first request on.
    pub(crate) fn faulty(account: Account, fault: Fault) -> Self {
        let server = Self::start(account);
        server.inject(fault);
        server
    }

    /// Injects a fault, from the next request on.
    pub(crate) fn inject(&self, fault: Fault) {
        *self.fault.lock().unwrap() = Some(fault);
        if fault == Fault::Refused {
            self.fake.close();
        }
    }

    /// Removes the fault, except `Refused`: the port stays closed.
    pub(crate) fn recover(&self) {
        *self.fault.lock().unwrap() = None;
    }

    pub(crate) fn url(&self) -> &str {
        &self.fake.url
    }

    /// Returns the socket server with the requests it received.
    pub(crate) fn socket(&self) -> &FakeServer {
        &self.fake
    }
}

/// A parsed request.
struct Call {
    path: String,
    params: Vec<(String, String)>,
}

impl Call {
    fn of(request: &Request) -> Self {
        let url = Url::parse(&format!("http://x{}", request.line.trim_start_matches("GET "))).unwrap();
        let params = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        Self { path: url.path().to_owned(), params }
    }

    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn answer(&self, account: Account, fault: Option<Fault>) -> Reply {
        let parts: Vec<&str> = self.path.trim_start_matches('/').split('/').collect();
        let is_foreign = self.param("connection_id").is_some_and(|asked| asked != account.connection);
        let answer = match parts.as_slice() {
            ["v1", "schema"] => Ok(self.schema(account)),
            ["v1", "streams"] => Ok(list(&[json!({"object": "stream", "name": "messages",
                "record_count": account.records, "connection_id": account.connection})])),
            ["v1", "search"] if is_foreign => Err((404, "connection_not_found")),
            ["v1", "search"] => Ok(self.search(account, fault)),
            ["v1", "streams", "messages", ..] if is_foreign => Err((401, "context.instance_mismatch")),
            ["v1", "streams", "messages", "records"] => Ok(self.records(account, fault)),
            ["v1", "streams", "messages", "aggregate"] => self.aggregate(account),
            ["v1", "streams", "messages", "records", key] => {
                record_number(account, key).map(|number| row(account, number)).ok_or((404, "not_found"))
            }
            ["v1", "streams", "messages", "records", key, "field-window"] => record_number(account, key)
                .ok_or((404, "not_found"))
                .and_then(|number| self.window(account, number)),
            ["v1", "streams", ..] => Err((401, "context.stream_not_allowed")),
            _ => Err((404, "not_found")),
        };
        match answer {
            Ok(body) => Reply::Json(200, body.to_string()),
            Err((status, code)) => {
                let error = json!({"type": "invalid_request_error", "code": code, "message": "no"});
                Reply::Json(status, json!({ "error": error }).to_string())
            }
        }
    }

    fn schema(&self, account: Account) -> Value {
        let fields = json!({"subject": "t=string,role=title,lex", "body": "t=string,lex",
            "from_email": "t=string,eq,lex,a=group_by|count_distinct", "amount": "t=number,a=sum|min|max",
            "received_at": "t=string,role=cursor,r=gte|lt,a=group_by_time|min|max"});
        let has_it = self.param("stream").is_none_or(|asked| asked == "messages")
            && self.param("connection_id").is_none_or(|asked| asked == account.connection);
        let connector = json!({"object": "connector", "connector_key": "acme-mail", "connector_id": "acme-mail",
            "stream_count": 1,
            "streams": [{"name": "messages", "primary_key": ["id"], "cursor_field": "received_at",
                "field_capabilities": fields, "expand_capabilities": []}],
            "granted_connections": [{"connection_id": account.connection, "display_name": "Mail"}]});
        let connectors: Vec<Value> = has_it.then_some(connector).into_iter().collect();
        json!({"object": "schema", "connector_count": connectors.len(), "connectors": connectors,
            "links": {"self": self.path}, "meta": {"count": {"kind": "none"}, "warnings": []}})
    }

    fn search(&self, account: Account, fault: Option<Fault>) -> Value {
        let words: Vec<String> = self.param("q").unwrap_or("").split(' ').map(str::to_lowercase).collect();
        let asked = self.params.iter().filter(|(name, _)| name == "streams").map(|(_, stream)| stream);
        let streams: Vec<&String> = asked.collect();
        let is_asked = streams.is_empty() || streams.iter().any(|stream| *stream == "messages");
        let is_hit = |number: &usize| {
            let text = format!("{} {}", subject(account, *number), body(*number)).to_lowercase();
            is_asked && words.iter().all(|word| text.contains(word.as_str()))
        };
        let found: Vec<usize> = (0..account.records).filter(is_hit).collect();
        let hit = |number: usize| {
            json!({"object": "search_result", "stream": "messages", "record_key": key(number),
                "connector_id": "acme-mail", "connection_id": account.connection, "display_name": "Mail",
                "emitted_at": time(number), "matched_fields": ["subject"],
                "snippet": {"field": "subject", "text": subject(account, number)},
                "score": {"kind": "bm25", "order": "lower_is_better", "value": -1.5}})
        };
        let mut body = self.page(&found, fault, hit);
        body["meta"] = json!({"count": found.len(), "count_accuracy": "exact", "warnings": [],
            "recall": {"complete": true, "ranking_scope": "all_matches", "truncated": false}});
        body
    }

    fn records(&self, account: Account, fault: Option<Fault>) -> Value {
        let mut all: Vec<usize> = (0..account.records).collect();
        let sort = self.param("sort");
        let ascending = match sort {
            Some(sort) => !sort.starts_with('-'),
            None => self.param("order") == Some("asc"),
        };
        if !ascending {
            all.reverse();
        }
        let mut body = self.page(&all, fault, |number| row(account, number));
        let count = match self.param("count") {
            Some("exact" | "estimated") => json!({"kind": "exact", "value": account.records}),
            _ => json!({"kind": "none"}),
        };
        body["meta"] = json!({"count": count, "warnings": []});
        body
    }

    /// Returns the page of a list at the cursor, with the cursor of the next page as changed by the fault.
    fn page(&self, all: &[usize], fault: Option<Fault>, row: impl Fn(usize) -> Value) -> Value {
        let limit = self.param("limit").and_then(|limit| limit.parse().ok()).unwrap_or(25).clamp(1, 100);
        let cursor = self.param("cursor");
        let start = cursor.map_or(0, |cursor| cursor.parse().unwrap_or(all.len()));
        let rows: Vec<Value> = all.iter().skip(start).take(limit).map(|number| row(*number)).collect();
        let end = start + rows.len();
        let next = match fault {
            Some(Fault::CursorLoop) => Some(cursor.map_or_else(|| end.to_string(), str::to_owned)),
            Some(Fault::CursorCycle) if start > 0 => Some("0".to_owned()),
            Some(Fault::CursorCycle) => Some(end.to_string()),
            Some(Fault::EmptyCursor) => Some(String::new()),
            Some(Fault::DuplicateRows) if end < all.len() => {
                Some(end.saturating_sub(2).max(start + 1).to_string())
            }
            _ => (end < all.len()).then(|| end.to_string()),
        };
        let mut body = list(&rows);
        body["has_more"] = json!(next.is_some());
        if let Some(next) = next {
            body["next_cursor"] = json!(next);
        }
        body
    }

    fn aggregate(&self, account: Account) -> Result<Value, (u16, &'static str)> {
        let all = || 0..account.records;
        let mut body = json!({"object": "aggregation", "stream": "messages", "metric": self.param("metric"),
            "field": self.param("field"), "filtered_record_count": account.records, "approximate": false});
        match (self.param("metric"), self.param("field"), self.param("group_by")) {
            (Some("count"), None, None) => body["value"] = json!(account.records),
            (Some("sum"), Some("amount"), None) => body["value"] = json!(all().map(amount).sum::<usize>()),
            (Some("min"), Some("amount"), None) => body["value"] = json!(all().map(amount).min()),
            (Some("max"), Some("amount"), None) => body["value"] = json!(all().map(amount).max()),
            (Some("count"), None, Some("from_email")) => {
                let group = |from: usize| json!({"key": sender(from), "count": all().filter(|n| n % SENDERS == from).count()});
                body["groups"] = (0..SENDERS.min(account.records)).map(group).collect();
                body["other_count"] = json!(0);
            }
            _ => return Err((400, "invalid_request")),
        }
        Ok(body)
    }

    fn window(&self, account: Account, number: usize) -> Result<Value, (u16, &'static str)> {
        let text = match self.param("field") {
            Some("subject") => subject(account, number),
            Some("body") => body(number),
            _ => return Err((404, "field_not_found")),
        };
        let parsed =
            |name: &str, other: usize| self.param(name).and_then(|text| text.parse().ok()).unwrap_or(other);
        let (start, limit) = (parsed("offset_chars", 0), parsed("limit_chars", 4_096));
        let piece: String = text.chars().skip(start).take(limit).collect();
        Ok(json!({"object": "field_window", "stream": "messages", "record_id": key(number),
            "field": {"path": self.param("field"), "type": "string"},
            "window": {"text": piece, "start_chars": start, "end_chars": start + piece.chars().count(),
                "total_chars": text.chars().count(), "limit_chars": limit}}))
    }
}

/// The number of senders.
const SENDERS: usize = 3;

fn list(data: &[Value]) -> Value {
    json!({"object": "list", "data": data, "has_more": false, "links": {}, "meta": {"warnings": []}})
}

fn row(account: Account, number: usize) -> Value {
    json!({"object": "record", "id": key(number), "stream": "messages", "emitted_at": time(number),
        "connection_id": account.connection, "connector_instance_id": account.connection, "display_name": "Mail",
        "data": {"id": key(number), "subject": subject(account, number), "body": body(number),
            "from_email": sender(number), "amount": amount(number), "received_at": time(number)}})
}

/// Keys sort in the order of their numbers.
fn key(number: usize) -> String {
    format!("m{number:04}")
}

fn record_number(account: Account, key: &str) -> Option<usize> {
    key.strip_prefix('m')?.parse().ok().filter(|number| *number < account.records)
}

fn subject(account: Account, number: usize) -> String {
    format!("Invoice {number} of {}", account.connection)
}

fn body(number: usize) -> String {
    format!("Please pay the invoice number {number}. The amount due is {} EUR.", amount(number))
}

fn sender(number: usize) -> String {
    format!("billing{}@acme.test", number % SENDERS)
}

fn amount(number: usize) -> usize {
    number * 10
}

/// Two adjacent records share their time, and so do the same records of all servers.
fn time(number: usize) -> String {
    let minutes = number / 2;
    let (day, hour, minute) = (minutes / 1_440 % 28 + 1, minutes / 60 % 24, minutes % 60);
    format!("2026-04-{day:02}T{hour:02}:{minute:02}:00.000Z")
}

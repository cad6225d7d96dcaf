//! 10,000 random payloads through every tool: no answer is over its hard cap by an exact count, and each placeholder
//! leads to the value that it replaces.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::fit::{Limits, Protection, count_tokens};
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{
    ConnectionSchema, Excerpt, FieldDetail, Hit, HitId, Record, RecordData, Scalar, Schema, StreamDetail,
    StreamSchema, View, Window,
};
use fetchwell_http::{CallerCheck, RateLimiter, Site, bind, serve};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, Change, Group, QueryFault, RecordQuery, RecordsPage, RecordsPosition,
    RecordsQuery, SearchPage, SearchQuery, Source, SourceError, Start, StreamAnswer, StreamQuery,
    WindowQuery, WindowStart,
};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Profile, SharedToolbox, Toolbox};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

use crate::support::get;

/// Number of payloads over all hard caps.
const PAYLOADS: u64 = 10_000;

/// One in this number of payloads is large.
const LARGE: u64 = 100;

/// The caps that are tried in turn. Ordinary records exceed the smaller ones.
const CAPS: [usize; 4] = [12_000, 4_000, 2_500, 300];

/// Pseudo-random numbers that are the same in each run (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.roll() % most.max(1)
    }

    fn size(&mut self, most: u64) -> usize {
        // Small sizes are more frequent.
        let most = 1 + self.below(most.max(1));
        usize::try_from(self.below(most)).unwrap()
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    /// Returns a text of one of the kinds that are hard for models and encodings.
    fn text(&mut self, most: u64) -> String {
        let characters = self.size(most);
        let alphabet: &[&str] = match self.below(12) {
            0 => &["the ", "record ", "of ", "an ", "invoice. ", "It is due.\n"],
            1 => &["A", "b", "9", "+", "/", "x", "Q", "z", "0", "7"],
            2 => &["日", "本", "語", "の", "文", "。"],
            3 => &["😀", "👩‍👩‍👧", "🏳️‍🌈", "e\u{301}\u{302}\u{303}"],
            4 => &["\u{1}", "\u{7}", "\\", "\"", "\n", "\t"],
            5 => &["ﷺ", "ꙮ", "𒐫", "ß", "ﬃ"],
            6 => &["2026-01-02T03:04:05Z ERROR it broke\n", "  at one\n"],
            7 => &["# Title\n\n", "- a point\n", "words of it. "],
            8 => &["x"],
            9 => &["सब", "ใน", "안녕", "привет ", "مرحبا "],
            10 => &["0", "1", "f", "-", "a"],
            _ => &["    let x = 1;\n", "}\n", "fn f() {\n"],
        };
        let mut text = String::new();
        for _ in 0..characters {
            let piece: &&str = self.one_of(alphabet);
            text.push_str(piece);
        }
        text
    }

    fn value(&mut self, most: u64, depth: u64) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.roll()),
            3 | 4 => self.text(most).into(),
            5 | 6 => (0..self.size(most / 100 + 4)).map(|_| self.value(most / 16, depth - 1)).collect(),
            _ => Value::Object(self.fields(most / 200 + 4, most / 8, depth - 1)),
        }
    }

    fn fields(&mut self, names: u64, most: u64, depth: u64) -> RecordData {
        let mut fields = Map::new();
        for number in 0..self.size(names) {
            let name = match self.below(6) {
                0 => format!("field {number}"),
                1 => format!("feld.{number}[x]"),
                2 => self.text(6).trim().to_owned(),
                _ => format!("f{number}"),
            };
            // A field with an empty name cannot be requested.
            if !name.is_empty() {
                let value = self.value(most, depth);
                fields.insert(name, value);
            }
        }
        fields
    }

    fn key(&mut self, number: usize) -> String {
        match self.below(8) {
            0 => format!("[Gmail]/All Mail/{number}"),
            1 => format!("日本語 {number}"),
            2 => format!("{number}{}", "k".repeat(self.size(900))),
            3 => format!("a:b:{number}"),
            _ => format!("r{number}"),
        }
    }
}

/// The payload that the source has at the moment.
#[derive(Debug, Default)]
struct Payload {
    records: Vec<Record>,
    texts: Vec<String>,
}

impl Payload {
    fn random(dice: &mut Dice) -> Self {
        let large = dice.below(LARGE) == 0;
        let most = if large { 20_000 } else { 400 };
        let count = if large { dice.size(4) } else { dice.size(16) } + 1;
        let (names, depth) = if large && dice.below(8) == 0 { (10_000, 0) } else { (18, 3) };
        let most = if names > 18 { 30 } else { most };
        let record = |number: usize, dice: &mut Dice| {
            let address = RecordAddress {
                connection: Some("cin_one".parse().unwrap()),
                stream: "things".parse().unwrap(),
                record: dice.key(number).parse().unwrap(),
            };
            let data = dice.fields(names, most, depth);
            Record {
                emitted_at: Some("2026-01-02T03:04:05Z".to_owned()),
                display_name: Some(dice.text(20)),
                ..Record::new(address, data)
            }
        };
        let records = (0..count).map(|number| record(number, dice)).collect();
        Self { records, texts: (0..100).map(|_| dice.text(most.min(600))).collect() }
    }
}

/// A source that has one random payload at a time.
#[derive(Debug)]
struct Random {
    name: SourceName,
    payload: Mutex<Arc<Payload>>,
}

impl Random {
    fn now(&self) -> Arc<Payload> {
        Arc::clone(&self.payload.lock().unwrap())
    }

    fn find(&self, address: &RecordAddress) -> Result<Record, SourceError> {
        let payload = self.now();
        let found = payload.records.iter().find(|record| record.address.record == address.record);
        found.cloned().ok_or_else(|| SourceError::NotFound { what: address.record.to_string() })
    }
}

#[async_trait]
impl Source for Random {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        "random".to_owned()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        let payload = self.now();
        let streams = payload.records.iter().enumerate().map(|(number, _)| StreamSchema {
            name: format!("things{number}").parse().unwrap(),
            record_count: Some(1),
        });
        let connection = ConnectionSchema {
            connection_id: "cin_one".parse().unwrap(),
            source: None,
            display_name: payload.texts.first().cloned(),
            connector_key: None,
            streams: streams.collect(),
            routes: Vec::new(),
        };
        Ok(Schema { connections: vec![connection; payload.records.len()], unavailable: Vec::new() })
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let payload = self.now();
        let names = || payload.records.iter().flat_map(|record| record.data.keys());
        let field = |name: &String| FieldDetail { name: name.clone(), ..FieldDetail::default() };
        let detail = StreamDetail {
            name: query.stream.clone(),
            connection_id: "cin_one".parse().unwrap(),
            display_name: payload.texts.first().cloned(),
            connector_key: None,
            record_count: None,
            primary_key: Vec::new(),
            cursor_field: None,
            fields: names().map(field).collect(),
            views: vec![View { name: "preview".to_owned(), fields: names().take(6).cloned().collect() }],
            relations: Vec::new(),
            declaration: None,
        };
        Ok(StreamAnswer::from(vec![detail]))
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let payload = self.now();
        let hit = |(record, text): (&Record, &String)| Hit {
            excerpt: Excerpt::new(text, 0..0),
            ..Hit::new(HitId::Record(record.address.clone()), text.clone())
        };
        let hits = payload.records.iter().cycle().zip(&payload.texts).take(query.limit).map(hit).collect();
        Ok(SearchPage { hits, ..SearchPage::default() })
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let payload = self.now();
        let start = match &query.start {
            Start::After(RecordsPosition(position)) => position.parse().unwrap(),
            Start::First | Start::Changes(_) => 0,
        };
        let records = payload.records.iter().skip(start).take(query.limit).cloned();
        let rows: Vec<Change> = records.map(|record| Change::Present(Box::new(record))).collect();
        let end = start + rows.len();
        let next = (end < payload.records.len()).then(|| RecordsPosition(end.to_string()));
        Ok(RecordsPage { rows, has_more: next.is_some(), next, ..RecordsPage::default() })
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let mut record = self.find(&query.address)?;
        if !query.fields.is_empty() {
            record.data.retain(|name, _| query.fields.contains(name));
        }
        Ok(record)
    }

    async fn window(&self, _context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let record = self.find(&query.address)?;
        let Some(Value::String(text)) = record.data.get(&query.field) else {
            return Err(SourceError::InvalidQuery {
                fault: QueryFault::FieldNotText,
                problem: "no text".to_owned(),
                hint: String::new(),
            });
        };
        let WindowStart::Offset(start) = query.start else { panic!("not asked here") };
        Ok(Window {
            address: record.address,
            text: text.chars().skip(start).take(query.limit_chars).collect(),
            start_chars: start,
            total_chars: text.chars().count(),
            found_chars: None,
        })
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let payload = self.now();
        let group = |text: &String| Group { key: Some(Scalar::Text(text.clone())), ..Group::default() };
        Ok(AggregateAnswer {
            groups: Some(payload.texts.iter().take(query.limit).map(group).collect()),
            ..AggregateAnswer::default()
        })
    }
}

/// Counters over all payloads.
#[derive(Debug, Default)]
struct PayloadCounts {
    answers: usize,
    refusals: usize,
    counted: usize,
    marks: usize,
    handles: usize,
    parts: usize,
}

struct PayloadCheck<'a> {
    toolbox: &'a Toolbox,
    cap: usize,
    seen: PayloadCounts,
}

impl PayloadCheck<'_> {
    /// Returns an answer of a tool after a check of its size, or `None` if it is refused for its size.
    async fn call(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        let Value::Object(sent) = arguments.clone() else { panic!("{arguments}") };
        match self.toolbox.call(Profile::Standard, tool, sent).await.unwrap() {
            Ok(payload) => {
                let json = payload.json();
                self.seen.answers += 1;
                assert!(json.len() <= 4 * self.cap, "{tool}: {} bytes of {}", json.len(), 4 * self.cap);
                // A token has at least one byte.
                if json.len() > self.cap {
                    self.seen.counted += 1;
                    let tokens = count_tokens(json);
                    assert!(
                        tokens <= self.cap,
                        "{tool} {arguments}: {tokens} tokens, the cap is {}",
                        self.cap
                    );
                }
                Some(payload.into_parts().1)
            }
            Err(error) => {
                let body = error.body();
                assert!(body.json().len() <= 2_048);
                assert_eq!(body.code, "response_too_large", "{tool} {arguments}: {}", body.json());
                self.seen.refusals += 1;
                None
            }
        }
    }

    async fn all_tools(&mut self, dice: &mut Dice) {
        let limit = 1 + dice.below(100);
        let with_limit = dice.below(2) == 0;
        let limited = |mut arguments: Value| {
            if with_limit {
                arguments["limit"] = limit.into();
            }
            arguments
        };
        self.call("schema", json!({})).await;
        self.call("schema", json!({"stream": "things"})).await;
        self.call(
            "aggregate",
            json!({"stream": "things", "metric": "count", "group_by": "x", "limit": limit}),
        )
        .await;
        let found = self.call("search", limited(json!({"query": "x"}))).await.unwrap_or_default();
        for hit in found["results"].as_array().into_iter().flatten().take(3) {
            self.fetch_all(&hit["id"]).await;
        }
        let page = self.call("query_records", limited(json!({"stream": "things"}))).await.unwrap_or_default();
        for record in page["records"].as_array().into_iter().flatten() {
            self.follow(record, dice).await;
        }
    }

    /// Fetches the first parts of a document.
    async fn fetch_all(&mut self, id: &Value) {
        let mut id = id.clone();
        // A record of megabytes has many parts; three show that the chain continues.
        for _ in 0..3 {
            self.seen.handles += 1;
            let document = self.call("fetch", json!({"id": id})).await.unwrap_or_default();
            let Some(next) = document["metadata"].get("next") else { break };
            self.seen.parts += 1;
            id = next.clone();
        }
    }

    /// Checks that each placeholder leads to the value that it replaces.
    async fn follow(&mut self, record: &Value, dice: &mut Dice) {
        let id = &record["id"];
        let whole = self.toolbox.source();
        let handle: fetchwell_core::handle::Handle = id.as_str().unwrap().parse().unwrap();
        let whole = whole.record(&RecordQuery::new(handle.address().clone())).await.unwrap().data;
        if record.get("more_fields").is_some() && dice.below(4) == 0 {
            self.fetch_all(id).await;
        }
        let shown = record["data"].as_object().cloned().unwrap_or_default();
        let replaced = shown.iter().filter(|(name, value)| whole.get(*name) != Some(*value));
        for (name, mark) in replaced.take(3) {
            self.seen.marks += 1;
            if mark.get("chars").is_some() {
                let read = self
                    .call("read_record_field", json!({"id": id, "field": name, "limit_chars": 500}))
                    .await;
                let text = whole[name].as_str().unwrap();
                if let Some(read) = read {
                    assert!(text.starts_with(read["text"].as_str().unwrap()), "{name}");
                    assert_eq!(mark["chars"], read["total_chars"]);
                }
            }
            // A list, an object or a text can be read by chunks.
            let chunk =
                self.call("read_record_field", json!({"id": id, "field": name, "unit": "chunk"})).await;
            if let Some(next) = chunk.and_then(|chunk| chunk.get("next").cloned()) {
                self.seen.parts += 1;
                self.call("read_record_field", next).await;
            }
        }
    }
}

/// Number of payloads that are requested over HTTP for each cap.
const ASKED_OVER_HTTP: usize = 150;

/// Returns an answer over HTTP after a check of its size, or `None` if it is refused for its size. Errors have a limit
/// of their own.
#[track_caller]
fn asked(address: &str, target: &str, cap: usize) -> Option<Value> {
    let answer = get(address, target);
    let tokens = count_tokens(&answer.text);
    match answer.status {
        200 => assert!(tokens <= cap, "{target}: {tokens} tokens, the cap is {cap}"),
        413 => assert!(answer.text.len() <= 2_048, "{target}: {}", answer.text),
        status => panic!("{target}: {status} {}", answer.text),
    }
    (answer.status == 200).then(|| answer.json())
}

#[test]
fn answers_of_api_v1_fit_their_cap_and_their_paths_work() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (mut marks, mut previews) = (0, 0);
    for cap in [1_usize, 100, 300, 1_500, 12_000] {
        let source = Arc::new(Random { name: "random".parse().unwrap(), payload: Mutex::default() });
        let global = Limits { threshold: cap.div_ceil(3), hard_cap: cap, ..Limits::default() };
        let protection = Arc::new(Protection { global, ..Protection::default() });
        let toolbox = Toolbox::new(Arc::clone(&source) as Arc<dyn Source>, DEFAULT_CALL_DEADLINE).unwrap();
        let live = SharedToolbox::new(toolbox.protected_by(protection));
        let listener = runtime.block_on(bind("127.0.0.1:0".parse().unwrap(), CallerCheck::ByNobody)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let site = Site::of_this_machine(live, Telemetry::default(), RateLimiter::default());
        runtime.spawn(serve(listener, None, site, CancellationToken::new()));
        let mut dice = Dice(7);
        for _ in 0..ASKED_OVER_HTTP {
            *source.payload.lock().unwrap() = Arc::new(Payload::random(&mut dice));
            asked(&address, "/api/v1", cap);
            for query in ["", "?limit=200", "?limit=3&fields=all", "?summary=true"] {
                let page = asked(&address, &format!("/api/v1/things0{query}"), cap);
                let next = page.as_ref().and_then(|page| page["nextCursor"].as_str());
                if let Some(cursor) = next {
                    asked(&address, &format!("/api/v1/things0?cursor={cursor}"), cap);
                }
            }
            let key = source.now().records[0].address.record.to_string();
            let key: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
            let path = format!("/api/v1/things0/{}", key.replace('+', "%20"));
            let preview = asked(&address, &path, cap).unwrap_or_default();
            if preview["meta"]["kind"] == "preview" {
                previews += 1;
                let details = &preview["meta"]["detailsAvailable"];
                assert_eq!(details["endpoint"], path.as_str());
                asked(&address, &format!("{path}?fields=all"), cap);
                for group in details["groups"].as_array().into_iter().flatten().take(2) {
                    let fields: String =
                        form_urlencoded::byte_serialize(group["fields"].as_str().unwrap().as_bytes())
                            .collect();
                    asked(&address, &format!("{path}?fields={fields}"), cap);
                }
            }
            let all = asked(&address, &format!("{path}?fields=all"), cap).unwrap_or_default();
            for mark in all.as_object().into_iter().flat_map(|all| all.values()) {
                if let Some(read) =
                    mark.get("read").and_then(Value::as_str).filter(|_| mark.get("preview").is_some())
                {
                    marks += 1;
                    asked(&address, read, cap);
                }
            }
        }
    }
    // The payloads led to enough placeholders and previews.
    assert!(marks > 20 && previews > 20, "{marks} marks, {previews} previews");
}

#[test]
fn answers_of_tools_fit_their_cap_and_their_placeholders_work() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let walkers: Vec<_> = (0..CAPS.len() as u64)
        .map(|walker| {
            let cap = CAPS[usize::try_from(walker).unwrap()];
            runtime.spawn(async move {
                let source = Arc::new(Random { name: "random".parse().unwrap(), payload: Mutex::default() });
                let global = Limits { threshold: cap / 3, hard_cap: cap, ..Limits::default() };
                let protection = Arc::new(Protection { global, ..Protection::default() });
                let asked: Arc<dyn Source> = Arc::clone(&source) as Arc<dyn Source>;
                let toolbox = Toolbox::new(asked, DEFAULT_CALL_DEADLINE).unwrap().protected_by(protection);
                let mut dice = Dice(walker + 1);
                let mut seen = PayloadCounts::default();
                for _ in 0..PAYLOADS / CAPS.len() as u64 {
                    *source.payload.lock().unwrap() = Arc::new(Payload::random(&mut dice));
                    let mut checked = PayloadCheck { toolbox: &toolbox, cap, seen };
                    checked.all_tools(&mut dice).await;
                    seen = checked.seen;
                }
                (cap, seen)
            })
        })
        .collect();
    for walker in walkers {
        let (cap, seen) = runtime.block_on(walker).unwrap();
        println!("cap {cap}: {seen:?}");
        // The payloads led to enough answers of each kind.
        assert!(
            seen.answers > 10_000 && seen.counted > 1_000 && seen.marks > 100 && seen.parts > 50,
            "{seen:?}"
        );
        // A cap of a few lines refuses names and ids that alone exceed it.
        assert!(cap < 1_000 || seen.refusals * 100 <= seen.answers, "cap {cap}: {seen:?}");
    }
}

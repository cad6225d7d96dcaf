//! Answers while one of several record servers is faulty: every fault over a real socket, through the built binary, as
//! an MCP client sees it.
//!
//! With `FETCHWELL_WRITE_DOCS=1` the matrix is measured one cell at a time and written to `docs/faults.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Account, CallResult, Fault, FederationClient, ProcessUsage, RecordServer, configured, walk,
};

/// Deadline of a source for the table of `docs/faults.md`, with its retry.
const MEASURED_DEADLINE: Duration = Duration::from_millis(500);

/// Deadline of a source in every other run. A healthy source on a busy machine may need that long.
const DEADLINE: Duration = Duration::from_secs(3);

/// Deadline in tests without a silent source; no call reaches it.
const LONG_DEADLINE: Duration = Duration::from_secs(60);

/// Time beyond the deadline in which a call must end. Only calls on a busy machine come near it.
const GENEROUS: Duration = Duration::from_secs(10);

const ALPHA: Account = Account { connection: "cin_one", records: 5, pause: Duration::ZERO };
const BETA: Account = Account { connection: "cin_two", records: 5, pause: Duration::ZERO };
const FAULTY: Account = Account { connection: "cin_three", records: 10, pause: Duration::ZERO };

#[test]
fn a_healthy_fake_server_is_read_completely() {
    let server = RecordServer::start(Account::of("cin_one", 60));
    let (_folder, config) = configured(&[("alpha", &server)], LONG_DEADLINE);
    let mut client = FederationClient::start(&config);
    let mut expect = server.account.handles();
    assert_eq!(walk(&mut client, "search", json!({"query": "invoice", "limit": 7})), expect);
    expect.reverse();
    assert_eq!(walk(&mut client, "query_records", json!({"stream": "messages", "limit": 7})), expect);
    let fetched = client.call("fetch", &json!({"id": server.account.handle(3)}));
    assert_eq!(fetched.body["title"], "Invoice 3 of cin_one", "{fetched:?}");
    let window = json!({"id": server.account.handle(3), "field": "body"});
    let window = client.call("read_record_field", &window);
    assert!(window.body.to_string().contains("The amount due is 30 EUR."), "{window:?}");
    for (arguments, expect) in [
        (json!({"stream": "messages", "metric": "count"}), json!(60)),
        (json!({"stream": "messages", "metric": "sum", "field": "amount"}), json!(17_700)),
        (json!({"stream": "messages", "metric": "max", "field": "amount"}), json!(590)),
    ] {
        assert_eq!(client.call("aggregate", &arguments).body["value"], expect, "{arguments}");
    }
    let groups = json!({"stream": "messages", "metric": "count", "group_by": "from_email"});
    let groups = client.call("aggregate", &groups);
    assert_eq!(groups.body["groups"].as_array().map(Vec::len), Some(3), "{groups:?}");
}

/// The beginning of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onset {
    /// Before the first request.
    AtStart,
    /// After the source answered a request for its schema.
    Later,
}

/// A call that the matrix makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Search,
    Records,
    /// A record of a healthy source.
    FetchHealthy,
    /// A record of the faulty source.
    FetchFaulty,
}

impl Question {
    const ALL: [Self; 4] = [Self::Search, Self::Records, Self::FetchHealthy, Self::FetchFaulty];

    fn call(self) -> (&'static str, Value) {
        match self {
            Self::Search => ("search", json!({"query": "invoice", "limit": 50})),
            Self::Records => ("query_records", json!({"stream": "messages", "limit": 50})),
            Self::FetchHealthy => ("fetch", json!({"id": ALPHA.handle(2)})),
            Self::FetchFaulty => ("fetch", json!({"id": FAULTY.handle(2)})),
        }
    }
}

/// Two healthy sources, a faulty one between them, and a client of all three.
struct Sources {
    alpha: RecordServer,
    faulty: RecordServer,
    beta: RecordServer,
    _folder: tempfile::TempDir,
    client: FederationClient,
}

impl Sources {
    fn open(deadline: Duration) -> Self {
        let [alpha, faulty, beta] = [ALPHA, FAULTY, BETA].map(RecordServer::start);
        let sources = [("alpha", &alpha), ("faulty", &faulty), ("beta", &beta)];
        let (folder, config) = configured(&sources, deadline);
        let client = FederationClient::start(&config);
        Self { alpha, faulty, beta, _folder: folder, client }
    }

    fn with(fault: Fault, onset: Onset, deadline: Duration) -> Self {
        let mut sources = Self::open(deadline);
        if onset == Onset::Later {
            let (tool, arguments) = Question::Search.call();
            assert_eq!(sources.client.call(tool, &arguments).ids().len(), 20);
        }
        sources.faulty.inject(fault);
        sources
    }

    fn healthy_handles(&self) -> BTreeSet<String> {
        [&self.alpha, &self.beta].into_iter().flat_map(|server| server.account.handles()).collect()
    }
}

/// The result of the matrix for one fault, one onset and one question.
struct Cell {
    took: Duration,
    code: String,
}

/// Makes a call, and checks that the healthy sources answered and the faulty one is named.
#[track_caller]
fn check_cell(sources: &mut Sources, fault: Fault, question: Question) -> Cell {
    let (tool, arguments) = question.call();
    let answer = sources.client.call(tool, &arguments);
    let what = format!("{fault:?} {question:?}: {answer:?}");
    assert!(answer.took < DEADLINE + GENEROUS, "{what}");
    let code = match question {
        Question::Search | Question::Records => {
            assert!(!answer.is_error, "{what}");
            let ids = answer.ids();
            let (healthy, faulty): (BTreeSet<String>, BTreeSet<String>) =
                ids.iter().cloned().partition(|id| !id.starts_with(FAULTY.connection));
            assert_eq!(healthy, sources.healthy_handles(), "{what}");
            // Repeated rows of the faulty source are checked below.
            let shown_healthy = ids.iter().filter(|id| healthy.contains(*id)).count();
            assert_eq!(shown_healthy, healthy.len(), "repeated: {what}");
            if fault.is_benign() {
                assert_eq!((answer.unavailable(), faulty.len()), (vec![], FAULTY.records), "{what}");
                "answers".to_owned()
            } else {
                assert!(faulty.is_empty(), "{what}");
                named(&answer, fault, &what)
            }
        }
        Question::FetchHealthy => {
            assert_eq!(answer.body["title"], "Invoice 2 of cin_one", "{what}");
            "answers".to_owned()
        }
        Question::FetchFaulty if fault.is_benign() => {
            assert_eq!(answer.body["title"], "Invoice 2 of cin_three", "{what}");
            "answers".to_owned()
        }
        Question::FetchFaulty => {
            assert!(answer.is_error, "{what}");
            match answer.body["code"].as_str() {
                // The owner of the record is unknown, so the faulty source is named in `unavailable`.
                Some("source_unavailable") if answer.body.get("unavailable").is_some() => {
                    named(&answer, fault, &what)
                }
                Some(code) => {
                    assert!(fault.codes().contains(&code), "{what}");
                    assert!(answer.body.to_string().contains("faulty"), "{what}");
                    code.to_owned()
                }
                None => panic!("{what}"),
            }
        }
    };
    Cell { took: answer.took, code }
}

/// Returns the code of the faulty source, the only one in `unavailable`.
#[track_caller]
fn named(answer: &CallResult, fault: Fault, what: &str) -> String {
    let unavailable = answer.unavailable();
    let [(source, code)] = unavailable.as_slice() else { panic!("{what}") };
    assert!(source == "faulty" && fault.codes().contains(&code.as_str()), "{what}");
    code.clone()
}

/// Measurements of a process after many calls with a faulty source.
struct Aftermath {
    before: ProcessUsage,
    after: ProcessUsage,
    /// The slowest of the last calls, when the source is known to be faulty.
    slowest: Duration,
}

/// Rounds of all questions before and after the first measurement of the process.
const ROUNDS: usize = 3;

/// Maximum growth of a process after its first rounds: the allocator keeps pages of answers of up to 16 MiB.
const GROWTH_KB: usize = 48 * 1024;

/// Makes all calls repeatedly, and checks that the process neither grows nor stops.
fn check_aftermath(sources: &mut Sources, fault: Fault) -> Aftermath {
    let round = |sources: &mut Sources| {
        let answers = Question::ALL.map(|question| {
            let (tool, arguments) = question.call();
            sources.client.call(tool, &arguments).took
        });
        answers.into_iter().max().unwrap()
    };
    for _ in 0..ROUNDS {
        round(sources);
    }
    let before = sources.client.process_usage();
    let slowest = (0..ROUNDS).map(|_| round(sources)).max().unwrap();
    sources.client.ping();
    let after = sources.client.process_usage();
    assert!(after.resident_kb < before.resident_kb + GROWTH_KB, "{fault:?}: {before:?} {after:?}");
    assert!(after.descriptors <= before.descriptors + 4, "{fault:?}: {before:?} {after:?}");
    assert!(after.threads <= before.threads + 4, "{fault:?}: {before:?} {after:?}");
    Aftermath { before, after, slowest }
}

/// Measures one fault and one onset: each question with a new process, then many calls to the last one.
fn row(fault: Fault, onset: Onset, deadline: Duration) -> String {
    let mut line = format!("| {} |", fault.name());
    let mut codes = BTreeSet::new();
    for question in Question::ALL {
        let mut sources = Sources::with(fault, onset, deadline);
        let cell = check_cell(&mut sources, fault, question);
        write!(line, " {} |", cell.took.as_millis()).unwrap();
        if question != Question::FetchHealthy {
            codes.insert(cell.code);
        }
        if question == Question::FetchFaulty {
            let Aftermath { before, after, slowest } = check_aftermath(&mut sources, fault);
            let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
            let grown = after.resident_kb.saturating_sub(before.resident_kb) as f64 / 1024.0;
            write!(
                line,
                " {} | {} | {:.1} MB +{grown:.1} | {} → {} |",
                codes.join(", "),
                slowest.as_millis(),
                before.resident_kb as f64 / 1024.0,
                before.descriptors,
                after.descriptors,
            )
            .unwrap();
        }
    }
    line
}

/// Number of rows that are measured at the same time. Most of the time they wait.
const WORKERS: usize = 6;

#[test]
fn every_fault_of_one_source_leaves_the_answers_of_others() {
    #[expect(clippy::disallowed_methods, reason = "the program itself knows nothing of it")]
    let writes = std::env::var_os("FETCHWELL_WRITE_DOCS").is_some();
    let deadline = if writes { MEASURED_DEADLINE } else { DEADLINE };
    let cases: Vec<(Onset, Fault)> = [Onset::AtStart, Onset::Later]
        .into_iter()
        .flat_map(|onset| Fault::ALL.map(|fault| (onset, fault)))
        .collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); cases.len()]));
    std::thread::scope(|scope| {
        for _ in 0..if writes { 1 } else { WORKERS } {
            scope.spawn(|| {
                while let Some((place, (onset, fault))) =
                    Some(next.fetch_add(1, Ordering::SeqCst)).and_then(|n| Some((n, *cases.get(n)?)))
                {
                    let row = row(fault, onset, deadline);
                    rows.lock().unwrap()[place] = row;
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    let (at_start, later) = rows.split_at(Fault::ALL.len());
    let page = faults_page(at_start, later, deadline);
    println!("{page}");
    if writes {
        std::fs::write(format!("{}/docs/faults.md", env!("CARGO_MANIFEST_DIR")), page).unwrap();
    }
}

fn faults_page(at_start: &[String], later: &[String], deadline: Duration) -> String {
    let head = "| the source | search | query_records | fetch, healthy | fetch, faulty | named as | later calls | memory | descriptors |\n\
        |---|---|---|---|---|---|---|---|---|";
    let deadline = deadline.as_millis();
    format!(
        "<!-- Generated by `FETCHWELL_WRITE_DOCS=1 cargo test --test it every_fault_of_one_source`; do not edit. -->\n\
        # Effects of one faulty source\n\n\
        Three record servers on real sockets behind one `fetchwell serve --stdio`, each with a deadline of {deadline} ms. Two are healthy, and \
        one has the\nfault of its row. In each case all rows of the healthy sources arrive, `unavailable` names the faulty one (a `fetch` of its \
        record returns an error that names\nit), and the server keeps running. `tests/it/federation/faults.rs` checks this.\n\n\
        The times are in milliseconds, at the client, for the first call of that kind in a fresh process. `later calls` is the time of the \
        slowest of {} calls that\nfollow {} others; a source with an open circuit is not called. `memory` is the resident \
        memory and what those {} calls added to it;\n`descriptors` are the open files and sockets before and after them.\n\n\
        ## Faulty from the start\n\n{head}\n{}\n\n\
        ## Faulty after it answered\n\n{head}\n{}\n",
        ROUNDS * 4,
        ROUNDS * 4,
        ROUNDS * 4,
        at_start.join("\n"),
        later.join("\n"),
    )
}

/// Walks a list while one source has a benign fault, and returns a description of the first difference.
fn walked(fault: Fault, tool: &str, arguments: &Value) -> Option<String> {
    let mut sources = Sources::with(fault, Onset::AtStart, LONG_DEADLINE);
    let rows = walk(&mut sources.client, tool, arguments.clone());
    let shown: BTreeSet<String> = rows.iter().cloned().collect();
    let is_whole = sources.faulty.account.handles().iter().all(|id| shown.contains(id));
    let wrong = if shown.len() != rows.len() {
        "repeats rows"
    } else if !shown.is_superset(&sources.healthy_handles()) {
        "loses rows of the healthy"
    } else if fault == Fault::DuplicateRows && !is_whole {
        "loses rows of the one that repeats"
    } else {
        return None;
    };
    Some(format!("{fault:?} {tool} {arguments}: {wrong}: {rows:?}"))
}

#[track_caller]
fn check_walks(faults: &[Fault], tool: &str, several: &[Value]) {
    let walks = faults.iter().flat_map(|fault| several.iter().filter_map(|one| walked(*fault, tool, one)));
    let wrong: Vec<String> = walks.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const BENIGN: [Fault; 4] = [Fault::CursorLoop, Fault::CursorCycle, Fault::EmptyCursor, Fault::DuplicateRows];

fn lists() -> [Value; 3] {
    let newest = json!({"stream": "messages", "limit": 3});
    let oldest = json!({"stream": "messages", "limit": 3, "order": "asc"});
    [newest, oldest, json!({"stream": "messages", "limit": 50})]
}

#[test]
fn a_search_with_a_benign_fault_shows_each_row_once_and_ends() {
    assert!(BENIGN.iter().all(|fault| fault.is_benign()));
    check_walks(&BENIGN, "search", &[3, 50].map(|limit| json!({"query": "invoice", "limit": limit})));
}

#[test]
fn a_list_with_a_benign_fault_shows_each_row_once_and_ends() {
    check_walks(&[Fault::CursorLoop, Fault::EmptyCursor], "query_records", &lists());
}

#[test]
fn a_list_with_repeated_rows_or_cursors_shows_each_row_once() {
    check_walks(&[Fault::CursorCycle, Fault::DuplicateRows], "query_records", &lists());
}

#[test]
fn a_list_with_repeated_rows_or_cursors_ends() {
    for fault in [Fault::CursorCycle, Fault::DuplicateRows] {
        for arguments in lists() {
            let mut sources = Sources::with(fault, Onset::AtStart, LONG_DEADLINE);
            let rows: BTreeSet<String> =
                walk(&mut sources.client, "query_records", arguments).into_iter().collect();
            assert!(rows.is_superset(&sources.healthy_handles()), "{fault:?}: {rows:?}");
        }
    }
}

#[test]
fn all_faults_at_once_leave_the_answers_of_healthy_sources() {
    let faulty: Vec<(String, Fault, RecordServer)> = Fault::ALL
        .into_iter()
        .filter(|fault| !fault.is_benign())
        .enumerate()
        .map(|(number, fault)| {
            let connection: &'static str = format!("cin_faulty{number}").leak();
            (format!("faulty-{number}"), fault, RecordServer::faulty(Account::of(connection, 10), fault))
        })
        .collect();
    let [alpha, beta] = [ALPHA, BETA].map(RecordServer::start);
    let mut sources: Vec<(&str, &RecordServer)> =
        faulty.iter().map(|(name, _, server)| (name.as_str(), server)).collect();
    sources.insert(7, ("alpha", &alpha));
    sources.push(("beta", &beta));
    let (_folder, config) = configured(&sources, DEADLINE);
    let healthy: BTreeSet<String> = [ALPHA, BETA].iter().flat_map(Account::handles).collect();
    for question in [Question::Search, Question::Records] {
        let mut client = FederationClient::start(&config);
        let (tool, arguments) = question.call();
        let answer = client.call(tool, &arguments);
        println!("{tool} with {} of {} sources faulty: {:?}", faulty.len(), sources.len(), answer.took);
        assert_eq!(answer.ids().into_iter().collect::<BTreeSet<String>>(), healthy, "{answer:?}");
        let named = answer.unavailable();
        for (source, code) in &named {
            let (_, fault, _) = faulty.iter().find(|(name, ..)| name == source).unwrap();
            assert!(fault.codes().contains(&code.as_str()), "{fault:?}: {answer:?}");
        }
        // Sources that do not fit are counted.
        let more = format!("{} more sources did not answer", faulty.len() - named.len());
        assert!(named.len() >= 6 && answer.body["warnings"].to_string().contains(&more), "{answer:?}");
        assert!(answer.took < DEADLINE + GENEROUS, "{answer:?}");
        let fetched = client.call("fetch", &json!({"id": ALPHA.handle(2)}));
        assert_eq!(fetched.body["title"], "Invoice 2 of cin_one", "{fetched:?}");
        client.ping();
    }
}

#[test]
fn when_every_source_fails_each_is_named() {
    let mixed = [401, 500].map(Fault::Status).into_iter();
    let mixed = mixed.chain([Fault::Hang, Fault::Refused, Fault::Html, Fault::RateLimited]);
    check_total_failure(&Vec::from_iter(mixed), "Call again in a moment");
    // A later call brings no credential.
    check_total_failure(&[Fault::Status(401); 2], "Ask the user to run `pdpp connect");
}

fn check_total_failure(faults: &[Fault], hint: &str) {
    let servers: Vec<(String, RecordServer)> = faults
        .iter()
        .enumerate()
        .map(|(number, fault)| {
            let connection: &'static str = format!("cin_faulty{number}").leak();
            (format!("faulty-{number}"), RecordServer::faulty(Account::of(connection, 10), *fault))
        })
        .collect();
    let sources: Vec<(&str, &RecordServer)> =
        servers.iter().map(|(name, server)| (name.as_str(), server)).collect();
    let (_folder, config) = configured(&sources, DEADLINE);
    for question in [Question::Search, Question::Records] {
        let mut client = FederationClient::start(&config);
        let (tool, arguments) = question.call();
        let answer = client.call(tool, &arguments);
        assert!(answer.is_error && answer.body["code"] == "source_unavailable", "{answer:?}");
        assert!(answer.body["hint"].as_str().unwrap().starts_with(hint), "{answer:?}");
        assert!(answer.took < DEADLINE + GENEROUS, "{answer:?}");
        let text = answer.body.to_string();
        for (number, fault) in faults.iter().enumerate() {
            assert!(text.contains(&format!("faulty-{number}")), "{fault:?} is not named: {text}");
            assert!(fault.codes().iter().any(|code| text.contains(code)), "{fault:?} has no code: {text}");
        }
        client.ping();
    }
}

#[test]
fn a_source_that_hangs_delays_no_call_to_other_sources() {
    // Longer than any of these calls may take, so a call that waits for the faulty source is noticed.
    let deadline = LONG_DEADLINE;
    let started = Instant::now();
    let mut sources = Sources::open(deadline);
    sources.faulty.inject(Fault::Hang);
    sources.client.request("tools/list", &json!({}));
    assert!(sources.client.server.receive()["result"]["tools"].is_array());
    for (tool, arguments) in [
        ("fetch", json!({"id": ALPHA.handle(2)})),
        ("fetch", json!({"id": BETA.handle(2)})),
        ("read_record_field", json!({"id": ALPHA.handle(2), "field": "body"})),
        ("search", json!({"query": "invoice", "connection_id": ALPHA.connection})),
        ("query_records", json!({"stream": "messages", "connection_id": ALPHA.connection})),
    ] {
        let answer = sources.client.call(tool, &arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {answer:?}");
        assert!(answer.took < deadline / 2, "{tool} {arguments}: {answer:?}");
    }
    assert!(started.elapsed() < deadline, "{:?}", started.elapsed());
}

#[test]
fn a_source_that_recovers_is_called_again() {
    let mut sources = Sources::with(Fault::Status(500), Onset::AtStart, LONG_DEADLINE);
    let (tool, arguments) = Question::Search.call();
    for _ in 0..10 {
        assert_eq!(sources.client.call(tool, &arguments).unavailable().len(), 1);
    }
    sources.faulty.recover();
    let started = Instant::now();
    loop {
        let answer = sources.client.call(tool, &arguments);
        if answer.unavailable().is_empty() {
            assert_eq!(answer.ids().len(), 20);
            break;
        }
        assert!(started.elapsed() < MAX_RECOVERY, "it stays away: {answer:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// Longest time until a recovered source is called again.
const MAX_RECOVERY: Duration = Duration::from_secs(90);

//! `cargo bench --bench million -- [--records N] [--postgres URL] [--against BINARY [--against-postgres URL]] [--fts5]`:
//! importing and searching a large store.
//!
//! Makes N records (1,000,000 by default) with words distributed as in natural text, imports them with the release
//! binary, and searches them through `serve --stdio`. With `--postgres` it imports them into an empty database, too; with
//! `--against` another build imports them into stores of its own. Each call is made to all stores by turns. With `--fts5` it also loads the same texts into SQLite's FTS5 and runs the
//! same queries, as for the choice of the index (docs/decisions.md).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench prints, and fails by panicking"
)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of different words in the corpus.
const VOCABULARY: usize = 300_000;

/// Number of streams; half of the records are in the first, the others are spread evenly.
const STREAMS: usize = 16;

/// Number of calls per kind of query, each with other words.
const CALLS: usize = 300;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        arguments.iter().position(|argument| argument == name).map(|at| arguments[at + 1].clone())
    };
    let records: usize = after("--records").map_or(1_000_000, |number| number.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    let text_bytes = Corpus::new().write(&file, records);
    println!("{records} records, {} MB of text", text_bytes / 1_000_000);
    let mut builds = vec![(env!("CARGO_BIN_EXE_fetchwell").to_owned(), after("--postgres"))];
    builds.extend(after("--against").map(|binary| (binary, after("--against-postgres"))));
    let mut servers = Vec::new();
    for (number, (binary, database)) in builds.iter().enumerate() {
        let store = folder.path().join(format!("million{number}.db"));
        import(binary, &file, store.as_os_str(), records);
        print_sizes(&store);
        servers.push(Server::start(binary, store.as_os_str()));
        if let Some(database) = database {
            import(binary, &file, database.as_ref(), records);
            servers.push(Server::start(binary, database.as_ref()));
        }
    }
    println!("search, {CALLS} calls each with other words   p50 / p99 ms of each store");
    for (what, stream) in
        [("all streams", None), ("half of the records", Some("s0")), ("a thirtieth", Some("s3"))]
    {
        for (kind, words) in kinds() {
            let took = by_turns(&mut servers, words.len(), |server, n| server.search(&words[n], stream));
            print_times(&format!("{what}, {kind}"), took);
        }
    }
    print_memory(&servers);
    read_surface(&mut servers, records);
    print_memory(&servers);
    if arguments.iter().any(|argument| argument == "--fts5") {
        fts5(&file, &folder.path().join("fts5.db"));
    }
}

/// Makes calls with numbers to each server by turns, and returns the times of each server.
fn by_turns(
    servers: &mut [Server],
    calls: usize,
    mut call: impl FnMut(&mut Server, usize) -> Duration,
) -> Vec<Vec<Duration>> {
    let mut took: Vec<Vec<Duration>> = servers.iter().map(|_| Vec::new()).collect();
    for number in 0..calls {
        for (server, took) in servers.iter_mut().zip(&mut took) {
            took.push(call(server, number));
        }
    }
    took
}

fn print_memory(servers: &[Server]) {
    let resident: Vec<String> = servers.iter().map(|server| server.resident().to_string()).collect();
    println!("resident after that, MB: {}", resident.join(", "));
}

/// A name, a tool, a number of calls, and a function from the number of a call and of records to the arguments.
type Case = (&'static str, &'static str, usize, fn(usize, usize) -> String);

const CASES: [Case; 13] = [
    ("schema of everything", "schema", 100, |_, _| "{}".to_owned()),
    ("schema of a stream", "schema", 100, |_, _| r#"{"stream":"s0"}"#.to_owned()),
    ("25 newest records", "query_records", 100, |_, _| r#"{"stream":"s0"}"#.to_owned()),
    ("100 newest records", "query_records", 100, |_, _| r#"{"stream":"s0","limit":100}"#.to_owned()),
    ("records by a value that one in 500 has", "query_records", 100, |n, _| {
        format!(r#"{{"stream":"s0","filter":{{"from":"sender{n}"}}}}"#)
    }),
    ("records by a value that one has", "query_records", 10, |n, records| {
        format!(r#"{{"stream":"s0","filter":{{"n":{}}}}}"#, n * records / 10)
    }),
    ("an exact count of a value", "query_records", 10, |n, _| {
        format!(r#"{{"stream":"s0","count":"exact","filter":{{"from":"sender{n}"}}}}"#)
    }),
    ("changes from the beginning", "query_records", 100, |_, _| {
        r#"{"stream":"s0","changes_since":"beginning"}"#.to_owned()
    }),
    ("count", "aggregate", 100, |_, _| r#"{"stream":"s0","metric":"count"}"#.to_owned()),
    ("sum of a number", "aggregate", 10, |_, _| r#"{"stream":"s0","metric":"sum","field":"n"}"#.to_owned()),
    ("count by sender", "aggregate", 10, |_, _| {
        r#"{"stream":"s0","metric":"count","group_by":"from"}"#.to_owned()
    }),
    ("count by day in Oslo", "aggregate", 10, |_, _| {
        r#"{"stream":"s0","metric":"count","group_by_time":"at","granularity":"day","time_zone":"Europe/Oslo"}"#
            .to_owned()
    }),
    ("search filtered by time", "search", 100, |n, _| {
        let (query, month, day) = (word(40 + n), 1 + n % 10, 1 + n % 27);
        format!(
            r#"{{"query":"{query}","streams":["s0"],"filter":{{"at":{{"gte":"2026-{month:02}-{day:02}"}}}}}}"#
        )
    }),
];

/// Measures the other tools on the stream with half of the records.
fn read_surface(servers: &mut [Server], records: usize) {
    println!("the other tools over the stream with half of the records   p50 / p99 ms");
    for (what, tool, calls, arguments) in CASES {
        let took = by_turns(servers, calls, |server, n| server.call(tool, &arguments(n, records)));
        print_times(what, took);
    }
    let page = servers[0].answer("query_records", r#"{"stream":"s0","limit":100,"fields":["n"]}"#);
    let ids: Vec<&str> =
        page["records"].as_array().unwrap().iter().map(|record| record["id"].as_str().unwrap()).collect();
    let took = by_turns(servers, 300, |server, n| {
        server.call("fetch", &format!(r#"{{"id":"{}"}}"#, ids[n % ids.len()]))
    });
    print_times("fetch", took);
    let window = format!(r#"{{"id":"{}","field":"body","limit_chars":200}}"#, ids[0]);
    let took = by_turns(servers, 100, |server, _| server.call("read_record_field", &window));
    print_times("a window of a field", took);
    let mut cursors = vec![String::new(); servers.len()];
    let took = servers.iter_mut().zip(&mut cursors).map(|(server, cursor)| {
        let pages = (0..1_000).map_while(|_| {
            let arguments = format!(r#"{{"stream":"s0","limit":100,"fields":["n"],"cursor":"{cursor}"}}"#);
            let started = Instant::now();
            let page = server.answer("query_records", &arguments);
            let took = started.elapsed();
            page["next_cursor"].as_str()?.clone_into(cursor);
            Some(took)
        });
        pages.collect()
    });
    print_times("each of 1,000 pages of 100 in a row", took.collect());
}

/// Returns queries of each kind, by the frequency of their words.
fn kinds() -> Vec<(&'static str, Vec<String>)> {
    let word = |rank: usize| word(rank);
    let one = |from: usize, step: usize| (0..CALLS).map(|n| word(from + n * step)).collect();
    let two = |a: usize, a_step: usize, b: usize, b_step: usize| {
        (0..CALLS).map(|n| format!("{} {}", word(a + n % 40 * a_step), word(b + n * b_step))).collect()
    };
    vec![
        ("the 40 commonest words", (0..CALLS).map(|n| word(n % 40)).collect()),
        ("a common word", one(40, 2)),
        ("a rare word", one(50_000, 100)),
        ("two of the commonest", two(0, 1, 5, 0)),
        ("two common words", two(40, 5, 60, 2)),
        ("a common and a rare word", two(0, 1, 50_000, 100)),
        ("two rare words", two(20_000, 50, 50_000, 100)),
        (
            "four words",
            (0..CALLS).map(|n| words_of(&[n % 40, 100 + n, 3_000 + n * 7, 50_000 + n * 100])).collect(),
        ),
        ("a question of fifteen words", (0..CALLS).map(question).collect()),
        ("a phrase of two of the commonest words", in_quotes(&two(0, 1, 5, 0))),
        ("a phrase of two common words", in_quotes(&two(40, 5, 60, 2))),
        ("a phrase of three words of a text", phrases_of_texts()),
        ("a common word without a phrase", {
            let word = |n: usize| format!("{} -\"{} {}\"", word(40 + n * 2), word(n % 40), word(n % 7));
            (0..CALLS).map(word).collect()
        }),
        ("a misspelt word", (0..CALLS).map(|n| format!("{}q", word(50_000 + n * 100))).collect()),
    ]
}

/// Returns a query of fifteen words, eight of them among the 60 most frequent.
fn question(n: usize) -> String {
    let common = (0..8).map(|at| (n + at * 7) % 60);
    let others = (0..7).map(|at| 300 * (at + 1) * (at + 1) + n * (at + 1));
    words_of(&common.chain(others).collect::<Vec<_>>())
}

/// Returns queries of the first three words of a text each, in quotes. No other text needs to have them.
fn phrases_of_texts() -> Vec<String> {
    let mut corpus = Corpus::new();
    let mut phrase = || {
        let [_, body] = corpus.texts();
        format!("\"{}\"", body.split(' ').take(3).collect::<Vec<_>>().join(" "))
    };
    // The first record is the first that the corpus writes.
    (0..CALLS).map(|_| phrase()).collect()
}

/// Puts each query in quotes.
fn in_quotes(queries: &[String]) -> Vec<String> {
    queries.iter().map(|query| format!("\"{query}\"")).collect()
}

fn words_of(ranks: &[usize]) -> String {
    ranks.iter().map(|rank| word(*rank)).collect::<Vec<_>>().join(" ")
}

/// Texts with the word frequencies of natural language: few words often, most words rarely.
struct Corpus {
    cumulative: Vec<f64>,
    words: Vec<String>,
    seed: u64,
}

impl Corpus {
    fn new() -> Self {
        let mut total = 0.0;
        let mut cumulative: Vec<f64> = (0..VOCABULARY)
            .map(|rank| {
                total += 1.0 / (rank as f64 + 3.7).powf(1.05);
                total
            })
            .collect();
        cumulative.iter_mut().for_each(|share| *share /= total);
        Self { cumulative, words: (0..VOCABULARY).map(word).collect(), seed: 7 }
    }

    /// Returns a number in 0..1 that is the same in every run (`SplitMix64`).
    fn random(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    fn text(&mut self, length: usize) -> String {
        let mut text = String::new();
        for at in 0..length {
            let share = self.random();
            let rank = self.cumulative.partition_point(|until| *until < share).min(VOCABULARY - 1);
            if at > 0 {
                text.push(' ');
            }
            text.push_str(&self.words[rank]);
        }
        text
    }

    /// Returns a title and a text.
    fn texts(&mut self) -> [String; 2] {
        let title = self.text(6);
        let length = 20 + (self.random() * self.random() * 240.0) as usize;
        [title, self.text(length)]
    }

    fn write(mut self, file: &Path, records: usize) -> usize {
        let mut out = BufWriter::new(File::create(file).unwrap());
        let mut text_bytes = 0;
        for number in 0..records {
            let [title, body] = self.texts();
            let stream =
                if self.random() < 0.5 { 0 } else { 1 + (self.random() * (STREAMS - 1) as f64) as usize };
            text_bytes += title.len() + body.len();
            // One record for every half minute, from a thousand senders.
            let at = jiff::Timestamp::from_second(1_767_225_600 + number as i64 * 30).unwrap();
            let from = format!("sender{}", (self.random() * self.random() * 1_000.0) as usize);
            writeln!(out, r#"{{"stream":"s{stream}","key":"k{number}","data":{{"title":"{title}","n":{number},"from":"{from}","at":"{at}","body":"{body}"}},"emitted_at":"{at}"}}"#).unwrap();
        }
        out.flush().unwrap();
        text_bytes
    }
}

/// Returns the word of a rank: syllables, fewer for frequent words.
fn word(rank: usize) -> String {
    let (consonants, vowels) = (b"bcdfghjklmnprstvwz", b"aeiou");
    let mut word = String::new();
    let mut left = rank + 20;
    while left > 0 {
        word.push(char::from(consonants[left % 18]));
        left /= 18;
        word.push(char::from(vowels[left % 5]));
        left /= 5;
    }
    word
}

fn import(binary: &str, file: &Path, store: &OsStr, records: usize) {
    let started = Instant::now();
    let mut process = Command::new(binary)
        .args(["import", "records"])
        .arg(file)
        .arg("--store")
        .arg(store)
        .args(["--connection", "c"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0.0_f64;
    while process.try_wait().unwrap().is_none() {
        peak = peak.max(memory(process.id(), "VmHWM").unwrap_or(0.0));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    assert!(process.wait().unwrap().success());
    let seconds = started.elapsed().as_secs_f64();
    println!("import {seconds:.1} s, {:.0} records/s, peak {peak:.0} MB resident", records as f64 / seconds);
}

/// Prints the sizes of the files of an embedded store.
fn print_sizes(store: &Path) {
    let index: u64 = fs::read_dir(format!("{}-index", store.display()))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    println!("store {} MB, index {} MB", fs::metadata(store).unwrap().len() / 1_000_000, index / 1_000_000);
}

struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(binary: &str, store: &OsStr) -> Self {
        let mut process = Command::new(binary)
            .args(["serve", "--stdio", "--log", "error", "--store"])
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut server = Self { process, input, output: BufReader::new(output) };
        server.exchange(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#);
        server
    }

    fn exchange(&mut self, message: &str) -> String {
        writeln!(self.input, "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn search(&mut self, query: &str, stream: Option<&str>) -> Duration {
        let streams = stream.map_or_else(String::new, |stream| format!(r#","streams":["{stream}"]"#));
        let query = serde_json::Value::from(query);
        self.call("search", &format!(r#"{{"query":{query}{streams}}}"#))
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Duration {
        let started = Instant::now();
        let answer = self.called(tool, arguments);
        let took = started.elapsed();
        assert!(!answer.contains("isError\":true"), "{answer}");
        took
    }

    fn called(&mut self, tool: &str, arguments: &str) -> String {
        self.exchange(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    fn answer(&mut self, tool: &str, arguments: &str) -> serde_json::Value {
        let message: serde_json::Value = serde_json::from_str(&self.called(tool, arguments)).unwrap();
        message["result"]["structuredContent"].clone()
    }

    fn resident(&self) -> u64 {
        memory(self.process.id(), "VmRSS").unwrap() as u64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a line of the process's memory status in MB.
fn memory(process: u32, line: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|text| text.starts_with(line))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1_024.0)
}

/// Prints the times of a call for each store.
fn print_times(what: &str, took: Vec<Vec<Duration>>) {
    let times = took.into_iter().map(|mut took| {
        took.sort_unstable();
        let at = |percent: usize| took[took.len() * percent / 100].as_secs_f64() * 1_000.0;
        format!("{:>8.2} / {:>8.2}", at(50), at(99))
    });
    println!("  {what:<46} {}", times.collect::<Vec<_>>().join("   "));
}

/// Runs the same queries on the same texts with FTS5, ranked by its own BM25.
fn fts5(file: &Path, database: &Path) {
    let store = rusqlite::Connection::open(database).unwrap();
    store
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA mmap_size = 4000000000;
             CREATE VIRTUAL TABLE t USING fts5 (title, body, stream, content = '', contentless_delete = 1);
             BEGIN",
        )
        .unwrap();
    let started = Instant::now();
    let mut insert =
        store.prepare("INSERT INTO t (rowid, title, body, stream) VALUES (?1, ?2, ?3, ?4)").unwrap();
    for (number, line) in BufReader::new(File::open(file).unwrap()).lines().enumerate() {
        let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let field = |name: &str| record["data"][name].as_str().unwrap().to_owned();
        let row =
            (number as i64 + 1, field("title"), field("body"), record["stream"].as_str().unwrap().to_owned());
        insert.execute(row).unwrap();
    }
    store.execute_batch("COMMIT; INSERT INTO t (t) VALUES ('optimize')").unwrap();
    println!(
        "FTS5: load {:.1} s, {} MB",
        started.elapsed().as_secs_f64(),
        fs::metadata(database).unwrap().len() / 1_000_000
    );
    let mut best = store
        .prepare("SELECT rowid FROM t WHERE t MATCH ?1 ORDER BY bm25(t, 2.5, 1.0, 0.0) LIMIT 25")
        .unwrap();
    for (what, stream) in
        [("all streams", None), ("half of the records", Some("s0")), ("a thirtieth", Some("s3"))]
    {
        for (kind, words) in kinds() {
            let mut took = Vec::new();
            for query in words.iter().take(60) {
                let words: Vec<String> =
                    query.split(' ').map(|word| format!("{{title body}} : \"{word}\"")).collect();
                let scope = stream.map_or_else(String::new, |stream| format!("stream : \"{stream}\" AND "));
                let question = format!("{scope}({})", words.join(" AND "));
                let started = Instant::now();
                best.query_map([&question], |row| row.get::<_, i64>(0)).unwrap().for_each(drop);
                took.push(started.elapsed());
            }
            print_times(&format!("FTS5, {what}, {kind}"), vec![took]);
        }
    }
}

//! `cargo bench --bench million -- [--records N] [--fts5]`: importing and searching a large store.
//!
//! Makes N records (1,000,000 by default) whose words are spread as in natural text, imports them with the
//! release binary, and searches them through `serve --stdio`. With `--fts5` it also loads the same texts
//! into SQLite's FTS5 and asks it the same questions, which is how the index was chosen (docs/decisions.md).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench prints, and fails by panicking"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Different words in the corpus.
const VOCABULARY: usize = 300_000;

/// Streams; half of the records are in the first, the rest is spread evenly.
const STREAMS: usize = 16;

/// Calls per kind of query, each with other words.
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
    let store = folder.path().join("million.db");
    import(&file, &store, records);
    let mut server = Server::start(&store);
    println!("search, {CALLS} calls each with other words   p50 / p99 ms");
    for (what, stream) in
        [("all streams", None), ("half of the records", Some("s0")), ("a thirtieth", Some("s3"))]
    {
        for (kind, words) in kinds() {
            let mut took: Vec<Duration> = words.iter().map(|query| server.search(query, stream)).collect();
            print_times(&format!("{what}, {kind}"), &mut took);
        }
    }
    println!("server resident after that {} MB", server.resident());
    if arguments.iter().any(|argument| argument == "--fts5") {
        fts5(&file, &folder.path().join("fts5.db"));
    }
}

/// Queries of each kind, by how often their words occur.
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
    ]
}

/// Text as people write it: few words often, most words seldom.
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

    /// A number in 0..1, the same in every run (by `SplitMix64`).
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

    fn write(mut self, file: &Path, records: usize) -> usize {
        let mut out = BufWriter::new(File::create(file).unwrap());
        let mut text_bytes = 0;
        for number in 0..records {
            let title = self.text(6);
            let length = 20 + (self.random() * self.random() * 240.0) as usize;
            let body = self.text(length);
            let stream =
                if self.random() < 0.5 { 0 } else { 1 + (self.random() * (STREAMS - 1) as f64) as usize };
            text_bytes += title.len() + body.len();
            writeln!(out, r#"{{"stream":"s{stream}","key":"k{number}","data":{{"title":"{title}","body":"{body}"}},"emitted_at":"2026-01-01T00:00:00Z"}}"#).unwrap();
        }
        out.flush().unwrap();
        text_bytes
    }
}

/// The word of a rank: syllables, shorter for common ones.
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

fn import(file: &Path, store: &Path, records: usize) {
    let started = Instant::now();
    let mut process = Command::new(env!("CARGO_BIN_EXE_fetchwell"))
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
    fn start(store: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_fetchwell"))
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
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search","arguments":{{"query":"{query}"{streams}}}}}}}"#
        );
        let started = Instant::now();
        let answer = self.exchange(&message);
        let took = started.elapsed();
        assert!(!answer.contains("isError\":true"), "{answer}");
        took
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

/// A line of the process's memory status, in MB.
fn memory(process: u32, line: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|text| text.starts_with(line))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1_024.0)
}

fn print_times(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100].as_secs_f64() * 1_000.0;
    println!("  {what:<46} {:>8.2} / {:>8.2}", at(50), at(99));
}

/// The same texts and questions for FTS5, ranked by its own BM25.
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
            print_times(&format!("FTS5, {what}, {kind}"), &mut took);
        }
    }
}

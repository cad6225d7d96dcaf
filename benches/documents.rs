//! `cargo bench --bench documents -- [--chunks N]`: importing and searching a project of documents.
//!
//! Makes documents of about N chunks (100,000 by default) with words distributed as in natural text, imports them with the
//! release binary, embeds them with a provider of 1,024 dimensions in this process, and searches them: with `search_docs`
//! over stdio by words, by words and meaning, and from the cache; and over HTTP until the first event of a stream.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a bench prints, and fails by panicking"
)]

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[expect(dead_code, reason = "the other benches use more of it")]
mod client;
#[path = "../tests/it/support/fake_server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod fake_server;
#[path = "../tests/it/support/waiting.rs"]
mod waiting;

use client::{Client, binary, ms};
use fake_server::{FakeServer, Reply};

/// Number of different words in the corpus.
const VOCABULARY: usize = 100_000;

/// Number of words of a paragraph. With its heading it is one chunk.
const PARAGRAPH_WORDS: usize = 200;

/// Number of paragraphs of a document.
const PARAGRAPHS: usize = 10;

/// Number of calls per kind of search, each with other words.
const CALLS: usize = 300;

/// Number of dimensions of the vectors.
const DIMENSIONS: usize = 1_024;

/// Number of directions that the words of a text point to.
const DIRECTIONS: usize = 256;

/// Folders of the documents, most of which are categories.
const FOLDERS: [&str; 6] = ["intent", "research", "references", "process", "workspace", "guides"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == "--chunks");
    let chunks: usize = at.map_or(100_000, |at| arguments[at + 1].parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let place = Place { folder: folder.path().to_owned() };
    let bytes = Corpus::new().write(&place.folder.join("docs"), chunks.div_ceil(PARAGRAPHS));
    place.import(bytes);
    println!("search_docs, {CALLS} calls each with other words   p50 / p99 ms");
    let store = place.store();
    let (mut server, _) = Client::start(&["--profile", "docs", "--store", store.to_str().unwrap()]);
    for (kind, queries) in kinds() {
        search(&mut server, &format!("by words, {kind}"), &queries);
    }
    let (_, questions) = kinds().pop().unwrap();
    search(&mut server, "by words, the questions again, from the cache", &questions);
    println!("server resident after that {:.0} MB", server.resident());
    drop(server);
    let provider = provider();
    let config = place.configure(&provider.url);
    place.embed(&config);
    let (mut server, _) = Client::start(&["--profile", "docs", "--config", config.to_str().unwrap()]);
    println!(
        "the first search by meaning, which loads the vectors: {:.0} ms",
        ms(call(&mut server, "zebra"))
    );
    for (kind, queries) in kinds() {
        search(&mut server, &format!("by words and meaning, {kind}"), &queries);
    }
    search(&mut server, "by words and meaning, the questions again, from the cache", &questions);
    println!("server resident after that {:.0} MB", server.resident());
    drop(server);
    stream(&config, &questions);
}

/// Measures the events of streamed searches over HTTP.
fn stream(config: &Path, queries: &[String]) {
    println!("GET /api/v1/search/stream, {} calls   p50 / p99 ms", queries.len());
    let server = HttpServer::start(config);
    server.events("zebra");
    for kind in ["not cached", "from the cache"] {
        let (mut first, mut last): (Vec<Duration>, Vec<Duration>) =
            queries.iter().map(|query| server.events(query)).unzip();
        print_times(&format!("{kind}, first event (target 5)"), &mut first);
        print_times(&format!("{kind}, last event"), &mut last);
    }
}

/// The folder of a run, with the documents and the store.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn store(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    fn run(&self, arguments: &[&str]) {
        let output = Command::new(binary()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Imports the documents twice: all of them, and none of them, because nothing changed.
    fn import(&self, bytes: usize) {
        let (store, docs) = (self.store(), self.folder.join("docs"));
        let store = store.to_str().unwrap();
        self.run(&["project", "create", "default", "--store", store]);
        let import = ["import", "docs", docs.to_str().unwrap(), "--project", "default"];
        let options = ["--category-from", "folder", "--store", store];
        let started = Instant::now();
        self.run(&[&import[..], &options].concat());
        let seconds = started.elapsed().as_secs_f64();
        let database = rusqlite::Connection::open(store).unwrap();
        let count = |table: &str| -> i64 {
            database.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
        };
        let (documents, chunks) = (count("documents"), count("chunks"));
        println!("{documents} documents, {chunks} chunks, {} MB of text", bytes / 1_000_000);
        println!(
            "import {seconds:.1} s: {:.0} documents/s, {:.0} chunks/s",
            documents as f64 / seconds,
            chunks as f64 / seconds
        );
        let started = Instant::now();
        self.run(&[&import[..], &options].concat());
        println!("import without a change {:.2} s", started.elapsed().as_secs_f64());
        println!("store {} MB", fs::metadata(store).unwrap().len() / 1_000_000);
    }

    /// Writes a configuration with an embedding model at a URL.
    fn configure(&self, url: &str) -> PathBuf {
        let config = self.folder.join("fetchwell.toml");
        let text = format!(
            "[[source]]\nname = \"own\"\nstore = \"{}\"\n[embedding]\nprovider = \"http\"\nurl = \"{url}/v1\"\n\
             model = \"voyage/voyage-3\"\ndimensions = {DIMENSIONS}\nbackground = false\nquery_timeout = \"30s\"\n",
            self.store().display()
        );
        fs::write(&config, text).unwrap();
        config
    }

    fn embed(&self, config: &Path) {
        let started = Instant::now();
        self.run(&["embeddings", "build", "--yes", "--config", config.to_str().unwrap()]);
        let seconds = started.elapsed().as_secs_f64();
        let vectors = fs::metadata(format!("{}-vectors", self.store().display())).unwrap().len();
        println!("embeddings build {seconds:.1} s, provider included; vectors {} MB", vectors / 1_000_000);
    }
}

/// Returns queries of each kind, by the frequency of their words.
fn kinds() -> Vec<(&'static str, Vec<String>)> {
    let words = |ranks: &[usize]| ranks.iter().map(|rank| word(*rank)).collect::<Vec<_>>().join(" ");
    let each = |ranks: &dyn Fn(usize) -> Vec<usize>| (0..CALLS).map(|n| words(&ranks(n))).collect::<Vec<_>>();
    vec![
        ("a common word", each(&|n| vec![40 + n * 2])),
        ("a rare word", each(&|n| vec![20_000 + n * 50])),
        ("a common and a rare word", each(&|n| vec![n % 40, 20_000 + n * 50])),
        // Five of the eight words are among the 60 most frequent.
        (
            "a question of eight words",
            each(&|n| {
                let common = (0..5).map(|at| (n + at * 7) % 60);
                common.chain((1..4).map(|at| 400 * at * at + n * at)).collect()
            }),
        ),
    ]
}

fn search(server: &mut Client, what: &str, queries: &[String]) {
    let mut took: Vec<Duration> = queries.iter().map(|query| call(server, query)).collect();
    print_times(what, &mut took);
}

fn call(server: &mut Client, query: &str) -> Duration {
    server.call("search_docs", &format!(r#"{{"query":"{query}"}}"#))
}

fn print_times(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |percent: usize| ms(took[took.len() * percent / 100]);
    println!("  {what:<66} {:>8.2} / {:>8.2}", at(50), at(99));
}

/// Texts with the word frequencies of natural language: few words often, most words rarely.
struct Corpus {
    cumulative: Vec<f64>,
    words: Vec<String>,
    random: Random,
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
        Self { cumulative, words: (0..VOCABULARY).map(word).collect(), random: Random(7) }
    }

    fn text(&mut self, length: usize) -> String {
        let mut text = String::new();
        for at in 0..length {
            let share = f64::from(self.random.number());
            let rank = self.cumulative.partition_point(|until| *until < share).min(VOCABULARY - 1);
            text.push_str(if at > 0 { " " } else { "" });
            text.push_str(&self.words[rank]);
        }
        text
    }

    /// Writes Markdown documents. Returns their bytes.
    fn write(mut self, folder: &Path, documents: usize) -> usize {
        let mut bytes = 0;
        for number in 0..documents {
            let mut text = format!("# {}\n", self.text(5));
            for _ in 0..PARAGRAPHS {
                let (heading, body) = (self.text(3), self.text(PARAGRAPH_WORDS));
                write!(text, "\n## {heading}\n\n{body}.\n").unwrap();
            }
            // A thousand documents in each folder below that of a category.
            let folder = folder.join(FOLDERS[number % FOLDERS.len()]).join((number / 6_000).to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("document-{number}.md")), &text).unwrap();
            bytes += text.len();
        }
        bytes
    }
}

/// Random numbers in 0..1, the same in every run (by `SplitMix64`).
struct Random(u64);

impl Random {
    fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
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

/// Starts the embedding provider.
fn provider() -> FakeServer {
    let directions = directions();
    FakeServer::start(move |request| Reply::Json(200, embeddings(&request.body, &directions)))
}

fn directions() -> Vec<Vec<f32>> {
    let mut random = Random(11);
    (0..DIRECTIONS).map(|_| (0..DIMENSIONS).map(|_| random.number() - 0.5).collect()).collect()
}

/// Returns the response to a request for vectors. Each word of a text adds the direction of its hash.
fn embeddings(body: &str, directions: &[Vec<f32>]) -> String {
    let request: serde_json::Value = serde_json::from_str(body).unwrap();
    let texts = request["input"].as_array().unwrap();
    let mut response = String::from(r#"{"object":"list","data":["#);
    for (index, text) in texts.iter().enumerate() {
        let mut counts = vec![0.0_f32; DIRECTIONS];
        for word in text.as_str().unwrap().split_whitespace() {
            let mut hasher = DefaultHasher::new();
            word.hash(&mut hasher);
            counts[hasher.finish() as usize % DIRECTIONS] += 1.0;
        }
        let mut vector = vec![0.0_f32; DIMENSIONS];
        for (count, direction) in counts.iter().zip(directions).filter(|(count, _)| **count > 0.0) {
            vector.iter_mut().zip(direction).for_each(|(sum, part)| *sum += count * part);
        }
        let comma = if index > 0 { "," } else { "" };
        write!(response, r#"{comma}{{"index":{index},"embedding":["#).unwrap();
        for (at, number) in vector.iter().enumerate() {
            write!(response, "{}{number:.3}", if at > 0 { "," } else { "" }).unwrap();
        }
        response.push_str("]}");
    }
    response.push_str("]}");
    response
}

/// The binary over HTTP.
struct HttpServer {
    process: Child,
    address: String,
    _state: tempfile::TempDir,
}

impl HttpServer {
    fn start(config: &Path) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut process = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "error", "--config"])
            .arg(config)
            .arg("--state-dir")
            .arg(state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let announced =
            lines.find_map(|line| line.strip_prefix("fetchwell serves MCP at ").map(str::to_owned));
        let address = announced.unwrap().split("://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address, _state: state }
    }

    /// Searches with a stream. Returns the times until the first event and until the end, from the request on.
    fn events(&self, query: &str) -> (Duration, Duration) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let target = format!("/api/v1/search/stream?project_id=default&query={}", query.replace(' ', "+"));
        let request = format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
        let started = Instant::now();
        stream.write_all(request.as_bytes()).unwrap();
        let (mut text, mut part, mut first) = (Vec::new(), [0; 65_536], None);
        loop {
            let read = stream.read(&mut part).unwrap();
            text.extend_from_slice(&part[..read]);
            if first.is_none() && text.windows(7).any(|bytes| bytes == b"event: ") {
                first = Some(started.elapsed());
            }
            if read == 0 {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("event: complete"), "{text}");
        (first.unwrap(), started.elapsed())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

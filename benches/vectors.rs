//! `cargo bench --bench vectors -- [CHUNKS DIMENSIONS] [--postgres URL]`: search over the vectors of a store.
//!
//! Writes a file of random vectors around some directions, searches it without a filter and with filters that 20 %, 2 %
//! and 0.1 % of the chunks pass, and compares the ten nearest records with those of a scan of all numbers. All vectors
//! of a direction are about equally far from each other, which is hard for an index. With `--postgres` it also loads them
//! into an empty database with pgvector, and searches them by the statement and the settings of a store there. It drops the
//! schema `fetchwell` of that database.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a bench prints, and fails by panicking"
)]

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use fetchwell_embedding::{ModelIdentity, QueryVector};
use fetchwell_sqlite::{VectorIndex, VectorScope};
use rusqlite::{Connection, params};

#[path = "vectors/postgres.rs"]
mod postgres;

/// Number of directions that the vectors are near to.
const DIRECTIONS: usize = 64;

/// Number of searches of each kind.
const QUERIES: usize = 30;

/// Maximum size in bytes of the vectors in memory.
const MAX_BYTES: usize = 1 << 30;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let numbers: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = match numbers[..] {
        [chunks, dimensions] => vec![(chunks, dimensions)],
        _ => vec![(50_000, 384), (50_000, 1_024), (200_000, 384), (200_000, 1_024)],
    };
    let after = |name: &str| arguments.iter().skip_while(move |argument| *argument != name).nth(1);
    for (chunks, dimensions) in sizes {
        let set = Set::new(chunks, dimensions);
        println!("\n{chunks} x {dimensions}\n");
        measure_file(&set);
        if let Some(url) = after("--postgres") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(postgres::measure(url, &set));
        }
    }
}

/// Filters of searches, by name. A record passes if its number is a multiple of the divisor.
const FILTERS: [(&str, usize); 4] = [("none", 1), ("20 %", 5), ("2 %", 50), ("0.1 %", 1_000)];

/// Vectors with queries, and for each filter the records that are nearest to each query.
struct Set {
    vectors: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
    nearest: Vec<Vec<HashSet<i64>>>,
}

impl Set {
    fn new(chunks: usize, dimensions: usize) -> Self {
        let mut random = Random(7);
        let directions: Vec<Vec<f32>> =
            (0..DIRECTIONS).map(|_| (0..dimensions).map(|_| random.number()).collect()).collect();
        let vectors: Vec<Vec<f32>> = (0..chunks).map(|at| random.vector(&directions, at)).collect();
        let queries: Vec<Vec<f32>> = (0..QUERIES).map(|at| random.vector(&directions, at * 7)).collect();
        let nearest = FILTERS
            .iter()
            .map(|(_, share)| queries.iter().map(|query| nearest_of(&vectors, query, *share)).collect());
        let nearest = nearest.collect();
        Self { vectors, queries, nearest }
    }
}

/// Returns the ten nearest records that pass a filter. Scans all vectors.
fn nearest_of(vectors: &[Vec<f32>], query: &[f32], share: usize) -> HashSet<i64> {
    let dot = |vector: &[f32]| vector.iter().zip(query).map(|(one, other)| one * other).sum::<f32>();
    let covered = vectors.iter().enumerate().filter(|(record, _)| record.is_multiple_of(share));
    let mut exact: Vec<(f32, i64)> = covered.map(|(record, vector)| (dot(vector), record as i64)).collect();
    exact.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    exact.iter().take(10).map(|(_, record)| *record).collect()
}

/// Results of the searches with one filter.
#[derive(Default)]
struct Results {
    times: Vec<f64>,
    found: usize,
    wanted: usize,
}

impl Results {
    fn add(&mut self, start: Instant, hits: &[i64], nearest: &HashSet<i64>) {
        self.times.push(start.elapsed().as_secs_f64() * 1_000.0);
        self.found += hits.iter().take(10).filter(|record| nearest.contains(record)).count();
        self.wanted += nearest.len();
    }

    fn print(self, name: &str, filter: &str) {
        // The first search loads the vectors.
        let mut times: Vec<f64> = self.times.into_iter().skip(1).collect();
        times.sort_by(f64::total_cmp);
        let recall = self.found as f64 / self.wanted as f64;
        let (p50, last) = (times[times.len() / 2], times[times.len() - 1]);
        println!("| {name} | {filter} | {p50:.1} | {last:.1} | {recall:.3} |");
    }
}

/// Random numbers, the same in every run (by `SplitMix64`).
struct Random(u64);

impl Random {
    fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    }

    /// Returns a vector of length 1 near to a direction.
    fn vector(&mut self, directions: &[Vec<f32>], at: usize) -> Vec<f32> {
        let vector: Vec<f32> =
            directions[at % DIRECTIONS].iter().map(|part| part + 1.5 * self.number()).collect();
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    }
}

fn measure_file(set: &Set) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    std::fs::write(&store, "").unwrap();
    let Set { vectors, queries, nearest } = set;
    let file = folder.path().join("store.db-vectors");
    write(&file, vectors);
    println!("file: {} bytes\n", std::fs::metadata(&file).unwrap().len());
    println!("| vectors in | filter | p50 ms | slowest ms | recall@10 |");
    println!("|---|---|--:|--:|--:|");
    let index = VectorIndex::new(&store, MAX_BYTES);
    for ((filter, share), nearest) in FILTERS.iter().zip(nearest) {
        // A filter by stream, and records for small shares as operators select them.
        let scope = match share {
            1 => VectorScope::default(),
            5 => VectorScope { streams: Some(vec![0]), ..VectorScope::default() },
            _ => {
                let records: HashSet<i64> =
                    (0..vectors.len() as i64).filter(|row| (*row as usize).is_multiple_of(*share)).collect();
                VectorScope { records: Some(records), ..VectorScope::default() }
            }
        };
        let mut results = Results::default();
        for (query, nearest) in queries.iter().zip(nearest) {
            let model = ModelIdentity { id: "bench".into(), probe: vectors[0].as_slice().into() };
            let query = QueryVector { model, name: "bench".into(), numbers: query.as_slice().into() };
            let start = Instant::now();
            let hits = index.search(&query, 50, &scope).unwrap().hits;
            let hits: Vec<i64> = hits.iter().map(|hit| hit.record).collect();
            results.add(start, &hits, nearest);
        }
        results.print("a file", filter);
    }
}

/// Returns the scale and the 16-bit codes of a vector.
fn coded(vector: &[f32]) -> (f32, Vec<u8>) {
    let scale = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let code = |number: &f32| ((number / scale * 32_767.0).round() as i16).to_le_bytes();
    (scale, vector.iter().flat_map(code).collect())
}

/// Writes a file of vectors as a build does, with 16-bit codes.
fn write(path: &Path, vectors: &[Vec<f32>]) {
    let mut sqlite = Connection::open(path).unwrap();
    let settings = "PRAGMA page_size = 32768; PRAGMA application_id = 0x66777665; PRAGMA journal_mode = WAL;";
    sqlite.execute_batch(settings).unwrap();
    sqlite.execute_batch(include_str!("../crates/sqlite/src/vectors/schema.sql")).unwrap();
    sqlite.execute_batch("PRAGMA user_version = 1;").unwrap();
    let transaction = sqlite.transaction().unwrap();
    let dimensions = vectors[0].len();
    let generation = "INSERT INTO generations VALUES (1, 'bench', ?1, 's', 1, 1, 1, 0, ?2)";
    let (scale, codes) = coded(&vectors[0]);
    let probe: Vec<u8> = scale.to_le_bytes().into_iter().chain(codes).collect();
    transaction.execute(generation, params![dimensions as i64, probe]).unwrap();
    let chunk = "INSERT INTO chunks VALUES (NULL, 1, ?1, ?2, 1, 0, 0, x'', ?3, ?4)";
    let mut insert = transaction.prepare(chunk).unwrap();
    for (record, vector) in (0_i64..).zip(vectors) {
        let (scale, codes) = coded(vector);
        insert.execute(params![record, record % 5, f64::from(scale), codes]).unwrap();
    }
    drop(insert);
    transaction.commit().unwrap();
}

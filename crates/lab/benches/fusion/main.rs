//! `cargo bench --bench fusion -- SETS SET...`: nDCG@10 of a federation of stores, and of one whose sources list their
//! results, against the same records in stores.
//!
//! `SETS` is a folder of labelled sets that `tests/retrieval/build.py` writes, each `SET` one of them. The records of a set are
//! divided between three stores by the hash of their key. A list is made of the hits of a store, as a server has it that returns
//! ids, titles and passages in an order of its own, or of all records that have any word of the query, in the order of the file.
//!
//! A row has the mean of the kinds of questions with its 95 % interval when lists are fused by rank alone, when they are fused
//! by their words, too, and when unordered lists are put into the order of their words before; then differences: of the latter
//! two, to the row of three stores, and to this row on the questions of which a list has an answer. Several sets have a last
//! table of all their kinds. docs/decisions.md has what was measured.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unimplemented,
    reason = "a bench prints, and fails by panicking"
)]

mod listed;
mod results;
mod split;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::record::{Hit, HitId};
use fetchwell_lab::evaluation::{Estimate, Measures, Question};
use fetchwell_source::federation::{Federation, Member};
use fetchwell_source::{BoundSource, SearchQuery};
use tokio::runtime::Runtime;

use listed::{ListedSource, Lists};
use results::{Kind, Searches, grade};
use split::{PARTS, SplitSet};

/// Number of hits that a search asks for, as the tools do.
const LIMIT: usize = 25;

const DEADLINE: Duration = Duration::from_secs(600);

/// Kinds of the sources.
const ROWS: [(&str, [Kind; PARTS]); 12] = [
    ("3 stores", [Kind::Store; PARTS]),
    ("3 lists in the order of the file", [Kind::Unranked; PARTS]),
    ("2 ranked lists of 10, 1 in the order of the file", [Kind::Ranked, Kind::Unranked, Kind::Ranked]),
    ("1 store, 2 lists in the order of the file", [Kind::Store, Kind::Unranked, Kind::Unranked]),
    ("3 ranked lists of 10", [Kind::Ranked; PARTS]),
    ("3 ranked lists of 50", [Kind::Long; PARTS]),
    ("3 ranked lists of 10 titles", [Kind::Titles; PARTS]),
    ("1 store, 2 ranked lists of 10", [Kind::Store, Kind::Ranked, Kind::Ranked]),
    ("2 ranked lists of 10, 1 store", [Kind::Ranked, Kind::Ranked, Kind::Store]),
    ("1 store, 2 ranked lists of 10 titles", [Kind::Store, Kind::Titles, Kind::Titles]),
    ("3 lists by meaning, simulated", [Kind::Meaning; PARTS]),
    ("3 lists by number of words", [Kind::Counted; PARTS]),
];

/// Lists of a part, and whether each has an answer.
type PartLists = (Arc<Lists>, Vec<bool>);

/// Measures of one question, with the kind that it belongs to.
#[derive(Debug, Clone)]
struct Cell {
    kind: String,
    by_rank: f64,
    by_words: f64,
    ordered: f64,
    stores: f64,
    is_listed: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some((folder, names)) = arguments.split_first() else {
        println!("usage: cargo bench --bench fusion -- SETS SET...");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut all: Vec<Vec<Cell>> = vec![Vec::new(); ROWS.len()];
    for name in names {
        let set = SplitSet::open(&Path::new(folder).join(name));
        print_head(name);
        for (cells, all) in measured_rows(&runtime, &set, name).into_iter().zip(&mut all) {
            all.extend(cells);
        }
    }
    if names.len() > 1 {
        print_head(&names.join(", "));
        ROWS.iter().zip(&all).for_each(|((row, _), cells)| print_row(row, cells));
    }
}

/// Returns the measures of all questions of a set that have an answer, for each row, which is printed when it is measured.
fn measured_rows(runtime: &Runtime, set: &SplitSet, name: &str) -> Vec<Vec<Cell>> {
    let searches: Vec<Searches<'_>> =
        set.parts.iter().map(|part| Searches::run(runtime, part, &set.questions)).collect();
    let mut made: BTreeMap<(usize, Kind, bool), PartLists> = BTreeMap::new();
    let mut of_stores = None;
    let row = |(name_of_row, kinds): (&str, [Kind; PARTS])| {
        let mut parts = |is_ordered: bool| -> Vec<PartLists> {
            let part = |(number, kind): (usize, &Kind)| {
                let known = made.entry((number, *kind, is_ordered)).or_insert_with(|| {
                    let (lists, has_answer) = searches[number].lists(*kind, is_ordered);
                    (Arc::new(lists), has_answer)
                });
                known.clone()
            };
            kinds.iter().enumerate().map(part).collect()
        };
        let (listed, ordered) = (parts(false), parts(true));
        let ndcg =
            |parts: &[PartLists], with_words: bool| measured(runtime, &set.questions, parts, with_words);
        let (by_rank, by_words) = (ndcg(&listed, false), ndcg(&listed, true));
        let ordered = ndcg(&ordered, true);
        let stores = of_stores.get_or_insert_with(|| by_words.clone());
        let cell = |(at, question): (usize, &Question)| {
            Some(Cell {
                kind: format!("{name} {}", question.kind),
                by_rank: by_rank[at]?,
                by_words: by_words[at]?,
                ordered: ordered[at]?,
                stores: stores[at]?,
                is_listed: listed.iter().any(|(_, has_answer)| has_answer[at]),
            })
        };
        let cells: Vec<Cell> = set.questions.iter().enumerate().filter_map(cell).collect();
        print_row(name_of_row, &cells);
        cells
    };
    ROWS.into_iter().map(row).collect()
}

/// Returns nDCG@10 of each question over a federation of lists, `None` for one without an answer.
fn measured(
    runtime: &Runtime,
    questions: &[Question],
    parts: &[PartLists],
    with_words: bool,
) -> Vec<Option<f64>> {
    let member = |(number, (lists, _)): (usize, &PartLists)| Member {
        source: Arc::new(ListedSource {
            name: format!("part-{number}").parse().unwrap(),
            lists: Arc::clone(lists),
            has_coverage: with_words,
        }),
        deadline: DEADLINE,
    };
    let members = parts.iter().enumerate().map(member).collect();
    let source = BoundSource::from(Federation::new("all".parse().unwrap(), members));
    let ndcg = |question: &Question| {
        let page = runtime.block_on(source.search(&SearchQuery::new(&question.query, LIMIT))).unwrap();
        let gains: Vec<u8> = page.hits.iter().map(|hit| gain(question, hit)).collect();
        let grades: Vec<u8> = question.relevant.iter().map(|record| record.grade).collect();
        Some(Measures::new(&gains, &grades)?.ndcg_10)
    };
    questions.iter().map(ndcg).collect()
}

fn gain(question: &Question, hit: &Hit) -> u8 {
    let HitId::Record(address) = &hit.id else { return 0 };
    grade(question, address)
}

fn print_head(name: &str) {
    println!("\n{name}\n");
    println!(
        "| sources | rank alone | rank and words | lists ordered, too | gain of the order | minus 3 stores | listed | minus 3 stores if listed |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

fn print_row(row: &str, cells: &[Cell]) {
    let listed: Vec<Cell> = cells.iter().filter(|cell| cell.is_listed).cloned().collect();
    println!(
        "| {row} | {} | {} | {} | {} | {} | {} of {} | {} |",
        estimate(cells, false, |cell| cell.by_rank),
        estimate(cells, false, |cell| cell.by_words),
        estimate(cells, false, |cell| cell.ordered),
        estimate(cells, true, |cell| cell.ordered - cell.by_words),
        estimate(cells, true, |cell| cell.ordered - cell.stores),
        listed.len(),
        cells.len(),
        estimate(&listed, true, |cell| cell.ordered - cell.stores),
    );
}

/// Returns the mean of the kinds with its interval.
fn estimate(cells: &[Cell], is_difference: bool, value: impl Fn(&Cell) -> f64) -> String {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        kinds.entry(&cell.kind).or_default().push(value(cell));
    }
    let kinds: Vec<Vec<f64>> = kinds.into_values().collect();
    let Some(Estimate { mean, low, high }) = Estimate::new(&kinds) else { return "-".to_owned() };
    if is_difference {
        format!("{mean:+.3} ({low:+.3} to {high:+.3})")
    } else {
        format!("{mean:.3} ({low:.3} to {high:.3})")
    }
}

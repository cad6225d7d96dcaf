//! `cargo bench --bench fusion -- SETS SET...`: nDCG@10 of a federation whose sources only list their results, against the
//! same records in stores.
//!
//! `SETS` is a folder of labelled sets that `tests/retrieval/build.py` writes, each `SET` one of them. The records of a set are
//! divided between three stores. A list is made of the hits of a store, as a server has it that returns ids, titles and
//! passages in an order of its own, or of all records that have any word of the query, in the order of the file. A row has the
//! mean of the kinds of questions with its 95 % interval when lists are fused by rank alone and when they are fused by their
//! words, too, and the difference of the latter to the row of three stores. docs/decisions.md has what was measured.

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
use results::{Kind, lists_of};
use split::{PARTS, SplitSet};

/// Number of hits that a search asks for, as the tools do.
const LIMIT: usize = 25;

const DEADLINE: Duration = Duration::from_secs(600);

/// Kinds of the sources.
const ROWS: [(&str, [Kind; PARTS]); 6] = [
    ("3 stores", [Kind::Store; PARTS]),
    ("3 ranked lists", [Kind::Ranked; PARTS]),
    ("3 ranked lists of titles", [Kind::Titles; PARTS]),
    ("3 lists in the order of the file", [Kind::Unranked; PARTS]),
    ("1 store, 2 ranked lists", [Kind::Store, Kind::Ranked, Kind::Ranked]),
    ("1 store, 2 lists in the order of the file", [Kind::Store, Kind::Unranked, Kind::Unranked]),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some((folder, names)) = arguments.split_first() else {
        println!("usage: cargo bench --bench fusion -- SETS SET...");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for name in names {
        let set = SplitSet::open(&Path::new(folder).join(name));
        println!("\n{name}: {} questions\n", set.questions.len());
        println!("| sources | rank alone | rank and words | minus 3 stores |");
        println!("|---|---|---|---|");
        let mut lists: BTreeMap<(usize, Kind), Arc<Lists>> = BTreeMap::new();
        let mut of_stores = None;
        for (row, kinds) in ROWS {
            let parts: Vec<Arc<Lists>> = kinds
                .iter()
                .enumerate()
                .map(|(number, kind)| {
                    let made = lists.entry((number, *kind));
                    let part = &set.parts[number];
                    Arc::clone(
                        made.or_insert_with(|| Arc::new(lists_of(&runtime, part, *kind, &set.questions))),
                    )
                })
                .collect();
            let by_words = measured(&runtime, &set.questions, &parts);
            let by_rank: Vec<Arc<Lists>> =
                parts.iter().map(|lists| Arc::new(without_coverage(lists))).collect();
            let by_rank = measured(&runtime, &set.questions, &by_rank);
            let stores = of_stores.get_or_insert_with(|| by_words.clone());
            let difference =
                by_words.iter().zip(stores.iter()).map(|(one, store)| Some(one.as_ref()? - store.as_ref()?));
            let difference = difference.collect::<Vec<_>>();
            let cell = |values: &[Option<f64>], sign: bool| estimate(&set.questions, values, sign);
            println!(
                "| {row} | {} | {} | {} |",
                cell(&by_rank, false),
                cell(&by_words, false),
                cell(&difference, true)
            );
        }
    }
}

/// Returns nDCG@10 of each question over a federation of lists, `None` for one without an answer.
fn measured(runtime: &Runtime, questions: &[Question], parts: &[Arc<Lists>]) -> Vec<Option<f64>> {
    let member = |(number, lists): (usize, &Arc<Lists>)| Member {
        source: Arc::new(ListedSource {
            name: format!("part-{number}").parse().unwrap(),
            lists: Arc::clone(lists),
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

/// Returns the grade of a hit, 0 if it does not answer the question. Records have the connection of their part.
fn gain(question: &Question, hit: &Hit) -> u8 {
    let HitId::Record(address) = &hit.id else { return 0 };
    let relevant = question.relevant.iter().find(|relevant| {
        let answer = relevant.address.as_ref();
        answer.is_some_and(|answer| answer.stream == address.stream && answer.record == address.record)
    });
    relevant.map_or(0, |record| record.grade)
}

fn without_coverage(lists: &Lists) -> Lists {
    let without = |hit: &Hit| Hit { coverage: None, ..hit.clone() };
    lists.iter().map(|(words, hits)| (words.clone(), hits.iter().map(without).collect())).collect()
}

/// Returns the mean of the kinds with its interval.
fn estimate(questions: &[Question], values: &[Option<f64>], sign: bool) -> String {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (question, value) in questions.iter().zip(values) {
        kinds.entry(&question.kind).or_default().extend(*value);
    }
    let kinds: Vec<Vec<f64>> = kinds.into_values().collect();
    let Estimate { mean, low, high } = Estimate::new(&kinds).unwrap();
    if sign {
        format!("{mean:+.3} ({low:+.3} to {high:+.3})")
    } else {
        format!("{mean:.3} ({low:.3} to {high:.3})")
    }
}

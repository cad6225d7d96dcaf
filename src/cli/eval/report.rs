//! Measures of runs by kind and in all, as text or JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_lab::evaluation::{Estimate, Measures, Question};
use fetchwell_source::SearchMode;
use serde::Serialize;

use super::run::{Answer, Run};
use crate::cli::print::Printer;

/// Name of the row over all kinds.
const ALL: &str = "all";

/// Report of a run.
#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    mode: &'static str,
    kinds: Vec<KindReport>,
    /// All kinds with equal weight; `None` if no question has an answer.
    all: Option<KindReport>,
    /// Questions without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswerable: Option<Unanswerable>,
    /// Relevant ids that no record has.
    unknown: Vec<String>,
    questions: Vec<QuestionReport>,
}

/// Measures of the questions of a kind.
#[derive(Debug, Serialize)]
struct KindReport {
    kind: String,
    n: usize,
    measures: MeasureEstimates,
    p50_ms: f64,
    p99_ms: f64,
}

/// Means of the measures with their intervals.
#[derive(Debug, Serialize)]
struct MeasureEstimates {
    hit_1: Estimate,
    hit_10: Estimate,
    mrr_10: Estimate,
    ndcg_10: Estimate,
    recall_50: Estimate,
}

/// Counts of the questions without an answer.
#[derive(Debug, Serialize)]
struct Unanswerable {
    n: usize,
    /// Questions for which nothing was found.
    without_hits: usize,
}

/// Measures of a question.
#[derive(Debug, Serialize)]
struct QuestionReport {
    id: String,
    kind: String,
    #[serde(flatten)]
    measures: Option<Measures>,
    hits: usize,
    ms: f64,
}

/// Differences of two runs over the same questions.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    kinds: Vec<Difference>,
    all: Option<Difference>,
}

/// Difference of nDCG@10, the first run minus the second, with its paired interval.
#[derive(Debug, Serialize)]
struct Difference {
    kind: String,
    n: usize,
    ndcg_10: Estimate,
}

#[derive(Serialize)]
struct EvalReport<'a> {
    runs: &'a [RunReport],
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<&'a Comparison>,
}

impl RunReport {
    pub(super) fn new(questions: &[Question], mode: SearchMode, run: Run) -> Self {
        let Run { answers, unknown, .. } = run;
        let mut kinds: BTreeMap<&str, Vec<&Answer>> = BTreeMap::new();
        for (question, answer) in
            questions.iter().zip(&answers).filter(|(_, answer)| answer.measures.is_some())
        {
            kinds.entry(&question.kind).or_default().push(answer);
        }
        let groups: Vec<Vec<&Answer>> = kinds.values().cloned().collect();
        let rows =
            kinds.iter().filter_map(|(kind, answers)| KindReport::new(kind, std::slice::from_ref(answers)));
        let without_answer = answers.iter().filter(|answer| answer.measures.is_none());
        let unanswerable = Unanswerable {
            n: without_answer.clone().count(),
            without_hits: without_answer.filter(|answer| answer.hits == 0).count(),
        };
        Self {
            mode: mode.as_str(),
            kinds: rows.collect(),
            all: KindReport::new(ALL, &groups),
            unanswerable: (unanswerable.n > 0).then_some(unanswerable),
            unknown: unknown.into_iter().collect(),
            questions: questions
                .iter()
                .zip(&answers)
                .map(|(question, answer)| QuestionReport::new(question, answer))
                .collect(),
        }
    }
}

impl KindReport {
    /// Creates a row of groups of answers with equal weight.
    fn new(kind: &str, groups: &[Vec<&Answer>]) -> Option<Self> {
        let estimate = |value: fn(&Measures) -> f64| {
            let values = |group: &Vec<&Answer>| -> Vec<f64> {
                group.iter().filter_map(|answer| answer.measures.as_ref().map(value)).collect()
            };
            Estimate::new(&groups.iter().map(values).collect::<Vec<_>>())
        };
        let measures = MeasureEstimates {
            hit_1: estimate(|measures| measures.hit_1)?,
            hit_10: estimate(|measures| measures.hit_10)?,
            mrr_10: estimate(|measures| measures.mrr_10)?,
            ndcg_10: estimate(|measures| measures.ndcg_10)?,
            recall_50: estimate(|measures| measures.recall_50)?,
        };
        let mut taken: Vec<Duration> = groups.iter().flatten().map(|answer| answer.taken).collect();
        taken.sort_unstable();
        let percentile =
            |share: usize| milliseconds(taken.get(taken.len() * share / 100).copied().unwrap_or_default());
        let (p50_ms, p99_ms) = (percentile(50), percentile(99));
        Some(Self { kind: kind.to_owned(), n: taken.len(), measures, p50_ms, p99_ms })
    }
}

impl QuestionReport {
    fn new(question: &Question, answer: &Answer) -> Self {
        Self {
            id: question.id.clone(),
            kind: question.kind.clone(),
            measures: answer.measures,
            hits: answer.hits,
            ms: milliseconds(answer.taken),
        }
    }
}

impl Comparison {
    /// Compares two runs over the same questions.
    pub(super) fn new(one: &RunReport, other: &RunReport) -> Self {
        let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (one, other) in one.questions.iter().zip(&other.questions) {
            if let (Some(measures), Some(others)) = (one.measures, other.measures) {
                kinds.entry(&one.kind).or_default().push(measures.ndcg_10 - others.ndcg_10);
            }
        }
        let groups: Vec<Vec<f64>> = kinds.values().cloned().collect();
        let rows =
            kinds.iter().filter_map(|(kind, values)| Difference::new(kind, std::slice::from_ref(values)));
        Self { kinds: rows.collect(), all: Difference::new(ALL, &groups) }
    }
}

impl Difference {
    fn new(kind: &str, groups: &[Vec<f64>]) -> Option<Self> {
        let n = groups.iter().map(Vec::len).sum();
        Some(Self { kind: kind.to_owned(), n, ndcg_10: Estimate::new(groups)? })
    }
}

/// Prints the tables of the runs and their difference.
pub(super) fn print(printer: Printer, runs: &[RunReport], difference: Option<&Comparison>) {
    if printer.json {
        printer.value(&EvalReport { runs, difference });
        return;
    }
    for run in runs {
        let headings =
            ["kind", "n", "hit@1", "hit@10", "MRR@10", "nDCG@10", "95 %", "recall@50", "p50 ms", "p99 ms"];
        let mut rows = vec![headings.map(str::to_owned).to_vec()];
        rows.extend(run.kinds.iter().chain(&run.all).map(KindReport::cells));
        printer.line(format_args!("mode {}", run.mode));
        printer.table(&rows);
        if let Some(Unanswerable { n, without_hits }) = &run.unanswerable {
            printer.line(format_args!("{n} questions without an answer: nothing found for {without_hits}"));
        }
        printer.line("");
    }
    if let Some(Comparison { kinds, all }) = difference {
        let mut rows = vec![["kind", "n", "difference", "95 %"].map(str::to_owned).to_vec()];
        rows.extend(kinds.iter().chain(all).map(Difference::cells));
        printer.line("nDCG@10 of the first run minus the second");
        printer.table(&rows);
    }
}

impl KindReport {
    fn cells(&self) -> Vec<String> {
        let MeasureEstimates { hit_1, hit_10, mrr_10, ndcg_10, recall_50 } = &self.measures;
        let mut cells = vec![self.kind.clone(), self.n.to_string()];
        cells.extend([hit_1, hit_10, mrr_10, ndcg_10].map(|estimate| format!("{:.3}", estimate.mean)));
        cells.push(format!("{:.3} to {:.3}", ndcg_10.low, ndcg_10.high));
        cells.push(format!("{:.3}", recall_50.mean));
        cells.extend([self.p50_ms, self.p99_ms].map(|time| format!("{time:.1}")));
        cells
    }
}

impl Difference {
    fn cells(&self) -> Vec<String> {
        let Estimate { mean, low, high } = self.ndcg_10;
        let interval = format!("{low:+.3} to {high:+.3}");
        vec![self.kind.clone(), self.n.to_string(), format!("{mean:+.3}"), interval]
    }
}

/// Converts a time to milliseconds with three decimals.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

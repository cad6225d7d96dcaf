//! Explanations of search results: the reasons for their places and the times of the stages, as values and as lines of text.
//!
//! Commands and pages show them. No tool does: they would take the room of results.

use fetchwell_core::record::{
    ExplainedFeature, ExplainedMeaning, ExplainedRaise, ExplainedWord, HitExplanation, ListedPlace, Measure,
};
use fetchwell_source::TimedStage;
use serde::Serialize;

use crate::answer::Payload;

/// Maximum number of words of a query of which each has a line.
const MAX_WORD_LINES: usize = 12;

/// Maximum number of features in the line of a score.
const MAX_SUMMANDS: usize = 5;

/// The answer of a search, with its explanation.
#[derive(Debug)]
pub struct ExplainedSearch {
    /// Answer of the tool `search` to the same arguments.
    pub payload: Payload,
    /// Reasons for the places of its results, and the times of the stages.
    pub explanation: SearchExplanation,
}

/// Explanation of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SearchExplanation {
    /// Explanation of each result, in the order of the results.
    pub results: Vec<HitExplanation>,
    /// Stages in the order in which they ended.
    pub stages: Vec<TimedStage>,
}

/// A line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationLine {
    /// Word, feature or stage that the line is about. It may be text of a query.
    pub label: String,
    /// Numbers and places. They may have names of fields.
    pub text: String,
}

impl ExplanationLine {
    fn new(label: &str, text: impl Into<String>) -> Self {
        Self { label: label.to_owned(), text: text.into() }
    }
}

/// Returns the explanation of a hit as short lines.
#[must_use]
pub fn explanation_lines(explanation: &HitExplanation) -> Vec<ExplanationLine> {
    let HitExplanation { score, words, features, date, kind, meaning, list, sources, reranked, .. } =
        explanation;
    let mut lines = Vec::new();
    if let Some(score) = score {
        lines.push(ExplanationLine::new(
            "score",
            format!("{} {}", decimal(*score), summands(features)).trim(),
        ));
    }
    lines.extend(words.iter().take(MAX_WORD_LINES).map(word_line));
    if let Some(more) = words.len().checked_sub(MAX_WORD_LINES).filter(|more| *more > 0) {
        lines.push(ExplanationLine::new("words", format!("and {more} more")));
    }
    lines.extend(date.as_ref().map(|raise| raise_line("date", raise)));
    lines.extend(kind.as_ref().map(|raise| raise_line("kind", raise)));
    lines.extend(copies_line(explanation));
    lines.extend(meaning.as_ref().map(meaning_line));
    lines.extend(list.as_ref().map(list_line));
    for source in sources {
        let text = format!("rank {} of its results, {:.4} points", source.rank, source.points.value());
        lines.push(ExplanationLine::new("source", format!("{}: {text}", source.source)));
    }
    if let Some(change) = reranked {
        lines.push(ExplanationLine::new("reranked", format!("from {} to {}", change.before, change.after)));
    }
    lines
}

/// Returns the stages of a search as lines with their times.
#[must_use]
pub fn stage_lines(stages: &[TimedStage]) -> Vec<ExplanationLine> {
    let line = stages.iter().map(|TimedStage { name, source, micros }| {
        let label = source.as_ref().map_or_else(|| (*name).to_owned(), |source| format!("{source}: {name}"));
        ExplanationLine { label, text: format!("{}.{:02} ms", micros / 1_000, micros % 1_000 / 10) }
    });
    line.collect()
}

/// Returns the summands of a score, the greatest first, and the sum of the smaller ones.
fn summands(features: &[ExplainedFeature]) -> String {
    let mut sorted: Vec<&ExplainedFeature> = features.iter().collect();
    sorted.sort_by_key(|feature| std::cmp::Reverse(feature.points));
    let (shown, others) = sorted.split_at(sorted.len().min(MAX_SUMMANDS));
    let mut summands: Vec<String> =
        shown.iter().map(|feature| format!("{} {}", feature.name, decimal(feature.points))).collect();
    if !others.is_empty() {
        let sum: f64 = others.iter().map(|feature| feature.points.value()).sum();
        summands.push(format!("other {sum:.2}"));
    }
    if summands.is_empty() { String::new() } else { format!("= {}", summands.join(" + ")) }
}

fn word_line(word: &ExplainedWord) -> ExplanationLine {
    let mut parts = Vec::new();
    let is_missing = word.matches.is_empty() && word.quality.is_none_or(|quality| quality.is_zero());
    if is_missing {
        parts.push("not found".to_owned());
    }
    parts.extend(word.matches.iter().map(|found| {
        let fields = found.fields.join(", ");
        if found.form == word.word {
            format!("in {fields}")
        } else {
            format!("as {} in {fields}", found.form)
        }
    }));
    if let Some(quality) = word.quality.filter(|quality| !quality.is_zero() && quality.value() < 1.0) {
        parts.push(format!("another form, counts {}", percent(quality)));
    }
    if word.title_quality.is_some() {
        parts.push("in the title".to_owned());
    }
    if let Some(weight) = word.weight {
        parts.push(format!("weight {}", decimal(weight)));
    }
    if word.importance_percent < 100 {
        parts.push(format!("importance {} %", word.importance_percent));
    }
    ExplanationLine::new(&word.word, parts.join("; "))
}

fn raise_line(label: &str, raise: &ExplainedRaise) -> ExplanationLine {
    let quality = percent(raise.quality);
    match raise.weight {
        Some(weight) => ExplanationLine::new(label, format!("matches {quality}; weight {}", decimal(weight))),
        None => ExplanationLine::new(label, format!("matches {quality}")),
    }
}

fn copies_line(explanation: &HitExplanation) -> Option<ExplanationLine> {
    let mut parts = Vec::new();
    if explanation.is_near_copy {
        parts.push("of a result above, so placed lower".to_owned());
    }
    match explanation.near_copies {
        0 => {}
        1 => parts.push("1 follows".to_owned()),
        copies => parts.push(format!("{copies} follow")),
    }
    (!parts.is_empty()).then(|| ExplanationLine::new("near-copy", parts.join("; ")))
}

fn meaning_line(meaning: &ExplainedMeaning) -> ExplanationLine {
    let mut parts = Vec::new();
    parts.extend(meaning.rank.map(|rank| format!("rank {rank}")));
    parts.extend(meaning.similarity.map(|similarity| format!("similarity {}", decimal(similarity))));
    parts.extend(meaning.deviations.map(|far| format!("{:.1} deviations above the mean", far.value())));
    parts.extend(meaning.points.map(|points| format!("adds {}", decimal(points))));
    parts.push(if meaning.is_placed { "decided the place" } else { "did not decide the place" }.to_owned());
    ExplanationLine::new("meaning", parts.join("; "))
}

fn list_line(list: &ListedPlace) -> ExplanationLine {
    let mut parts = vec![format!("rank {} in the answer of the server", list.rank)];
    if list.is_ordered_by_words {
        parts.push("ordered by words here".to_owned());
    }
    parts.extend(list.coverage_percent.map(|percent| format!("has {percent} % of the query")));
    ExplanationLine::new("list", parts.join("; "))
}

fn decimal(measure: Measure) -> String {
    format!("{:.2}", measure.value())
}

fn percent(share: Measure) -> String {
    format!("{:.0} %", share.value() * 100.0)
}

#[cfg(test)]
mod tests {
    use fetchwell_core::record::{MatchedForm, RankChange, SourceRank};

    use super::*;

    fn lines(explanation: &HitExplanation) -> Vec<String> {
        let line = |line: ExplanationLine| format!("{}: {}", line.label, line.text);
        explanation_lines(explanation).into_iter().map(line).collect()
    }

    #[test]
    fn an_explanation_has_a_line_for_each_reason() {
        let measure = Measure::from;
        let feature = |name: &str, value: f32| ExplainedFeature {
            name: name.to_owned(),
            value: measure(value),
            weight: measure(2.0),
            points: measure(value * 2.0),
        };
        let matched = |form: &str| MatchedForm {
            form: form.to_owned(),
            fields: vec!["subject".to_owned(), "body".to_owned()],
        };
        let explanation = HitExplanation {
            score: Some(measure(2.2)),
            words: vec![
                ExplainedWord {
                    word: "lease".to_owned(),
                    importance_percent: 100,
                    weight: Some(measure(3.5)),
                    quality: Some(measure(0.6)),
                    title_quality: Some(measure(0.6)),
                    matches: vec![matched("leases")],
                    ..ExplainedWord::default()
                },
                ExplainedWord {
                    word: "show".to_owned(),
                    importance_percent: 8,
                    quality: Some(Measure::default()),
                    ..ExplainedWord::default()
                },
            ],
            features: vec![feature("title", 0.1), feature("coverage", 1.0)],
            date: Some(ExplainedRaise { weight: Some(measure(4.0)), quality: measure(0.5) }),
            near_copies: 2,
            is_near_copy: true,
            meaning: Some(ExplainedMeaning {
                rank: Some(3),
                points: Some(measure(1.0)),
                ..ExplainedMeaning::default()
            }),
            list: Some(ListedPlace { rank: 7, is_ordered_by_words: true, coverage_percent: Some(50) }),
            sources: vec![SourceRank { source: "mail".to_owned(), rank: 1, points: measure(1.0 / 61.0) }],
            reranked: Some(RankChange { before: 7, after: 1 }),
            ..HitExplanation::default()
        };
        let expect = [
            "score: 2.20 = coverage 2.00 + title 0.20",
            "lease: as leases in subject, body; another form, counts 60 %; in the title; weight 3.50",
            "show: not found; importance 8 %",
            "date: matches 50 %; weight 4.00",
            "near-copy: of a result above, so placed lower; 2 follow",
            "meaning: rank 3; adds 1.00; did not decide the place",
            "list: rank 7 in the answer of the server; ordered by words here; has 50 % of the query",
            "source: mail: rank 1 of its results, 0.0164 points",
            "reranked: from 7 to 1",
        ];
        assert_eq!(lines(&explanation), expect);
        assert_eq!(lines(&HitExplanation::default()), [""; 0]);
        let word = |at: usize| ExplainedWord {
            word: format!("w{at}"),
            importance_percent: 100,
            ..ExplainedWord::default()
        };
        let many = HitExplanation { words: (0..30).map(word).collect(), ..HitExplanation::default() };
        let many = lines(&many);
        assert_eq!((many.len(), many[12].as_str()), (13, "words: and 18 more"));
    }
}

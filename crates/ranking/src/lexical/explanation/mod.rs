//! The reasons for the places of hits, with the numbers that the ranking used.
//!
//! A store that is asked for an explanation gives a [`RankingBreakdown`] to the functions that score candidates and place records
//! by meaning. They note what they compute anyway. Only the records that are shown become explanations.
//!
//! * `forms`: the words of a record that stand for those of a query, with their fields

mod forms;

use std::collections::HashMap;

use fetchwell_core::record::{
    ExplainedFeature, ExplainedMeaning, ExplainedRaise, ExplainedWord, HitExplanation, MatchedForm, Measure,
    RecordData,
};
use fetchwell_source::{SearchQuery, StageClock};

pub(super) use self::forms::forms_in;
use super::expansion::Lookups;
use super::matching::ExcerptTerms;
use super::ranking::{Features, WEIGHTS, WordMatches};
use super::selection::Match;
use super::terms::QueryTerms;

/// Maximum number of words of a query of which those are named, too, that were not looked up or that no record has.
pub(super) const MAX_ALL_WORDS: usize = 40;

/// Notes of a store about one search: the numbers of its ranking and the times of its stages. Both are empty unless the query
/// asks for an explanation.
#[derive(Debug, Default)]
pub struct SearchTrace {
    /// Numbers of the ranking; `None` without an explanation.
    pub breakdown: Option<RankingBreakdown>,
    /// Times of the stages.
    pub clock: StageClock,
}

impl SearchTrace {
    /// Starts the notes of a search.
    #[must_use]
    pub fn start(query: &SearchQuery) -> Self {
        let breakdown = query.explains.then(RankingBreakdown::default);
        Self { breakdown, clock: StageClock::start(query.explains) }
    }
}

/// Numbers of one search, as the ranking noted them.
#[derive(Debug, Default)]
pub struct RankingBreakdown {
    words: Vec<NotedWord>,
    /// Times and kinds of records that the query asks for, in the order in which the scorer has them.
    raises: Vec<NotedRaise>,
    /// Scored records by their rows.
    records: HashMap<i64, NotedRecord>,
    /// Near records by their rows.
    near: HashMap<i64, ExplainedMeaning>,
}

/// A word of the query, or another spelling of some.
#[derive(Debug)]
struct NotedWord {
    text: String,
    percent: u8,
    weight: f32,
    is_own: bool,
}

/// A time or kind of records that raises a score.
#[derive(Debug, Clone, Copy)]
struct NotedRaise {
    is_time: bool,
    weight: f32,
}

/// A scored record.
#[derive(Debug)]
struct NotedRecord {
    features: Features,
    /// Matches of each word of the query, and then of each raise.
    matches: Vec<WordMatches>,
}

impl RankingBreakdown {
    /// Notes the words of a query with the weights that they have in an index.
    pub fn note_words(&mut self, terms: &QueryTerms, lookups: &Lookups) {
        let words = terms.slots.iter().zip(&lookups.words);
        let word = words.map(|(slot, lookup)| NotedWord {
            text: slot.text.clone(),
            percent: slot.percent(),
            weight: lookup.weight,
            is_own: lookup.is_word(),
        });
        self.words = word.collect();
    }

    /// Notes what a query asks for beside its words.
    pub(super) fn note_raises(&mut self, times: f32, kinds: f32) {
        let raises = [(true, times), (false, kinds)].map(|(is_time, weight)| NotedRaise { is_time, weight });
        self.raises = raises.into_iter().filter(|raise| raise.weight > 0.0).collect();
    }

    /// Notes the features of a record, and the matches that they were computed from.
    pub(super) fn note_record(&mut self, row: i64, features: Features, matches: Vec<WordMatches>) {
        self.records.insert(row, NotedRecord { features, matches });
    }

    /// Notes the nearness of a record. Of several passages of a record, the nearest one comes first.
    pub(crate) fn note_nearness(&mut self, row: i64, meaning: ExplainedMeaning) {
        self.near.entry(row).or_insert(meaning);
    }

    /// Explains the place of a record. `is_placed` is true if its meaning decided the place.
    #[must_use]
    pub fn explain(
        &self,
        found: &Match,
        data: &RecordData,
        terms: &ExcerptTerms,
        is_placed: bool,
    ) -> HitExplanation {
        let noted = self.records.get(&found.row);
        let forms = forms_in(data, terms);
        let has_all = self.words.len() <= MAX_ALL_WORDS;
        // Another spelling of words of the query is named where the record has it.
        let named = self.words.iter().enumerate().filter(|(slot, word)| {
            if word.is_own { has_all || word.weight > 0.0 } else { forms.contains_key(slot) }
        });
        let words = named.map(|(slot, word)| {
            let found = noted.and_then(|noted| noted.matches.get(slot));
            word.explained(found, forms.get(&slot).cloned().unwrap_or_default())
        });
        let near = self.near.get(&found.row).cloned();
        let meaning = if is_placed { Some(near.unwrap_or_default()) } else { near };
        HitExplanation {
            score: Some(found.score).filter(|score| score.is_finite()).map(Measure::from),
            words: words.collect(),
            features: noted.map(|noted| explained_features(&noted.features)).unwrap_or_default(),
            date: self.raise(noted, true),
            kind: self.raise(noted, false),
            near_copies: found.copies,
            is_near_copy: found.original.is_some(),
            meaning: meaning.map(|meaning| ExplainedMeaning { is_placed, ..meaning }),
            ..HitExplanation::default()
        }
    }

    /// Returns the share that a record gets of the weight of a time or kind, if the query asks for one.
    fn raise(&self, noted: Option<&NotedRecord>, is_time: bool) -> Option<ExplainedRaise> {
        let at = self.raises.iter().position(|raise| raise.is_time == is_time)?;
        let quality = noted?.matches.get(self.words.len() + at)?.quality;
        let weight = self.raises.get(at).map(|raise| raise.weight.into());
        Some(ExplainedRaise { weight, quality: quality.into() })
    }
}

impl NotedWord {
    /// Explains the word by its matches in a scored record, and by the words of the record that stand for it.
    fn explained(&self, found: Option<&WordMatches>, matches: Vec<MatchedForm>) -> ExplainedWord {
        ExplainedWord {
            word: self.text.clone(),
            importance_percent: self.percent,
            weight: Some(self.weight.into()),
            quality: found.map(|found| found.quality.into()),
            occurrences: found.filter(|found| found.frequency > 0.0).map(|found| found.frequency.into()),
            title_quality: found
                .filter(|found| found.title_quality > 0.0)
                .map(|found| found.title_quality.into()),
            matches,
        }
    }
}

/// Returns the features of a score that are not 0.
fn explained_features(features: &Features) -> Vec<ExplainedFeature> {
    let features = features.named(&WEIGHTS).into_iter().filter(|feature| feature.value != 0.0);
    let explained = features.map(|feature| ExplainedFeature {
        name: feature.name.to_owned(),
        value: feature.value.into(),
        weight: feature.weight.into(),
        points: (feature.value * feature.weight).into(),
    });
    explained.collect()
}

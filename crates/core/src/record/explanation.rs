//! The reasons for the place of a search result, with the numbers that its ranking used.
//!
//! A source explains the hits that it returns if the query asks for it. A federation and a reranker, which order them again,
//! add what they did.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units of a measure in one.
const UNITS: f32 = 1_000_000.0;

/// A number of an explanation in millionths, so that explanations can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Measure(i64);

impl Measure {
    /// Returns the number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "measures are printed with few digits")]
    pub fn value(self) -> f64 {
        self.0 as f64 / f64::from(UNITS)
    }

    /// Returns true for 0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<f32> for Measure {
    /// Rounds to millionths. What is not a number becomes 0.
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates, and NaN becomes 0")]
    fn from(value: f32) -> Self {
        Self((value * UNITS).round() as i64)
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f32::deserialize(deserializer).map(Self::from)
    }
}

/// Reasons for the place of a hit. What does not apply, or a source does not tell, is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HitExplanation {
    /// Score by the words of the query, of which `features` are the summands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Measure>,
    /// Words of the query, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ExplainedWord>,
    /// Features of the score that are not 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<ExplainedFeature>,
    /// Nearness to a time that the query names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<ExplainedRaise>,
    /// Membership in a stream of the kind that the query asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExplainedRaise>,
    /// Number of near-copies that are folded into the hit and follow later.
    #[serde(skip_serializing_if = "is_zero_count")]
    pub near_copies: u32,
    /// True for a near-copy of a hit before it, which is placed lower.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_near_copy: bool,
    /// Nearness in meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<ExplainedMeaning>,
    /// Place in a list that another program ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<ListedPlace>,
    /// Rank in each source that has the hit, if several are searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceRank>,
    /// Change of rank by the reranker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reranked: Option<RankChange>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero_count(number: &u32) -> bool {
    *number == 0
}

impl HitExplanation {
    /// Removes numbers that depend on records of the whole store, for a caller who may not read all of them.
    pub fn hide_statistics(&mut self) {
        self.score = None;
        self.features.clear();
        self.words.iter_mut().for_each(|word| word.weight = None);
        for raise in [&mut self.date, &mut self.kind].into_iter().flatten() {
            raise.weight = None;
        }
        if let Some(meaning) = &mut self.meaning {
            (meaning.deviations, meaning.points) = (None, None);
        }
    }
}

/// A word of a query, and what a record has of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedWord {
    /// Word of the query, folded.
    pub word: String,
    /// Importance in percent: 100 for a word that the query is about, less for one of a request or date.
    pub importance_percent: u8,
    /// Weight in the score: its rarity times its importance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Measure>,
    /// Quality of the best match: 1 for the word itself, less for another form, 0 if the record lacks it. `None` if the source does
    /// not measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Measure>,
    /// Number of occurrences, those of other forms counted less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<Measure>,
    /// Quality of the best match in the title, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_quality: Option<Measure>,
    /// Words of the record that stand for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<MatchedForm>,
}

/// A word of a record that stands for one of the query.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MatchedForm {
    /// The folded word.
    pub form: String,
    /// Fields of the record that have it, in the order of the record.
    pub fields: Vec<String>,
}

/// A feature of a score.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedFeature {
    /// Name of the feature.
    pub name: String,
    /// Value, 0 to 1.
    pub value: Measure,
    /// Weight of the feature in the score.
    pub weight: Measure,
    /// Product of both.
    pub points: Measure,
}

/// A time or kind of records that a query asks for. It counts as a word that records have or lack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedRaise {
    /// Weight beside those of the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Measure>,
    /// Share of it that the record gets: 1 within the time or of the kind, 0 if it is neither.
    pub quality: Measure,
}

/// Nearness of a record to a query in meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedMeaning {
    /// Rank among the records by nearness, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Cosine of the query and the nearest passage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Measure>,
    /// Distance from the mean of all passages, in standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<Measure>,
    /// Points that nearness adds to the score. `None` if it adds none, or places the record in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<Measure>,
    /// True if nearness decided the place.
    pub is_placed: bool,
}

/// Place of a hit in the list of another program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedPlace {
    /// Rank that the program gave it on its page, from 1.
    pub rank: u32,
    /// True if the page had no order by words, and was ordered by them here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_ordered_by_words: bool,
    /// Share of the query's words in percent, by which it is placed among hits of other sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage_percent: Option<u8>,
}

/// Rank of a hit in one of several sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRank {
    /// Name of the source.
    pub source: String,
    /// Rank in its hits, from 1.
    pub rank: u64,
    /// Points for it. Those of all sources are added.
    pub points: Measure,
}

/// Change of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankChange {
    /// Rank before, from 1.
    pub before: usize,
    /// Rank after, from 1.
    pub after: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_rounded_and_finite() {
        for (value, expect) in
            [(0.0, "0.0"), (0.45, "0.45"), (-1.25, "-1.25"), (1.0 / 3.0, "0.333333"), (f32::NAN, "0.0")]
        {
            let measure = Measure::from(value);
            let json = serde_json::to_string(&measure).unwrap();
            assert_eq!(json, expect);
            assert_eq!(serde_json::from_str::<Measure>(&json).unwrap(), measure);
        }
        assert!(Measure::from(f32::INFINITY).value().is_finite());
    }

    #[test]
    fn statistics_of_hidden_records_are_removed() {
        let one = Measure::from(1.0);
        let raise = ExplainedRaise { weight: Some(one), quality: one };
        let mut explanation = HitExplanation {
            score: Some(one),
            words: vec![ExplainedWord { weight: Some(one), quality: Some(one), ..ExplainedWord::default() }],
            features: vec![ExplainedFeature::default()],
            date: Some(raise.clone()),
            kind: Some(raise),
            meaning: Some(ExplainedMeaning {
                similarity: Some(one),
                deviations: Some(one),
                points: Some(one),
                ..ExplainedMeaning::default()
            }),
            ..HitExplanation::default()
        };
        explanation.hide_statistics();
        let json = serde_json::to_string(&explanation).unwrap();
        for hidden in ["score", "weight", "features", "deviations", "points"] {
            assert!(!json.contains(hidden), "{json}");
        }
        assert!(json.contains("similarity") && json.contains("quality"), "{json}");
    }
}

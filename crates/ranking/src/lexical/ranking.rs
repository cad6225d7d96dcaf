//! Scores a record for a query from the places of its words.
//!
//! A score is a weighted sum of features, each between 0 and 1. It is a pure function of the words' rarity and of
//! where a record has them, so every store with positions can use it. [`WEIGHTS`] is the only place with numbers that
//! were tuned; `docs/search.md` explains the features.

use fetchwell_core::saturate::saturated;

/// Saturation of the number of occurrences, as in BM25.
const SATURATION: f32 = 1.2;

/// Share of the length of a record in BM25.
const LENGTH_SHARE: f32 = 0.6;

/// Maximum number of words between two neighbours of the query that still count as close.
const NEAR: u32 = 4;

/// Weights of the features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Frequency of the words, by rarity and length of the record (BM25).
    pub(crate) frequency: f32,
    /// Share of the query's rarity that the record has.
    pub(crate) coverage: f32,
    /// All words are present.
    pub(crate) all: f32,
    /// Share of the query's rarity that the title has.
    pub(crate) title: f32,
    /// Share of the title that the query has.
    pub(crate) title_share: f32,
    /// Neighbours in the query that are neighbours in the record.
    pub(crate) pairs: f32,
    /// Longest sequence of the query that the record has as it is.
    pub(crate) run: f32,
    /// Closeness of all matched words.
    pub(crate) window: f32,
    /// Identifiers, quoted phrases and unspaced texts that are there as a whole.
    pub(crate) units: f32,
    /// Match near the beginning.
    pub(crate) start: f32,
    /// Shortness of the record.
    pub(crate) brevity: f32,
}

/// Weights in use, tuned on sets of questions that no result is reported on.
pub const WEIGHTS: Weights = Weights {
    frequency: 0.8,
    coverage: 1.8,
    all: 0.05,
    title: 0.3,
    title_share: 0.1,
    pairs: 0.05,
    run: 0.45,
    window: 0.3,
    units: 0.45,
    start: 0.1,
    brevity: 0.2,
};

/// Word of a query as the scorer sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankedWord {
    /// Rarity of the word (inverse document frequency), times the importance of its kind.
    pub(crate) weight: f32,
    /// Importance beside a word that the query is about, 0 to 1, whatever the rarity of the word.
    pub(crate) share: f32,
    /// False for a word that a record may lack without missing anything, such as a part of an identifier.
    pub(crate) counts: bool,
}

/// Two words that follow each other in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// Distance of the words in the query.
    pub(crate) gap: u32,
    /// True if the words belong to one unit.
    pub(crate) in_unit: bool,
}

/// Query as the scorer sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RankedQuery {
    pub(crate) words: Vec<RankedWord>,
    /// Neighbours in the order of the query.
    pub(crate) neighbours: Vec<Neighbours>,
}

/// Matches of one word in a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordMatches {
    /// Number of occurrences, those of other forms counted less.
    pub frequency: f32,
    /// Quality of the best form: 1 for the word itself, 0 for no match.
    pub quality: f32,
    /// Quality of the best form in the title.
    pub title_quality: f32,
    /// Positions in the record, ascending.
    pub positions: Vec<u32>,
}

impl WordMatches {
    /// Adds the places where a sequence of words begins that stands for the word. `places` has the distance of each word from
    /// the first one, and its places.
    pub fn add_sequence(&mut self, places: &[(u32, &[u32])], quality: f32, title_words: u32) {
        let Some(((_, first), others)) = places.split_first() else { return };
        let follows = |at: &&u32| {
            others.iter().all(|(offset, other)| other.binary_search(&at.saturating_add(*offset)).is_ok())
        };
        let begins: Vec<u32> = first.iter().filter(follows).copied().collect();
        let Some(at) = begins.first() else { return };
        self.frequency += quality * ratio(begins.len(), 1);
        self.quality = self.quality.max(quality);
        if *at < title_words {
            self.title_quality = self.title_quality.max(quality);
        }
        self.positions.extend(begins);
        self.positions.sort_unstable();
        self.positions.dedup();
    }
}

/// Record as the scorer sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankedRecord {
    /// Matches of each word of the query.
    pub matches: Vec<WordMatches>,
    /// Number of words of the record, divided by the average of all records.
    pub relative_length: f32,
    /// Number of words of the title; its words come first in the record.
    pub title_words: u32,
}

/// Features of a record, each between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Features {
    pub(crate) frequency: f32,
    pub(crate) coverage: f32,
    pub(crate) all: f32,
    pub(crate) title: f32,
    pub(crate) title_share: f32,
    pub(crate) pairs: f32,
    pub(crate) run: f32,
    pub(crate) window: f32,
    pub(crate) units: f32,
    pub(crate) start: f32,
    pub(crate) brevity: f32,
}

impl Weights {
    /// Returns the score of a record with all features.
    pub fn max_score(&self) -> f32 {
        let all = Features {
            frequency: 1.0,
            coverage: 1.0,
            all: 1.0,
            title: 1.0,
            title_share: 1.0,
            pairs: 1.0,
            run: 1.0,
            window: 1.0,
            units: 1.0,
            start: 1.0,
            brevity: 1.0,
        };
        all.score(self)
    }
}

/// A feature with its name and weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NamedFeature {
    pub(crate) name: &'static str,
    pub(crate) value: f32,
    pub(crate) weight: f32,
}

impl Features {
    /// Returns the score: the weighted sum of the features.
    pub(crate) fn score(&self, weights: &Weights) -> f32 {
        self.named(weights).iter().map(|feature| feature.value * feature.weight).sum()
    }

    /// Returns the summands of the score.
    pub(crate) fn named(&self, weights: &Weights) -> [NamedFeature; 11] {
        let feature = |name, value, weight| NamedFeature { name, value, weight };
        [
            feature("frequency", self.frequency, weights.frequency),
            feature("coverage", self.coverage, weights.coverage),
            feature("all words", self.all, weights.all),
            feature("title", self.title, weights.title),
            feature("title share", self.title_share, weights.title_share),
            feature("pairs", self.pairs, weights.pairs),
            feature("sequence", self.run, weights.run),
            feature("closeness", self.window, weights.window),
            feature("whole units", self.units, weights.units),
            feature("early match", self.start, weights.start),
            feature("brevity", self.brevity, weights.brevity),
        ]
    }
}

impl RankedQuery {
    /// Measures a record.
    pub(crate) fn features(&self, record: &RankedRecord) -> Features {
        let total: f32 = self.words.iter().map(|word| word.weight).sum();
        if total <= 0.0 {
            return Features::default();
        }
        let words = || self.words.iter().zip(&record.matches);
        let weighted = |value: &dyn Fn(&WordMatches) -> f32| -> f32 {
            words().map(|(word, matches)| word.weight * value(matches)).sum::<f32>() / total
        };
        let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * record.relative_length;
        // Many occurrences of another form are not as good as one of the word itself.
        let frequency = weighted(&|matches| {
            matches.quality * matches.frequency / (matches.frequency + SATURATION * length)
        });
        let coverage = weighted(&|matches| matches.quality);
        let title = weighted(&|matches| matches.title_quality);
        let has_all = words().all(|(word, matches)| !word.counts || matches.quality > 0.0);
        let (pairs, units) = self.neighbour_shares(record);
        Features {
            frequency,
            coverage,
            all: if has_all { 1.0 } else { 0.0 },
            title,
            title_share: title_share(record),
            pairs,
            run: self.run_share(record),
            window: self.window_share(record, total),
            units,
            start: self.start_share(record),
            brevity: 1.0 / (1.0 + record.relative_length),
        }
    }

    /// Returns the shares of neighbours that are close in the record: of all, and of those within a unit.
    fn neighbour_shares(&self, record: &RankedRecord) -> (f32, f32) {
        let (mut close, mut possible) = (0.0, 0.0);
        let (mut close_in_units, mut possible_in_units) = (0.0, 0.0);
        for pair in &self.neighbours {
            let (Some(first), Some(second)) = (self.words.get(pair.first), self.words.get(pair.second))
            else {
                continue;
            };
            let weight = first.weight.min(second.weight) + 0.2 * first.weight.max(second.weight);
            let nearness = match (record.matches.get(pair.first), record.matches.get(pair.second)) {
                (Some(one), Some(other)) => {
                    nearness(&one.positions, &other.positions, pair.gap) * one.quality.min(other.quality)
                }
                _ => 0.0,
            };
            possible += weight;
            close += weight * nearness;
            if pair.in_unit {
                possible_in_units += weight;
                close_in_units += if nearness >= 1.0 { weight } else { 0.0 };
            }
        }
        let share = |part: f32, whole: f32| if whole > 0.0 { part / whole } else { 0.0 };
        (share(close, possible), share(close_in_units, possible_in_units))
    }

    /// Returns the share of the query in its longest sequence that the record has as it is. Words of a request count as others
    /// do: a sentence that was pasted has them, too.
    fn run_share(&self, record: &RankedRecord) -> f32 {
        let steps = self.neighbours.len();
        if steps == 0 {
            return 0.0;
        }
        // Ends of sequences at the current word: position and number of steps.
        let mut ends: Vec<(u32, usize)> = Vec::new();
        let mut longest = 0;
        let mut previous = None;
        for pair in &self.neighbours {
            let positions = |word: usize| record.matches.get(word).map_or(&[][..], |found| &found.positions);
            if previous != Some(pair.first) {
                ends = positions(pair.first).iter().map(|position| (*position, 0)).collect();
            }
            let extend = |position: &u32| {
                let before = position.checked_sub(pair.gap)?;
                let at = ends.binary_search_by_key(&before, |(position, _)| *position).ok()?;
                ends.get(at).map(|(_, steps)| (*position, steps + 1))
            };
            let next: Vec<(u32, usize)> = positions(pair.second)
                .iter()
                .map(|position| extend(position).unwrap_or((*position, 0)))
                .collect();
            longest = next.iter().map(|(_, steps)| *steps).max().unwrap_or(0).max(longest);
            ends = next;
            previous = Some(pair.second);
        }
        ratio(longest, steps)
    }

    /// Returns a share that falls with the position of the first match, other forms of a word counted by their quality.
    fn start_share(&self, record: &RankedRecord) -> f32 {
        let share = |(word, matches): (&RankedWord, &WordMatches)| {
            let first = matches.positions.first()?;
            Some(word.share * matches.quality * 8.0 / (8.0 + ratio(*first as usize, 1)))
        };
        self.words.iter().zip(&record.matches).filter_map(share).fold(0.0, f32::max)
    }

    /// Returns how close together the matched words are, times their share of the query.
    fn window_share(&self, record: &RankedRecord, total: f32) -> f32 {
        let mut events: Vec<(u32, usize)> = Vec::new();
        let mut weight = 0.0;
        let mut matched = 0;
        for (number, (word, matches)) in self.words.iter().zip(&record.matches).enumerate() {
            if word.counts && !matches.positions.is_empty() {
                events.extend(matches.positions.iter().map(|position| (*position, number)));
                weight += word.weight;
                matched += 1;
            }
        }
        if matched < 2 {
            return 0.0;
        }
        events.sort_unstable();
        let mut inside = vec![0_usize; self.words.len()];
        let (mut kinds, mut left, mut narrowest) = (0, 0, u32::MAX);
        for (end, number) in &events {
            if let Some(count) = inside.get_mut(*number) {
                kinds += usize::from(*count == 0);
                *count += 1;
            }
            while kinds == matched
                && let Some((start, leaving)) = events.get(left)
            {
                narrowest = narrowest.min(end - start + 1);
                if let Some(count) = inside.get_mut(*leaving) {
                    *count -= 1;
                    kinds -= usize::from(*count == 0);
                }
                left += 1;
            }
        }
        let width = saturated::<usize>(narrowest).max(matched);
        ratio(matched, width) * weight / total
    }
}

/// Returns 1 for neighbours in order at the distance of the query, less for close ones, 0 for others.
fn nearness(first: &[u32], second: &[u32], gap: u32) -> f32 {
    let mut best = 0.0_f32;
    let mut at = 0;
    for position in first {
        let expected = position.saturating_add(gap);
        let from = position.saturating_sub(NEAR);
        while second.get(at).is_some_and(|other| *other < from) {
            at += 1;
        }
        for other in second.iter().skip(at).take_while(|other| **other <= expected.saturating_add(NEAR)) {
            if *other == expected {
                return 1.0;
            }
            let near = if other > position {
                0.6 / (1.0 + ratio(other.abs_diff(expected) as usize, 2))
            } else {
                0.4 / (1.0 + ratio(position.abs_diff(*other) as usize, 2))
            };
            best = best.max(if other == position { 0.0 } else { near });
        }
    }
    best
}

/// Returns the share of the title that words of the query cover, other forms of them by their quality.
fn title_share(record: &RankedRecord) -> f32 {
    if record.title_words == 0 {
        return 0.0;
    }
    let in_title = |matches: &WordMatches| {
        let positions = matches.positions.iter().take_while(|position| **position < record.title_words);
        positions.map(|position| (*position, matches.title_quality)).collect::<Vec<(u32, f32)>>()
    };
    let mut covered: Vec<(u32, f32)> = record.matches.iter().flat_map(in_title).collect();
    covered.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| other.1.total_cmp(&one.1)));
    covered.dedup_by_key(|(position, _)| *position);
    let qualities: f32 = covered.iter().map(|(_, quality)| quality).sum();
    (qualities / ratio(record.title_words as usize, 1)).min(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^24")]
fn ratio(part: usize, whole: usize) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(words: usize) -> RankedQuery {
        let neighbours =
            (1..words).map(|second| Neighbours { first: second - 1, second, gap: 1, in_unit: false });
        RankedQuery {
            words: vec![RankedWord { weight: 2.0, share: 1.0, counts: true }; words],
            neighbours: neighbours.collect(),
        }
    }

    fn record(title_words: u32, positions: &[&[u32]]) -> RankedRecord {
        let matches = |positions: &&[u32]| WordMatches {
            frequency: ratio(positions.len(), 1),
            quality: if positions.is_empty() { 0.0 } else { 1.0 },
            title_quality: if positions.iter().any(|position| *position < title_words) { 1.0 } else { 0.0 },
            positions: positions.to_vec(),
        };
        RankedRecord { matches: positions.iter().map(matches).collect(), relative_length: 1.0, title_words }
    }

    /// Checks that the first record scores higher for a query of as many words as it has lists of positions.
    #[track_caller]
    fn check(better: &RankedRecord, worse: &RankedRecord) {
        let query = query(better.matches.len());
        let (better, worse) = (query.features(better), query.features(worse));
        assert!(better.score(&WEIGHTS) > worse.score(&WEIGHTS), "{better:?} {worse:?}");
    }

    #[test]
    fn a_better_record_has_a_higher_score() {
        check(&record(0, &[&[10], &[50]]), &record(0, &[&[10, 12, 14], &[]]));
        check(&record(0, &[&[10], &[11]]), &record(0, &[&[10], &[90]]));
        check(&record(0, &[&[10], &[11]]), &record(0, &[&[11], &[10]]));
        check(&record(0, &[&[10], &[12]]), &record(0, &[&[10], &[90]]));
        check(&record(5, &[&[1], &[2]]), &record(0, &[&[1], &[2]]));
        check(&record(2, &[&[0], &[1]]), &record(8, &[&[0], &[1]]));
        check(&record(0, &[&[10], &[11], &[12]]), &record(0, &[&[10], &[11], &[40]]));
        let mut other_form = record(0, &[&[10]]);
        other_form.matches[0].quality = 0.6;
        check(&record(0, &[&[10]]), &other_form);
        // Another form in a short title and often in the text, against one occurrence at the end of a longer text.
        let mut other_form = record(2, &[&[0, 5, 9, 14, 20, 33, 41, 56]]);
        let matches = &mut other_form.matches[0];
        (matches.frequency, matches.quality, matches.title_quality) = (8.0 * 0.6, 0.6, 0.6);
        check(&RankedRecord { relative_length: 3.0, ..record(0, &[&[300]]) }, &other_form);
    }

    #[test]
    fn a_long_record_needs_more_occurrences() {
        let long = RankedRecord { relative_length: 10.0, ..record(0, &[&[10, 30]]) };
        check(&record(0, &[&[10, 30]]), &long);
    }

    proptest! {
        #[test]
        fn every_feature_is_a_share(
            words in 1_usize..6,
            seeds in prop::collection::vec(prop::collection::btree_set(0_u32..60, 0..8), 6),
            title_words in 0_u32..10,
            relative_length in 0.0_f32..50.0,
        ) {
            let positions: Vec<Vec<u32>> = seeds.into_iter().take(words).map(|set| set.into_iter().collect()).collect();
            let slices: Vec<&[u32]> = positions.iter().map(Vec::as_slice).collect();
            let record = RankedRecord { relative_length, ..record(title_words, &slices) };
            let Features { frequency, coverage, all, title, title_share, pairs, run, window, units, start, brevity } =
                query(words).features(&record);
            for share in [frequency, coverage, all, title, title_share, pairs, run, window, units, start, brevity] {
                prop_assert!((0.0..=1.0001).contains(&share), "{share}");
            }
        }
    }
}

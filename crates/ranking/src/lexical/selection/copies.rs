//! Near-copies among the candidates of a search: which one is a copy of which.
//!
//! Candidates with similarity hashes that differ in few bits are suspects, and their texts decide. What was decided goes into
//! the position of the search, so later pages do not read texts again and have the same order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::super::text_cache::CachedText;
use super::near_text::{AskedWords, NearText};
use super::{Likeness, ScoredCandidate};

/// Maximum number of different bits in the similarity hashes of near-copies of which the texts are not compared.
const MAX_DISTANCE: u32 = 3;

/// Maximum number of different bits in the hashes of texts that are compared. A text and a reply that quotes it have about 15,
/// two texts of different words 32, and one pair of these in four thousand has at most 18.
const MAX_COMPARED_DISTANCE: u32 = 18;

/// Share of a record's score that a near-copy must have if their texts are not compared. One that a query ranks lower differs
/// in what the query is about.
const COPY_SHARE: f32 = 0.995;

/// Share of a record's score that a near-copy must have if their texts are compared.
const COMPARED_COPY_SHARE: f32 = 0.75;

/// Maximum number of texts that are compared for a search.
const MAX_TEXTS: usize = 48;

/// Maximum number of copies that a position can name.
const MAX_COPIES: usize = 1_000;

/// Reads the texts of records by their rows. Those that are long, or are gone, are left out.
pub type ReadTexts<'a> = dyn Fn(&[i64]) -> HashMap<i64, Arc<CachedText<NearText>>> + 'a;

/// Words of a query, and the texts of records that have them.
pub struct Texts<'a> {
    /// Words that stand for those of the query, folded.
    pub asked: HashSet<String>,
    /// Reads the texts of candidates.
    pub read: &'a ReadTexts<'a>,
}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

/// A hit as far as it is compared by its likeness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LikeHit {
    pub(crate) score: f32,
    pub(crate) likeness: Option<Likeness>,
}

impl From<&ScoredCandidate> for LikeHit {
    fn from(scored: &ScoredCandidate) -> Self {
        Self { score: scored.score, likeness: scored.likeness }
    }
}

impl LikeHit {
    /// Returns true if a later hit is a near-copy of this one, as far as their hashes tell.
    fn is_original_of(self, copy: Self) -> bool {
        let distance = self.likeness.zip(copy.likeness).and_then(|(one, other)| one.distance(other));
        distance.is_some_and(|distance| distance <= MAX_DISTANCE)
            && has_share(self.score, copy.score, COPY_SHARE)
    }
}

/// For each near-copy in a list the index of its original, which comes before it and is no copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copies(BTreeMap<usize, usize>);

impl Copies {
    /// Compares candidates that are ordered by falling scores.
    pub fn find(candidates: &[ScoredCandidate], texts: &Texts<'_>) -> Self {
        let suspects = suspects(candidates);
        let mut seen = HashSet::new();
        let row = |at: &usize| candidates.get(*at).map(|candidate| candidate.row);
        let rows =
            suspects.iter().flat_map(|(copy, originals)| originals.iter().chain([copy])).filter_map(row);
        let rows: Vec<i64> = rows.filter(|row| seen.insert(*row)).take(MAX_TEXTS).collect();
        if rows.is_empty() {
            return Self::default();
        }
        let asked: AskedWords = texts.asked.iter().collect();
        let with_words =
            |(row, text): (i64, Arc<CachedText<NearText>>)| (row, (text.form.asked(&asked), text));
        let read: HashMap<i64, _> = (texts.read)(&rows).into_iter().map(with_words).collect();
        let mut copies = Self::default();
        for (copy, originals) in &suspects {
            let Some(candidate) = candidates.get(*copy) else { continue };
            let is_original = |at: &&usize| {
                let original = candidates.get(**at);
                original.is_some_and(|original| match (read.get(&original.row), read.get(&candidate.row)) {
                    (Some((words, one)), Some((others, other))) => {
                        words == others && one.form.is_near(&other.form)
                    }
                    _ => LikeHit::from(original).is_original_of(LikeHit::from(candidate)),
                })
            };
            let mut possible = originals.iter().filter(|at| !copies.0.contains_key(at));
            if let Some(original) = possible.find(is_original) {
                copies.0.insert(*copy, *original);
            }
        }
        copies
    }

    /// Compares hits that are ordered by falling scores by their likeness alone.
    pub fn by_likeness(hits: &[LikeHit]) -> Self {
        let mut copies = Self::default();
        for (at, hit) in hits.iter().enumerate() {
            let mut before = hits.iter().enumerate().take(at).filter(|(at, _)| !copies.0.contains_key(at));
            if let Some((original, _)) = before.find(|(_, original)| original.is_original_of(*hit)) {
                copies.0.insert(at, original);
            }
        }
        copies
    }

    /// Returns the index of a near-copy's original.
    pub(super) fn original(&self, copy: usize) -> Option<usize> {
        self.0.get(&copy).copied()
    }

    /// Writes the copies for a position.
    pub fn write(&self) -> String {
        let mut of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        self.0.iter().for_each(|(copy, original)| of.entry(*original).or_default().push(*copy));
        let one = |(original, copies): (&usize, &Vec<usize>)| {
            let copies: String = copies.iter().map(|copy| format!("-{copy:x}")).collect();
            format!("{original:x}{copies}")
        };
        of.iter().map(one).collect::<Vec<_>>().join("_")
    }

    /// Reads copies of a position.
    pub fn parse(text: &str) -> Option<Self> {
        let mut copies = Self::default();
        for group in text.split('_').filter(|group| !group.is_empty()) {
            let mut numbers = group.split('-').map(|number| usize::from_str_radix(number, 16));
            let original = numbers.next()?.ok()?;
            for copy in numbers {
                let copy = copy.ok()?;
                let is_new = copy > original && copies.0.insert(copy, original).is_none();
                if !is_new || copies.0.len() > MAX_COPIES {
                    return None;
                }
            }
        }
        let is_chained = copies.0.values().any(|original| copies.0.contains_key(original));
        (!is_chained).then_some(copies)
    }
}

/// Returns the candidates that may be near-copies, each with the earlier ones that may be its original.
fn suspects(candidates: &[ScoredCandidate]) -> Vec<(usize, Vec<usize>)> {
    let mut suspects = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let Some(likeness) = candidate.likeness else { continue };
        let is_suspect = |original: &ScoredCandidate| {
            let distance = original.likeness.and_then(|other| likeness.distance(other));
            distance.is_some_and(|distance| distance <= MAX_COMPARED_DISTANCE)
                && has_share(original.score, candidate.score, COMPARED_COPY_SHARE)
        };
        let before = candidates.iter().take(at).enumerate();
        let originals: Vec<usize> =
            before.filter(|(_, original)| is_suspect(original)).map(|(original, _)| original).collect();
        if !originals.is_empty() {
            suspects.push((at, originals));
        }
    }
    suspects
}

/// Returns true if a score is at least a share of the score before it, which may be negative.
fn has_share(original: f32, copy: f32, share: f32) -> bool {
    original - copy <= (1.0 - share) * original.abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::lexical::text_cache::TextCache;

    const TEXT: &str =
        "the office is closed while the heating is repaired and the porter keeps a key for urgent cases";

    fn candidate(row: i64, similarity: u64) -> ScoredCandidate {
        let likeness = Some(Likeness { connection: 1, similarity });
        ScoredCandidate { row, score: 1.0, coverage: 1.0, stream: 1, likeness }
    }

    /// Returns the rows of copies with those of their originals, for records with these bodies.
    fn found(bodies: &[(i64, &str)], candidates: &[ScoredCandidate]) -> Vec<(i64, i64)> {
        let cache = TextCache::new(1_000_000);
        let read = |rows: &[i64]| -> HashMap<i64, Arc<CachedText<NearText>>> {
            let text = |row: i64, body: &str| {
                cache.get_or_read((0, row), &json!({ "body": body }).to_string()).unwrap()
            };
            rows.iter()
                .filter_map(|row| bodies.iter().find(|(known, _)| known == row))
                .map(|(row, body)| (*row, text(*row, body)))
                .collect()
        };
        let copies = Copies::find(candidates, &Texts { asked: HashSet::new(), read: &read });
        assert_eq!(Copies::parse(&copies.write()).as_ref(), Some(&copies));
        let row = |at: &usize| candidates[*at].row;
        copies.0.iter().map(|(copy, original)| (row(copy), row(original))).collect()
    }

    #[test]
    fn texts_decide_about_suspects() {
        let longer = format!("{TEXT} as always");
        let other = format!("{TEXT} in room 7");
        let bodies = [(1, TEXT), (2, &*longer), (3, &*other), (4, TEXT)];
        let candidates = [candidate(1, 0), candidate(2, 0xFF), candidate(3, 0), candidate(4, u64::MAX)];
        assert_eq!(found(&bodies, &candidates), [(2, 1)]);
        // Without texts, equal hashes decide.
        assert_eq!(found(&[], &candidates), [(3, 1)]);
    }

    #[test]
    fn copies_of_other_connections_or_much_lower_scores_are_no_suspects() {
        let mut candidates = [candidate(1, 0), candidate(2, 0), candidate(3, 0)];
        candidates[1].likeness = Some(Likeness { connection: 2, similarity: 0 });
        candidates[2].score = 0.7;
        assert_eq!(found(&[(1, TEXT), (2, TEXT), (3, TEXT)], &candidates), []);
    }

    #[test]
    fn damaged_copies_are_refused() {
        for text in ["x", "1-", "2-1", "1-1", "1-2_2-3", "1-3_2-3", "-1"] {
            assert_eq!(Copies::parse(text), None, "{text}");
        }
        assert_eq!(Copies::parse(""), Some(Copies::default()));
    }

    proptest! {
        #[test]
        fn written_copies_are_read_again(pairs in prop::collection::btree_map(100_usize..300, 0_usize..100, 0..40)) {
            let copies = Copies(pairs);
            prop_assert_eq!(Copies::parse(&copies.write()), Some(copies));
        }
    }
}

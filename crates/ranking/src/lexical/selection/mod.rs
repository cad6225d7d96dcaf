//! Puts scored candidates into the order in which they are shown: best first, near-copies folded, streams mixed.
//!
//! The order is a pure function of the candidates and of which are near-copies. No candidate is lost: near-copies follow
//! later.
//!
//! * `copies`: which candidates are near-copies of which
//! * `near_text`: compares the texts of two records
//! * `dates`: leaves dates out of a text

mod copies;
mod dates;
mod near_text;

use fetchwell_core::record::Coverage;

pub use copies::{Copies, LikeHit, ReadTexts, Texts};
pub use near_text::NearText;

/// Share of its score by which a near-copy is placed: after hits that match as well, and before much weaker ones.
const COPY_RANK: f32 = 0.8;

/// Maximum number of near-copies of a hit that are placed by their score. Others follow after all hits.
const MAX_DEMOTED: u32 = 2;

/// Number of consecutive hits that the limit for one stream applies to.
const WINDOW: usize = 10;

/// Maximum number of hits of one stream in a window while another stream has good ones.
const MAX_OF_STREAM: usize = 6;

/// Share of the best score from which on a hit of another stream is good.
const GOOD_SHARE: f32 = 0.8;

/// Properties by which near-copies are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Likeness {
    /// Id of the connection.
    pub connection: u64,
    /// Hash of the text that is similar for similar texts.
    pub similarity: u64,
}

/// Candidate with its score and what it has in common with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredCandidate {
    /// Row id of the record.
    pub(crate) row: i64,
    pub(crate) score: f32,
    /// Share of the query's rarity that the record has, 0 to 1, in which words of requests count less.
    pub(crate) coverage: f32,
    pub(crate) stream: u64,
    /// Likeness to other candidates; `None` if the index does not have it.
    pub(crate) likeness: Option<Likeness>,
}

/// Record in the order of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Row id of the record.
    pub row: i64,
    /// Score of the record's words; not a number for a record that was found by meaning.
    pub score: f32,
    /// Share of the query's rarity that the record has, 0 to 1, in which words of requests count less; 0 if it was not measured.
    pub coverage: f32,
    /// Number of near-copies that are folded into this one and follow later.
    pub copies: u32,
    /// Row id of the record that this one is a folded near-copy of.
    pub original: Option<i64>,
}

impl Match {
    /// Returns the match of a record that was not compared with others.
    pub fn new(row: i64, score: f32) -> Self {
        Self { row, score, coverage: 0.0, copies: 0, original: None }
    }

    /// Returns the coverage, or `None` if it was not measured.
    pub(crate) fn known_coverage(&self) -> Option<Coverage> {
        // A record that was found by its words has at least one of them, so 0 is never measured.
        (self.coverage > 0.0).then(|| Coverage::from_share(self.coverage))
    }
}

/// Place of a hit in a list with folded near-copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fold {
    /// Index of the hit that this one is a near-copy of.
    pub(crate) original: Option<usize>,
    /// Number of near-copies of this hit.
    pub(crate) copies: u32,
    /// Score by which the hit is placed; `None` for one that follows after all others.
    pub(crate) rank: Option<f32>,
}

/// Orders candidates by falling scores.
pub(crate) fn sort_by_score(candidates: &mut [ScoredCandidate]) {
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.row.cmp(&other.row)));
}

/// Arranges candidates that are ordered by falling scores: near-copies after the hits that match about as well, and with a
/// limit of consecutive hits of one stream.
pub fn arrange(candidates: Vec<ScoredCandidate>, copies: &Copies) -> Vec<Match> {
    let scores: Vec<f32> = candidates.iter().map(|candidate| candidate.score).collect();
    let folds = fold_copies(&scores, copies);
    let rows: Vec<i64> = candidates.iter().map(|candidate| candidate.row).collect();
    let to_match = |scored: ScoredCandidate, fold: Fold| {
        let original = fold.original.and_then(|original| rows.get(original).copied());
        let ScoredCandidate { row, score, coverage, .. } = scored;
        Match { row, score, coverage, copies: fold.copies, original }
    };
    let folded = candidates.into_iter().zip(folds);
    let (mut placed, last): (Vec<_>, Vec<_>) = folded.partition(|(_, fold)| fold.rank.is_some());
    placed.sort_by(|(_, one), (_, other)| by_rank(one, other));
    let arranged = mix_streams(placed).into_iter().chain(last);
    arranged.map(|(scored, fold)| to_match(scored, fold)).collect()
}

/// Orders hits by their ranks, the best first, and originals before near-copies of an equal rank.
pub(crate) fn by_rank(one: &Fold, other: &Fold) -> std::cmp::Ordering {
    let rank = |fold: &Fold| fold.rank.unwrap_or(f32::NEG_INFINITY);
    rank(other).total_cmp(&rank(one)).then(one.original.is_some().cmp(&other.original.is_some()))
}

/// Folds near-copies in a list of falling scores.
pub(crate) fn fold_copies(scores: &[f32], copies: &Copies) -> Vec<Fold> {
    let mut folds: Vec<Fold> = Vec::with_capacity(scores.len());
    for (at, score) in scores.iter().enumerate() {
        let mut fold = Fold { original: copies.original(at), copies: 0, rank: Some(*score) };
        if let Some(original) = fold.original.and_then(|original| folds.get_mut(original)) {
            original.copies += 1;
            fold.rank = (original.copies <= MAX_DEMOTED).then(|| demoted(*score));
        }
        folds.push(fold);
    }
    folds
}

/// Returns the score by which a near-copy is placed.
pub(crate) fn demoted(score: f32) -> f32 {
    if score > 0.0 { score * COPY_RANK } else { score / COPY_RANK }
}

impl Likeness {
    /// Returns the number of different bits in the hashes of two records of one connection.
    pub(crate) fn distance(self, other: Self) -> Option<u32> {
        (self.connection == other.connection).then(|| (self.similarity ^ other.similarity).count_ones())
    }
}

/// Moves hits of other streams up where one stream would fill the window. Near-copies stay behind their originals.
fn mix_streams(placed: Vec<(ScoredCandidate, Fold)>) -> Vec<(ScoredCandidate, Fold)> {
    let rank = |fold: &Fold| fold.rank.unwrap_or_default();
    let good = placed.first().map_or(0.0, |(_, best)| rank(best) * GOOD_SHARE);
    let mut left = placed;
    let mut streams: Vec<u64> = Vec::with_capacity(left.len());
    let mut arranged = Vec::with_capacity(left.len());
    while let Some((ScoredCandidate { stream, .. }, _)) = left.first().copied() {
        let recent = streams.iter().rev().take(WINDOW - 1);
        let is_full = recent.filter(|recent| **recent == stream).count() >= MAX_OF_STREAM;
        let is_good = |fold: &Fold| rank(fold) >= good && fold.original.is_none();
        let other = left.iter().position(|(other, fold)| other.stream != stream && is_good(fold));
        let next = if is_full { other.unwrap_or(0) } else { 0 };
        let (scored, fold) = left.remove(next);
        streams.push(scored.stream);
        arranged.push((scored, fold));
    }
    arranged
}

/// Arranges candidates of any order by their likeness alone.
#[cfg(test)]
pub(crate) fn arrange_by_likeness(mut candidates: Vec<ScoredCandidate>) -> Vec<Match> {
    sort_by_score(&mut candidates);
    let hits: Vec<LikeHit> = candidates.iter().map(LikeHit::from).collect();
    arrange(candidates, &Copies::by_likeness(&hits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scored(row: i64, score: f32, stream: u64) -> ScoredCandidate {
        ScoredCandidate { row, score, coverage: 1.0, stream, likeness: None }
    }

    fn rows(matches: &[Match]) -> Vec<i64> {
        matches.iter().map(|found| found.row).collect()
    }

    #[test]
    fn equal_scores_are_ordered_by_row() {
        let arranged = arrange_by_likeness(vec![scored(3, 1.0, 1), scored(1, 1.0, 2), scored(2, 2.0, 1)]);
        assert_eq!(rows(&arranged), [2, 1, 3]);
    }

    fn copy(row: i64, score: f32, connection: u64, similarity: u64) -> ScoredCandidate {
        ScoredCandidate { likeness: Some(Likeness { connection, similarity }), ..scored(row, score, 1) }
    }

    #[test]
    fn two_near_copies_precede_much_weaker_hits_and_others_follow_last() {
        let mut candidates: Vec<ScoredCandidate> = (1..=4).map(|row| copy(row, 1.0, 1, 0)).collect();
        candidates.extend([copy(5, 0.85, 1, u64::MAX), copy(6, 0.5, 1, 0xFFFF)]);
        assert_eq!(rows(&arrange_by_likeness(candidates)), [1, 5, 2, 3, 6, 4]);
    }

    #[test]
    fn near_copies_of_one_connection_follow_after_good_hits() {
        let arranged = arrange_by_likeness(vec![
            copy(1, 1.0, 1, 0b1111),
            copy(2, 0.998, 1, 0b1110),
            copy(3, 0.99, 2, 0b1111),
            copy(4, 0.98, 1, 0b1111),
            copy(5, 0.99, 1, 0b1111_0000),
        ]);
        assert_eq!(rows(&arranged), [1, 3, 5, 4, 2]);
        assert_eq!(arranged.iter().map(|found| found.copies).collect::<Vec<_>>(), [1, 0, 0, 0, 0]);
    }

    #[test]
    fn one_stream_leaves_room_for_good_hits_of_others() {
        let mut candidates: Vec<ScoredCandidate> = (0..12).map(|row| scored(row, 1.0, 1)).collect();
        candidates.push(scored(100, 0.9, 2));
        candidates.push(scored(101, 0.5, 2));
        let arranged = rows(&arrange_by_likeness(candidates));
        assert_eq!(arranged.iter().position(|row| *row == 100), Some(6));
        assert_eq!(arranged.last(), Some(&101));
    }

    proptest! {
        #[test]
        fn every_candidate_is_arranged_once(
            candidates in prop::collection::vec((0_u8..4, 0_u64..3, 0_u64..2, prop::option::of(0_u64..16)), 0..60),
        ) {
            let candidates: Vec<ScoredCandidate> = (0..).zip(candidates).map(|(row, (score, stream, connection, similarity))| {
                let likeness = similarity.map(|similarity| Likeness { connection, similarity });
                ScoredCandidate { row, score: f32::from(score), coverage: 1.0, stream, likeness }
            }).collect();
            let arranged = arrange_by_likeness(candidates.clone());
            let mut found = rows(&arranged);
            found.sort_unstable();
            prop_assert_eq!(found, candidates.iter().map(|candidate| candidate.row).collect::<Vec<_>>());
            for (place, found) in arranged.iter().enumerate() {
                let later = arranged.iter().skip(place + 1).filter(|later| later.original == Some(found.row));
                prop_assert_eq!(later.count(), found.copies as usize, "all copies follow later");
            }
            prop_assert_eq!(&arranged, &arrange_by_likeness(candidates.into_iter().rev().collect()));
        }
    }
}

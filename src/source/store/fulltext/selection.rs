//! Puts scored candidates into the order in which they are shown: best first, near-copies folded, streams mixed.
//!
//! The order is a pure function of the candidates. No candidate is lost: near-copies follow later.

/// Maximum number of different bits in the similarity hashes of near-copies.
const MAX_DISTANCE: u32 = 3;

/// Share of a record's score that a near-copy must have. One that a query ranks lower differs in what the query is
/// about.
const COPY_SHARE: f32 = 0.995;

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

/// Candidate with its score and what it has in common with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scored {
    /// Row id of the record.
    pub(super) row: i64,
    pub(super) score: f32,
    /// Share of the query's rarity that the record has, 0 to 1.
    pub(super) coverage: f32,
    pub(super) stream: u64,
    pub(super) connection: u64,
    /// Hash of the text that is similar for similar texts.
    pub(super) similarity: Option<u64>,
}

/// Record in the order of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Match {
    pub(in crate::source::store) row: i64,
    /// Score of the record's words; not a number for a record that was found by meaning.
    pub(super) score: f32,
    /// Share of the query's rarity that the record has, 0 to 1; 0 if it was not measured.
    pub(super) coverage: f32,
    /// Number of near-copies that are folded into this one and follow later.
    pub(super) copies: u32,
}

impl Match {
    fn new(scored: &Scored, copies: u32) -> Self {
        Self { row: scored.row, score: scored.score, coverage: scored.coverage, copies }
    }
}

/// Candidate with its place in the order.
#[derive(Debug, Clone, Copy)]
struct Placed {
    scored: Scored,
    /// Score by which it is placed.
    rank: f32,
    /// Number of its near-copies.
    copies: u32,
}

/// Orders candidates: by score, near-copies after the hits that match about as well, and with a limit of consecutive
/// hits of one stream.
pub(super) fn arrange(mut candidates: Vec<Scored>) -> Vec<Match> {
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.row.cmp(&other.row)));
    let mut originals: Vec<Placed> = Vec::with_capacity(candidates.len());
    let (mut demoted, mut last): (Vec<Placed>, Vec<Scored>) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match originals.iter_mut().find(|original| is_copy(&candidate, &original.scored)) {
            Some(original) => {
                original.copies += 1;
                if original.copies <= MAX_DEMOTED {
                    demoted.push(Placed { scored: candidate, rank: candidate.score * COPY_RANK, copies: 0 });
                } else {
                    last.push(candidate);
                }
            }
            None => originals.push(Placed { scored: candidate, rank: candidate.score, copies: 0 }),
        }
    }
    let mut placed = originals;
    placed.append(&mut demoted);
    // Stable, so that candidates of one rank stay in their order.
    placed.sort_by(|one, other| other.rank.total_cmp(&one.rank));
    let mut arranged = mix_streams(placed);
    arranged.extend(last.iter().map(|copy| Match::new(copy, 0)));
    arranged
}

/// Returns true if a candidate says almost the same as one before it.
fn is_copy(candidate: &Scored, original: &Scored) -> bool {
    let (Some(one), Some(other)) = (candidate.similarity, original.similarity) else { return false };
    candidate.connection == original.connection
        && candidate.score >= original.score * COPY_SHARE
        && (one ^ other).count_ones() <= MAX_DISTANCE
}

/// Moves hits of other streams up where one stream would fill the window.
fn mix_streams(placed: Vec<Placed>) -> Vec<Match> {
    let good = placed.first().map_or(0.0, |best| best.rank * GOOD_SHARE);
    let mut left = placed;
    let mut streams: Vec<u64> = Vec::with_capacity(left.len());
    let mut arranged = Vec::with_capacity(left.len());
    while let Some(Placed { scored: Scored { stream, .. }, .. }) = left.first().copied() {
        let recent = streams.iter().rev().take(WINDOW - 1);
        let is_full = recent.filter(|recent| **recent == stream).count() >= MAX_OF_STREAM;
        let other = left.iter().position(|other| other.scored.stream != stream && other.rank >= good);
        let next = if is_full { other.unwrap_or(0) } else { 0 };
        let Placed { scored, copies, .. } = left.remove(next);
        streams.push(scored.stream);
        arranged.push(Match::new(&scored, copies));
    }
    arranged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scored(row: i64, score: f32, stream: u64) -> Scored {
        Scored { row, score, coverage: 1.0, stream, connection: 1, similarity: None }
    }

    fn rows(matches: &[Match]) -> Vec<i64> {
        matches.iter().map(|found| found.row).collect()
    }

    #[test]
    fn equal_scores_are_ordered_by_row() {
        let arranged = arrange(vec![scored(3, 1.0, 1), scored(1, 1.0, 2), scored(2, 2.0, 1)]);
        assert_eq!(rows(&arranged), [2, 1, 3]);
    }

    fn copy(row: i64, score: f32, connection: u64, similarity: u64) -> Scored {
        Scored { connection, similarity: Some(similarity), ..scored(row, score, 1) }
    }

    #[test]
    fn two_near_copies_precede_much_weaker_hits_and_others_follow_last() {
        let mut candidates: Vec<Scored> = (1..=4).map(|row| copy(row, 1.0, 1, 0)).collect();
        candidates.extend([copy(5, 0.85, 1, u64::MAX), copy(6, 0.5, 1, 0xFFFF)]);
        assert_eq!(rows(&arrange(candidates)), [1, 5, 2, 3, 6, 4]);
    }

    #[test]
    fn near_copies_of_one_connection_follow_after_good_hits() {
        let arranged = arrange(vec![
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
        let mut candidates: Vec<Scored> = (0..12).map(|row| scored(row, 1.0, 1)).collect();
        candidates.push(scored(100, 0.9, 2));
        candidates.push(scored(101, 0.5, 2));
        let arranged = rows(&arrange(candidates));
        assert_eq!(arranged.iter().position(|row| *row == 100), Some(6));
        assert_eq!(arranged.last(), Some(&101));
    }

    proptest! {
        #[test]
        fn every_candidate_is_arranged_once(
            candidates in prop::collection::vec((0_u8..4, 0_u64..3, 0_u64..2, prop::option::of(0_u64..16)), 0..60),
        ) {
            let candidates: Vec<Scored> = (0..).zip(candidates).map(|(row, (score, stream, connection, similarity))| {
                Scored { row, score: f32::from(score), coverage: 1.0, stream, connection, similarity }
            }).collect();
            let arranged = arrange(candidates.clone());
            let mut found = rows(&arranged);
            found.sort_unstable();
            prop_assert_eq!(found, candidates.iter().map(|candidate| candidate.row).collect::<Vec<_>>());
            for (place, found) in arranged.iter().enumerate() {
                prop_assert!(arranged.len() - place > found.copies as usize, "copies follow later");
            }
            prop_assert_eq!(&arranged, &arrange(candidates.into_iter().rev().collect()));
        }
    }
}

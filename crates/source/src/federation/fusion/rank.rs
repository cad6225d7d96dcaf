//! The score of a hit by its rank, and the order of hits.

use std::cmp::Reverse;

use fetchwell_core::record::{Coverage, SortValue};

/// Constant of the formula, as published: it keeps the first rank from outweighing all others.
const K: u64 = 60;

/// Fixed-point unit of scores. A sum of integers does not depend on the order of its terms.
const ONE: u64 = 1 << 48;

/// Number of ranks by which a hit without any word of the query is lowered, if another hit has all. docs/decisions.md has what
/// was measured.
const MAX_DELAY: u64 = 10;

/// Sort key of a hit; the greatest comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) score: u64,
    pub(super) time: SortValue,
    pub(super) name: Reverse<String>,
    pub(super) input: Reverse<usize>,
}

/// Returns the score of a hit at a rank of its source. It is lowered by the share of the query's words that the best hit
/// has and this one lacks. A hit whose coverage is not known keeps its rank.
pub(super) fn score_at(rank: u64, coverage: Option<Coverage>, best: Option<Coverage>) -> u64 {
    let lacking = coverage.zip(best).map_or(0, |(own, best)| best.percent().saturating_sub(own.percent()));
    // In hundredths of a rank. Without coverage it is the quotient of the formula, to the last digit.
    ONE * 100 / ((K + rank) * 100 + MAX_DELAY * u64::from(lacking))
}

/// Returns a score as a number, for an explanation.
#[expect(clippy::cast_precision_loss, reason = "a number to be printed")]
pub(super) fn points(score: u64) -> f32 {
    score as f32 / ONE as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_without_coverage_have_the_score_of_their_rank() {
        for rank in [1, 2, 7, 59, 1_000, 123_456] {
            for best in [None, Some(Coverage::FULL)] {
                assert_eq!(score_at(rank, None, best), ONE / (K + rank));
                assert_eq!(score_at(rank, best, best), ONE / (K + rank));
            }
        }
    }

    #[test]
    fn words_that_the_best_hit_has_lower_the_rank() {
        let [none, half, all] = [0, 50, 100].map(|percent| Some(Coverage::from(percent)));
        let by_rank = |rank: u64| score_at(rank, None, None);
        assert_eq!(score_at(1, half, all), by_rank(1 + MAX_DELAY / 2));
        assert_eq!(score_at(5, none, all), by_rank(5 + MAX_DELAY));
        assert_eq!(score_at(5, none, half), by_rank(5 + MAX_DELAY / 2));
        assert!(score_at(1, half, all) > score_at(2, half, all));
    }
}

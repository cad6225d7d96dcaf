//! Measures of one ranking, as they are usual in information retrieval.

use serde::Serialize;

/// Number of hits that are measured.
pub const MAX_RANK: usize = 50;

/// Number of hits that count for all measures but recall.
const TOP: usize = 10;

/// Measures of one ranking, or their means over several. All are from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Measures {
    /// 1 if the first hit is relevant.
    pub hit_1: f64,
    /// 1 if one of the first ten hits is relevant.
    pub hit_10: f64,
    /// The reciprocal rank of the first relevant hit among ten.
    pub mrr_10: f64,
    /// The discounted gain of the first ten hits, divided by that of the best order.
    pub ndcg_10: f64,
    /// The share of the relevant records among the first 50 hits.
    pub recall_50: f64,
}

impl Measures {
    /// Measures a ranking. `gains` has the grade of each hit in order, 0 for a hit that is not relevant; `grades` has
    /// the grades of all relevant records, found or not. Returns `None` if no record is relevant.
    pub fn new(gains: &[u8], grades: &[u8]) -> Option<Self> {
        if grades.is_empty() {
            return None;
        }
        let mut ideal = grades.to_vec();
        ideal.sort_unstable_by(|one, other| other.cmp(one));
        let first = gains.iter().take(TOP).position(|gain| *gain > 0);
        let found = gains.iter().take(MAX_RANK).filter(|gain| **gain > 0).count();
        let share = |is_so: bool| if is_so { 1.0 } else { 0.0 };
        Some(Self {
            hit_1: share(first == Some(0)),
            hit_10: share(first.is_some()),
            mrr_10: first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            ndcg_10: discounted(gains) / discounted(&ideal),
            recall_50: found as f64 / grades.len() as f64,
        })
    }
}

/// Returns the discounted cumulative gain of the first ten grades, with the gain `2^grade - 1`.
fn discounted(grades: &[u8]) -> f64 {
    let ranked = (2_u8..).zip(grades.iter().take(TOP));
    ranked.map(|(rank, grade)| (f64::from(*grade).exp2() - 1.0) / f64::from(rank).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(gains: &[u8], grades: &[u8], expect: [f64; 5]) {
        let found = Measures::new(gains, grades).unwrap();
        let Measures { hit_1, hit_10, mrr_10, ndcg_10, recall_50 } = found;
        let all = [hit_1, hit_10, mrr_10, ndcg_10, recall_50];
        let is_near = all.iter().zip(expect).all(|(found, expect)| (found - expect).abs() < 1e-4);
        assert!(is_near, "{all:?} instead of {expect:?}");
    }

    #[test]
    fn measures_of_one_relevant_record() {
        check(&[1], &[1], [1.0, 1.0, 1.0, 1.0, 1.0]);
        check(&[0, 0, 1], &[1], [0.0, 1.0, 1.0 / 3.0, 0.5, 1.0]);
        check(&[0; 50], &[1], [0.0; 5]);
        check(&[], &[1], [0.0; 5]);
    }

    #[test]
    fn ten_hits_count_and_fifty_for_recall() {
        let at = |rank: usize| (1..=60).map(|each| u8::from(each == rank)).collect::<Vec<_>>();
        check(&at(10), &[1], [0.0, 1.0, 0.1, 1.0 / 11_f64.log2(), 1.0]);
        check(&at(11), &[1], [0.0, 0.0, 0.0, 0.0, 1.0]);
        check(&at(50), &[1], [0.0, 0.0, 0.0, 0.0, 1.0]);
        check(&at(51), &[1], [0.0; 5]);
    }

    #[test]
    fn grades_weigh_the_gain() {
        // 1/log2(2) + 3/log2(3) over 3/log2(2) + 1/log2(3).
        check(&[1, 2], &[2, 1], [1.0, 1.0, 1.0, 0.7967, 1.0]);
        // Two of three are found: (1 + 1/2) / (1 + 1/log2(3) + 1/2).
        check(&[1, 0, 1], &[1, 1, 1], [1.0, 1.0, 1.0, 0.7039, 2.0 / 3.0]);
    }

    #[test]
    fn a_question_without_an_answer_has_no_measures() {
        assert_eq!(Measures::new(&[0], &[]), None);
    }
}

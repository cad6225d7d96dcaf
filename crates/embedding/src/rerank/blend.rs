//! Blends the order that a search found with the scores of a reranker.

/// Constant of reciprocal rank fusion. It is small, because the lists are short: a place near the top of one list counts
/// more than middle places in both.
const K: f64 = 10.0;

/// Returns the positions of the passages in their new order. Both orders count alike; the order found decides between
/// equals.
#[must_use]
pub fn blend(scores: &[f32]) -> Vec<usize> {
    let mut by_score: Vec<usize> = (0..scores.len()).collect();
    let score = |at: usize| scores.get(at).copied().unwrap_or(f32::NEG_INFINITY);
    by_score.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
    let mut shares: Vec<f64> = (0..scores.len()).map(share).collect();
    for (rank, at) in by_score.into_iter().enumerate() {
        if let Some(sum) = shares.get_mut(at) {
            *sum += share(rank);
        }
    }
    let share_of = |at: usize| shares.get(at).copied().unwrap_or_default();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| share_of(*other).total_cmp(&share_of(*one)));
    order
}

/// Returns the share of a rank, from 0.
fn share(rank: usize) -> f64 {
    1.0 / (K + 1.0 + rank as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_orders_count() {
        assert_eq!(blend(&[]), Vec::<usize>::new());
        assert_eq!(blend(&[3.0, 2.0, 1.0]), [0, 1, 2]);
        // Equal scores keep the order found.
        assert_eq!(blend(&[1.0; 4]), [0, 1, 2, 3]);
        // The best by score rises, and what was found first stays near the top.
        let mut scores = vec![0.0; 20];
        scores[12] = 9.0;
        assert_eq!(blend(&scores)[..5], [0, 1, 2, 3, 12]);
        scores[2] = 8.0;
        scores[0] = -1.0;
        assert_eq!(blend(&scores)[..4], [1, 2, 3, 12]);
    }

    proptest! {
        #[test]
        fn every_passage_is_there_once(scores in prop::collection::vec(prop::num::f32::ANY, 0..60)) {
            let mut order = blend(&scores);
            prop_assert_eq!(&order, &blend(&scores));
            order.sort_unstable();
            prop_assert_eq!(order, (0..scores.len()).collect::<Vec<_>>());
        }
    }
}

//! Means of groups with 95 % bootstrap intervals.
//!
//! Questions are drawn again within their group, so that every kind keeps its weight. The seed is fixed: the same
//! values give the same interval.

use serde::Serialize;

use super::random::Random;

/// Number of resamples.
const RESAMPLES: usize = 2_000;

const SEED: u64 = 1;

/// A mean over groups, each with the same weight, and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean of the measure.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Estimates the mean of groups of values. Empty groups are left out; returns `None` if all are empty.
    pub fn new(groups: &[Vec<f64>]) -> Option<Self> {
        let groups: Vec<&[f64]> =
            groups.iter().map(Vec::as_slice).filter(|group| !group.is_empty()).collect();
        if groups.is_empty() {
            return None;
        }
        let mean_of = |values: &mut dyn FnMut(&[f64]) -> f64| {
            groups.iter().map(|group| values(group)).sum::<f64>() / groups.len() as f64
        };
        let mut random = Random::new(SEED);
        let mut means: Vec<f64> =
            (0..RESAMPLES).map(|_| mean_of(&mut |group| resampled_mean(group, &mut random))).collect();
        means.sort_unstable_by(f64::total_cmp);
        let at = |rank: usize| means.get(rank).copied().unwrap_or_default();
        let tail = RESAMPLES * 25 / 1_000;
        let mean = mean_of(&mut |group| group.iter().sum::<f64>() / group.len() as f64);
        Some(Self { mean, low: at(tail), high: at(RESAMPLES - 1 - tail) })
    }
}

/// Returns the mean of as many values as the group has, drawn with replacement.
fn resampled_mean(group: &[f64], random: &mut Random) -> f64 {
    let drawn = (0..group.len()).filter_map(|_| random.choose(group));
    drawn.sum::<f64>() / group.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_equal_weight() {
        let estimate = Estimate::new(&[vec![1.0], vec![0.0; 99], Vec::new()]).unwrap();
        assert_eq!((estimate.mean, estimate.low, estimate.high), (0.5, 0.5, 0.5));
        assert_eq!(Estimate::new(&[Vec::new()]), None);
        assert_eq!(Estimate::new(&[]), None);
    }

    #[test]
    fn an_interval_has_the_width_of_the_normal_approximation() {
        // 40 of 100: the standard error is sqrt(.4 * .6 / 100) = .049.
        let values: Vec<f64> = (0..100).map(|at| if at < 40 { 1.0 } else { 0.0 }).collect();
        let estimate = Estimate::new(&[values]).unwrap();
        assert!((estimate.mean - 0.4).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.low - 0.304).abs() < 0.02 && (estimate.high - 0.496).abs() < 0.02, "{estimate:?}");
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = [vec![0.1, 0.7, 0.4], vec![0.9, 0.2]];
        assert_eq!(Estimate::new(&values), Estimate::new(&values));
    }
}

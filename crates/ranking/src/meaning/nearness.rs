//! The nearness of records to a query: how far each stands out from all others, and the points that this adds to a score.

use std::collections::{HashMap, HashSet};

use fetchwell_core::record::{ExplainedMeaning, Measure};

use super::nearest::{NearestHit, NearestRecords, ScoreSpread, VectorHit};
use super::placements::MAX_PLACED;
use crate::lexical::explanation::RankingBreakdown;
use crate::lexical::selection::{Copies, Fold, LikeHit, Match, fold_copies};

/// Number of the nearest records that get a higher score for nearness.
const MAX_SCORED: usize = 50;

/// Minimum distance from the mean that adds to a score, in standard deviations.
const MIN_DISTANCE: f32 = 2.0;

/// Difference of distances that counts as none. Stores compute cosines and their spread with different rounding.
const DISTANCE_TOLERANCE: f32 = 0.01;

/// Maximum distance that counts beyond the minimum.
const MAX_EXCESS: f32 = 6.0;

/// Score for one standard deviation of nearness, for a query of which no record has a word.
const NEARNESS: f32 = 4.8;

/// A near record with its place among near-copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearRecord {
    /// Row of the record, or of the hit by words that it is a near-copy of.
    pub(super) row: i64,
    pub(super) hit: VectorHit,
    /// Distance of the cosine from the mean of all cosines, in standard deviations.
    pub(super) distance: f32,
    /// Number of near-copies that are folded into the record.
    pub(super) copies: u32,
    /// Place among the records that have no word of the query.
    pub(super) fold: Fold,
}

/// Returns the near records, the nearest first. A folded near-copy among the hits by words stays where it is: its original
/// takes its nearness. Records that only their meaning found are folded among each other.
pub(super) fn near_records(words: &[Match], nearest: &NearestRecords) -> Vec<NearRecord> {
    let words: HashMap<i64, &Match> = words.iter().map(|hit| (hit.row, hit)).collect();
    let original_of = |row: i64| words.get(&row).and_then(|hit| hit.original).unwrap_or(row);
    let mut seen = HashSet::new();
    let near = nearest.hits.iter().take(MAX_PLACED).filter(|near| seen.insert(original_of(near.hit.record)));
    let near: Vec<_> = near.collect();
    let has_words = |row: i64| words.contains_key(&row);
    let like = |near: &&NearestHit| {
        let likeness = near.likeness.filter(|_| !has_words(near.hit.record));
        LikeHit { score: near.hit.score, likeness }
    };
    let scores: Vec<f32> = near.iter().map(|near| near.hit.score).collect();
    let folds = fold_copies(&scores, &Copies::by_likeness(&near.iter().map(like).collect::<Vec<_>>()));
    let record = |(near, fold): (&NearestHit, Fold)| {
        let row = original_of(near.hit.record);
        let copies = words.get(&row).map_or(fold.copies, |hit| hit.copies);
        NearRecord { row, hit: near.hit, distance: distance(&near.hit, nearest.spread), copies, fold }
    };
    near.into_iter().zip(folds).map(record).collect()
}

/// Distance of a cosine from the mean of all cosines, in standard deviations.
fn distance(hit: &VectorHit, spread: ScoreSpread) -> f32 {
    if spread.deviation <= 0.0 { 0.0 } else { (hit.score - spread.mean) / spread.deviation }
}

/// Returns true if a distance is greater than a minimum, also with the rounding of another store.
pub(super) fn is_beyond(distance: f32, minimum: f32) -> bool {
    distance > minimum + DISTANCE_TOLERANCE
}

/// Returns the near records that are no near-copies, with their indexes.
fn originals(near: &[NearRecord]) -> impl Iterator<Item = (usize, &NearRecord)> {
    near.iter().enumerate().filter(|(_, near)| near.fold.original.is_none())
}

/// Points that nearness adds to scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearnessGain {
    /// Minimum distance that adds points, in standard deviations.
    min_distance: f32,
    /// Factor on the points, 0 to 1.
    weight: f32,
}

impl NearnessGain {
    /// Creates the gain of a query, of which `weight` is the part that its words leave to nearness.
    pub(super) fn new(near: &[NearRecord], weight: f32) -> Self {
        // In a large store the nearest of many records stand out by chance.
        let by_chance = originals(near).nth(MAX_SCORED - 1).map_or(MIN_DISTANCE, |(_, near)| near.distance);
        Self { min_distance: by_chance.max(MIN_DISTANCE), weight }
    }

    /// Returns the points of a record.
    pub(super) fn points(self, near: &NearRecord) -> f32 {
        NEARNESS * self.weight * (near.distance - self.min_distance).clamp(0.0, MAX_EXCESS)
    }

    /// Returns true for a record that is near enough to get points.
    pub(super) fn counts(self, near: &NearRecord) -> bool {
        is_beyond(near.distance, self.min_distance)
    }

    /// Returns the records whose points place them.
    pub(super) fn scored(self, near: &[NearRecord]) -> impl Iterator<Item = (usize, &NearRecord)> {
        originals(near).take(MAX_SCORED).filter(move |(_, near)| self.counts(near))
    }
}

/// Notes the nearness of records, with the points that it adds.
pub(super) fn note_nearness(
    breakdown: Option<&mut RankingBreakdown>,
    near: &[NearRecord],
    points: impl Fn(&NearRecord) -> Option<f32>,
) {
    let Some(breakdown) = breakdown else { return };
    for (rank, near) in (1..).zip(near) {
        let meaning = ExplainedMeaning {
            rank: Some(rank),
            similarity: Some(near.hit.score.into()),
            deviations: Some(near.distance.into()),
            points: points(near).map(Measure::from),
            is_placed: false,
        };
        breakdown.note_nearness(near.row, meaning);
    }
}

//! Decides which records that are near to a query go where in the list of its words.
//!
//! Hits by words are never dropped: where a record among the first has all words of the query, records near in meaning
//! follow after the first five. Otherwise nearness adds to the score of a record's words, the more of the query no record
//! has. Nearness counts as far as a record stands out from all others, so a query in a language that the model does not
//! know, which is equally near to everything, changes little.
//!
//! Pure: a function of the hits by words and of the cosines. The constants were tuned on sets that no result is reported
//! on; `docs/search.md` explains the rule.

use std::collections::{HashMap, HashSet};

use super::nearest::NearestRecords;
use super::placements::{MAX_PLACED, Placed, Placements};
use crate::source::store::vectors::{ScoreSpread, VectorHit};

/// Number of first hits by words of which one has to have the whole query.
const JUDGED: usize = 3;

/// Share of the query from which on a hit has all of it. Words that no record has do not count.
const WHOLE_QUERY: f32 = 0.95;

/// Number of hits by words that stay before all others if one has the whole query.
const KEPT_FIRST: usize = 5;

/// Maximum number of records that are placed among hits with the whole query, every second one.
const MAX_BETWEEN: usize = 5;

/// Minimum distance of these from the mean, in standard deviations.
const MIN_BETWEEN: f32 = 4.0;

/// Number of the nearest records that get a higher score for nearness.
const MAX_SCORED: usize = 50;

/// Minimum distance from the mean that adds to a score, in standard deviations.
const MIN_DISTANCE: f32 = 2.0;

/// Maximum distance that counts beyond the minimum.
const MAX_EXCESS: f32 = 6.0;

/// Score for one standard deviation of nearness, for a query of which no record has a word.
const NEARNESS: f32 = 1.6;

/// A hit by words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::source::store::fulltext) struct WordHit {
    /// Row id of the record.
    pub(in crate::source::store::fulltext) row: i64,
    /// Score of the words.
    pub(in crate::source::store::fulltext) score: f32,
    /// Share of the query that the record has, 0 to 1. Words that no record has do not count.
    pub(in crate::source::store::fulltext) coverage: f32,
}

/// Places records by their nearness alone.
pub(in crate::source::store::fulltext) fn place_all(nearest: &NearestRecords) -> Placements {
    let hits = (0..).zip(nearest.hits.iter().take(MAX_PLACED));
    Placements::new(hits.map(|(index, hit)| placed(index, hit)).collect())
}

/// Places records among the hits by words.
pub(in crate::source::store::fulltext) fn place_among(
    words: &[WordHit],
    nearest: &NearestRecords,
) -> Placements {
    let coverage = words.iter().take(JUDGED).map(|hit| hit.coverage).fold(0.0, f32::max);
    let order = if coverage >= WHOLE_QUERY {
        between(words, nearest)
    } else {
        by_sum(words, nearest, 1.0 - coverage)
    };
    placements(&order, nearest)
}

/// Distance of a cosine from the mean of all cosines, in standard deviations.
fn distance(hit: &VectorHit, spread: ScoreSpread) -> f32 {
    if spread.deviation <= 0.0 { 0.0 } else { (hit.score - spread.mean) / spread.deviation }
}

/// A record in the list, with a mark if nearness decided its place.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ordered {
    row: i64,
    is_placed: bool,
}

/// Orders the first hits by words as they are, then one near record and one hit by words in turn.
fn between(words: &[WordHit], nearest: &NearestRecords) -> Vec<Ordered> {
    let mut seen: HashSet<i64> = words.iter().take(KEPT_FIRST).map(|hit| hit.row).collect();
    let near = nearest.hits.iter().filter(|hit| distance(hit, nearest.spread) >= MIN_BETWEEN);
    let near: Vec<i64> =
        near.take(MAX_BETWEEN).map(|hit| hit.record).filter(|row| seen.insert(*row)).collect();
    let mut order: Vec<Ordered> = Vec::with_capacity(words.len() + near.len());
    let mut near = near.into_iter().map(|row| Ordered { row, is_placed: true }).peekable();
    let is_near = |row: i64| seen.contains(&row);
    for (at, hit) in words.iter().enumerate() {
        if at < KEPT_FIRST {
            order.push(Ordered { row: hit.row, is_placed: false });
            continue;
        }
        if is_near(hit.row) {
            continue;
        }
        order.extend(near.next());
        order.push(Ordered { row: hit.row, is_placed: false });
    }
    order.extend(near);
    order
}

/// Orders records by the score of their words plus their nearness, which counts by the share of the query that no record
/// has.
fn by_sum(words: &[WordHit], nearest: &NearestRecords, missing: f32) -> Vec<Ordered> {
    let scored = nearest.hits.iter().take(MAX_SCORED);
    let distances = scored.map(|hit| (hit.record, distance(hit, nearest.spread)));
    let distances: Vec<(i64, f32)> = distances.collect();
    // In a large store the nearest of many records stand out by chance.
    let by_chance = distances.get(MAX_SCORED - 1).map_or(MIN_DISTANCE, |(_, distance)| *distance);
    let least = by_chance.max(MIN_DISTANCE);
    let near: HashMap<i64, f32> = distances
        .iter()
        .filter(|(_, distance)| *distance > least)
        .map(|(row, distance)| (*row, NEARNESS * missing * (distance - least).min(MAX_EXCESS)))
        .collect();
    let of_words: HashSet<i64> = words.iter().map(|hit| hit.row).collect();
    let mut sums: Vec<(f32, Ordered)> = Vec::with_capacity(words.len() + near.len());
    for hit in words {
        let nearness = near.get(&hit.row);
        let order = Ordered { row: hit.row, is_placed: nearness.is_some() };
        sums.push((hit.score + nearness.copied().unwrap_or(0.0), order));
    }
    for (row, _) in distances.iter().filter(|(row, _)| !of_words.contains(row)) {
        if let Some(nearness) = near.get(row) {
            sums.push((*nearness, Ordered { row: *row, is_placed: true }));
        }
    }
    // Hits by words keep their order among each other, in which near-copies are last and streams are mixed.
    let mut placed: Vec<(f32, Ordered)> = sums.iter().filter(|(_, order)| order.is_placed).copied().collect();
    placed.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut placed = placed.into_iter().peekable();
    let mut ordered = Vec::with_capacity(sums.len());
    for (score, order) in sums.into_iter().filter(|(_, order)| !order.is_placed) {
        while let Some((_, near)) = placed.next_if(|(near, _)| *near > score) {
            ordered.push(near);
        }
        ordered.push(order);
    }
    ordered.extend(placed.map(|(_, near)| near));
    ordered
}

/// Returns the places of the records that nearness placed.
fn placements(order: &[Ordered], nearest: &NearestRecords) -> Placements {
    let hits: HashMap<i64, &VectorHit> = nearest.hits.iter().map(|hit| (hit.record, hit)).collect();
    let near = (0..).zip(order).filter(|(_, order)| order.is_placed);
    let near = near.filter_map(|(index, order)| Some(placed(index, hits.get(&order.row)?)));
    Placements::new(near.collect())
}

fn placed(index: u32, hit: &VectorHit) -> Placed {
    let byte = |byte: i64| u32::try_from(byte).unwrap_or_default();
    Placed { index, row: hit.record, first_byte: byte(hit.first_byte), end_byte: byte(hit.end_byte) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hits by words with falling scores and one coverage.
    fn words(rows: &[i64], coverage: f32) -> Vec<WordHit> {
        let score = |at: usize| 2.0 - 0.1 * at as f32;
        rows.iter().enumerate().map(|(at, row)| WordHit { row: *row, score: score(at), coverage }).collect()
    }

    /// Near records, each with its distance from the mean.
    fn near(distances: &[(i64, f32)]) -> NearestRecords {
        let hit = |(record, distance): &(i64, f32)| VectorHit {
            record: *record,
            score: 0.1 + 0.1 * distance,
            first_byte: 0,
            end_byte: 1,
        };
        let spread = ScoreSpread { mean: 0.1, deviation: 0.1 };
        NearestRecords { hits: distances.iter().map(hit).collect(), spread, is_cut: false }
    }

    #[track_caller]
    fn check(words: &[WordHit], near: &NearestRecords, expect: &[i64]) {
        let first = |count: usize| {
            Ok::<_, std::convert::Infallible>(words.iter().take(count).map(|hit| hit.row).collect())
        };
        let merged =
            place_among(words, near).merge(0, 100, first, |row: &i64| *row, |placed| placed.row).unwrap();
        assert_eq!(merged, expect);
    }

    #[test]
    fn hits_with_the_whole_query_stay_first() {
        let near = near(&[(20, 6.0), (2, 5.5), (7, 5.0), (21, 4.5), (22, 3.9)]);
        check(&words(&[1, 2, 3, 4, 5, 6, 7, 8], 1.0), &near, &[1, 2, 3, 4, 5, 20, 6, 7, 8, 21]);
        check(&words(&[1, 2], 1.0), &near, &[1, 2, 20, 7, 21]);
    }

    #[test]
    fn near_records_rise_where_words_miss_the_query() {
        check(&words(&[], 0.0), &near(&[(20, 6.0), (21, 3.0), (22, 1.9)]), &[20, 21]);
        check(&words(&[1, 2, 3], 0.2), &near(&[(20, 6.0), (2, 3.0), (21, 2.1)]), &[20, 2, 1, 3, 21]);
        check(&words(&[1, 2, 3], 0.8), &near(&[(20, 6.0), (21, 3.0)]), &[1, 2, 3, 20, 21]);
    }

    #[test]
    fn nearness_that_does_not_stand_out_changes_nothing() {
        check(&words(&[1, 2, 3], 0.3), &near(&[(20, 1.9), (21, 1.5), (3, 1.2)]), &[1, 2, 3]);
        let equal: Vec<(i64, f32)> = (100..200).map(|row| (row, 3.5)).collect();
        check(&words(&[1, 2, 3], 0.3), &near(&equal), &[1, 2, 3]);
        let mut none = near(&[(20, 9.0)]);
        none.spread = ScoreSpread::default();
        check(&words(&[1], 0.0), &none, &[1]);
    }

    proptest! {
        #[test]
        fn no_hit_is_lost_or_repeated(
            count in 0_i64..60,
            coverage in 0.0_f32..1.0,
            distances in prop::collection::vec((0_i64..120, 0.0_f32..9.0), 0..80),
        ) {
            let mut seen = HashSet::new();
            let mut distances: Vec<(i64, f32)> =
                distances.into_iter().filter(|(row, _)| seen.insert(*row)).collect();
            distances.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            let words = words(&(0..count).collect::<Vec<_>>(), coverage);
            let near = near(&distances);
            let first = |limit: usize| {
                Ok::<_, std::convert::Infallible>(words.iter().take(limit).map(|hit| hit.row).collect())
            };
            let placements = place_among(&words, &near);
            let merged = placements.merge(0, 1_000, first, |row: &i64| *row, |placed| placed.row).unwrap();
            let distinct: HashSet<i64> = merged.iter().copied().collect();
            prop_assert_eq!(distinct.len(), merged.len());
            prop_assert!((0..count).all(|row| distinct.contains(&row)));
            if coverage >= WHOLE_QUERY {
                let kept: Vec<i64> = (0..count).take(KEPT_FIRST).collect();
                prop_assert_eq!(merged.iter().take(kept.len()).copied().collect::<Vec<_>>(), kept);
            }
        }
    }
}

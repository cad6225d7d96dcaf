//! Decides which records that are near to a query go where in the list of its words.
//!
//! Hits by words are never dropped: where a record among the first has most of the query, records near in meaning follow
//! after the first five. Otherwise nearness adds to the score of a record's words, the less of the query these records have,
//! and less for a query with a number; the first five stay for a short query. Nearness counts as far as a record stands out
//! from all others, so a query in a language that the model does not know, which is equally near to everything, changes
//! little.
//!
//! Pure: a function of the words, their hits and the cosines. The constants were tuned on sets that no result is reported
//! on; `docs/search.md` explains the rule.

use std::collections::{HashMap, HashSet};

use super::nearest::{NearestRecords, VectorHit};
use super::nearness::{NearRecord, NearnessGain, is_beyond, near_records, note_nearness};
use super::placements::{Placement, Placements};
use crate::lexical::expansion::Lookups;
use crate::lexical::explanation::RankingBreakdown;
use crate::lexical::selection::{Match, by_rank, demoted};

/// Number of first hits by words of which one has to have most of the query.
const JUDGED: usize = 3;

/// Share of the query that is most of it: its words weighed by their rarity, those of requests less, and without those that no
/// record has. Another form of a word counts less than the word, so of two words one may be in another form, and of three none
/// may be missing.
const MIN_COVERAGE: f32 = 0.7;

/// Maximum number of words of a short query. Short queries are mostly names, dates and parts of words, of which a model knows
/// less than the index, and one of their words is often half of them.
const MAX_SHORT_QUERY_WORDS: usize = 4;

/// Number of hits by words that stay before all others if one has most of the query, or if the query is short.
const KEPT_FIRST: usize = 5;

/// Maximum number of records that are placed among the other hits then, every second one.
const MAX_BETWEEN: usize = 5;

/// Minimum distance of these from the mean, in standard deviations.
const MIN_BETWEEN: f32 = 4.0;

/// Factor on the points of nearness for a query with a number that some record has. Models do not tell years apart.
const NUMBER_FACTOR: f32 = 0.2;

/// Factor on these points for a short query.
const SHORT_FACTOR: f32 = 0.5;

/// Places records by their nearness alone, and notes it if `breakdown` is given.
pub fn place_all(nearest: &NearestRecords, breakdown: Option<&mut RankingBreakdown>) -> Placements {
    let near = near_records(&[], nearest);
    note_nearness(breakdown, &near, |_| None);
    let near = near.into_iter();
    let (mut ranked, last): (Vec<_>, Vec<_>) = near.partition(|near| near.fold.rank.is_some());
    ranked.sort_by(|one, other| by_rank(&one.fold, &other.fold));
    placements(ranked.iter().chain(&last).map(ListRow::from_near))
}

/// Places records among the hits by words of a query, of which `lookups` are the words, and notes the nearness of each if
/// `breakdown` is given.
pub fn place_among(
    words: &[Match],
    nearest: &NearestRecords,
    lookups: &Lookups,
    breakdown: Option<&mut RankingBreakdown>,
) -> Placements {
    let coverage = words.iter().take(JUDGED).map(|hit| hit.coverage).fold(0.0, f32::max);
    // A record cannot have words that no record has.
    let possible = lookups.possible_coverage();
    let coverage = if possible > 0.0 { coverage / possible } else { 0.0 };
    let near = near_records(words, nearest);
    if coverage >= MIN_COVERAGE {
        note_nearness(breakdown, &near, |_| None);
        return placements(between(words, &near).into_iter());
    }
    let is_short = lookups.word_count() <= MAX_SHORT_QUERY_WORDS;
    let number_factor = if lookups.has_number() { NUMBER_FACTOR } else { 1.0 };
    let factor = if is_short { SHORT_FACTOR * number_factor } else { number_factor };
    let gain = NearnessGain::new(&near, (1.0 - coverage / MIN_COVERAGE) * factor);
    note_nearness(breakdown, &near, |near| gain.counts(near).then(|| gain.points(near)));
    let order = by_sum(words, &near, gain);
    let order = if is_short { with_first_hits(words, order) } else { order };
    placements(order.into_iter())
}

/// A record in the list.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ListRow {
    row: i64,
    copies: u32,
    /// Hit of the vector search, if nearness decided the place.
    near: Option<VectorHit>,
}

impl ListRow {
    fn from_words(hit: &Match) -> Self {
        Self { row: hit.row, copies: hit.copies, near: None }
    }

    fn from_near(near: &NearRecord) -> Self {
        Self { row: near.row, copies: near.copies, near: Some(near.hit) }
    }
}

/// Orders the first hits by words as they are, then one near record and one hit by words in turn.
fn between(words: &[Match], near: &[NearRecord]) -> Vec<ListRow> {
    let first: HashSet<i64> = words.iter().take(KEPT_FIRST).map(|hit| hit.row).collect();
    let far = near.iter().enumerate().filter(|(_, near)| is_beyond(near.distance, MIN_BETWEEN));
    let originals = far.filter(|(_, near)| near.fold.original.is_none()).take(MAX_BETWEEN);
    let chosen: Vec<(usize, &NearRecord)> =
        originals.filter(|(_, near)| !first.contains(&near.row)).collect();
    let copies =
        near.iter().filter(|copy| chosen.iter().any(|(original, _)| copy.fold.original == Some(*original)));
    let mut pending: Vec<ListRow> = chosen.iter().map(|(_, near)| ListRow::from_near(near)).collect();
    let mut order: Vec<ListRow> = words.iter().take(KEPT_FIRST).map(ListRow::from_words).collect();
    let mut is_near_turn = true;
    for hit in words.iter().skip(KEPT_FIRST) {
        if let Some(at) = pending.iter().position(|near| near.row == hit.row) {
            // A hit by words is not delayed by records that are nearer.
            order.push(pending.remove(at));
            is_near_turn = false;
            continue;
        }
        if chosen.iter().any(|(_, near)| near.row == hit.row) {
            continue;
        }
        if is_near_turn && !pending.is_empty() {
            order.push(pending.remove(0));
        }
        order.push(ListRow::from_words(hit));
        is_near_turn = true;
    }
    order.extend(pending);
    order.extend(copies.map(ListRow::from_near));
    order
}

/// Moves the first hits by words to the beginning of a list.
fn with_first_hits(words: &[Match], order: Vec<ListRow>) -> Vec<ListRow> {
    let place: HashMap<i64, usize> =
        words.iter().take(KEPT_FIRST).enumerate().map(|(place, hit)| (hit.row, place)).collect();
    let (mut first, others): (Vec<ListRow>, Vec<ListRow>) =
        order.into_iter().partition(|row| place.contains_key(&row.row));
    first.sort_by_key(|row| place.get(&row.row).copied());
    first.extend(others);
    first
}

/// Orders records by the score of their words plus the points of their nearness.
fn by_sum(words: &[Match], near: &[NearRecord], gain: NearnessGain) -> Vec<ListRow> {
    let nearness = |near: &NearRecord| gain.points(near);
    let scored: Vec<(usize, &NearRecord)> = gain.scored(near).collect();
    let by_row: HashMap<i64, &NearRecord> = scored.iter().map(|(_, near)| (near.row, *near)).collect();
    let (mut placed, mut last): (Vec<(f32, ListRow)>, Vec<ListRow>) = (Vec::new(), Vec::new());
    for hit in words {
        if let Some(near) = by_row.get(&hit.row) {
            placed.push((hit.score + nearness(near), ListRow::from_near(near)));
        }
    }
    let of_words: HashSet<i64> = words.iter().map(|hit| hit.row).collect();
    for (_, near) in scored.iter().filter(|(_, near)| !of_words.contains(&near.row)) {
        placed.push((nearness(near), ListRow::from_near(near)));
    }
    for copy in near.iter().filter(|copy| scored.iter().any(|(at, _)| copy.fold.original == Some(*at))) {
        match copy.fold.rank {
            Some(_) => placed.push((demoted(nearness(copy)), ListRow::from_near(copy))),
            None => last.push(ListRow::from_near(copy)),
        }
    }
    placed.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    // Hits by words keep their order among each other, in which near-copies are last and streams are mixed.
    let mut placed = placed.into_iter().peekable();
    let mut ordered = Vec::with_capacity(words.len() + near.len());
    for hit in words.iter().filter(|hit| !by_row.contains_key(&hit.row)) {
        while let Some((_, near)) = placed.next_if(|(near, _)| *near >= hit.score) {
            ordered.push(near);
        }
        ordered.push(ListRow::from_words(hit));
    }
    ordered.extend(placed.map(|(_, near)| near));
    ordered.extend(last);
    ordered
}

/// Returns the places of the records that nearness placed.
fn placements(order: impl Iterator<Item = ListRow>) -> Placements {
    let byte = |byte: i64| u32::try_from(byte).unwrap_or_default();
    let place = |(index, ListRow { row, copies, near }): (u32, ListRow)| {
        let VectorHit { first_byte, end_byte, .. } = near?;
        Some(Placement { index, row, copies, first_byte: byte(first_byte), end_byte: byte(end_byte) })
    };
    Placements::new((0..).zip(order).filter_map(place).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lexical::expansion::{Alternative, Lookup};
    use crate::lexical::selection::{Likeness, ScoredCandidate, arrange_by_likeness};
    use crate::lexical::words::WordKind;
    use crate::meaning::{NearestHit, ScoreSpread};

    /// The words of a long query, or of a short one. Some record has them.
    fn lookups(texts: &[&str]) -> Lookups {
        let lookup = |text: &&str| Lookup {
            kind: WordKind::Spaced,
            alternatives: vec![Alternative { text: (*text).to_owned(), quality: 1.0, frequency: 1 }],
            weight: 1.0,
            share: 1.0,
            share_of_coverage: 1.0,
        };
        Lookups { words: texts.iter().map(lookup).collect(), records: 1, ..Lookups::default() }
    }

    const LONG: [&str; 5] = ["one", "two", "three", "four", "five"];

    /// Hits by words with falling scores and one coverage.
    fn words(rows: &[i64], coverage: f32) -> Vec<Match> {
        let score = |at: usize| 2.0 - 0.1 * at as f32;
        let hit = |(at, row): (usize, &i64)| Match {
            row: *row,
            score: score(at),
            coverage,
            copies: 0,
            original: None,
        };
        rows.iter().enumerate().map(hit).collect()
    }

    /// Near records, each with its distance from the mean.
    fn near(distances: &[(i64, f32)]) -> NearestRecords {
        let hit = |(record, distance): &(i64, f32)| NearestHit {
            hit: VectorHit { record: *record, score: 0.1 + 0.1 * distance, first_byte: 0, end_byte: 1 },
            likeness: None,
        };
        let spread = ScoreSpread { mean: 0.1, deviation: 0.1 };
        NearestRecords { hits: distances.iter().map(hit).collect(), spread, is_cut: false }
    }

    #[track_caller]
    fn check(words: &[Match], near: &NearestRecords, expect: &[i64]) {
        let first = |count: usize| {
            Ok::<_, std::convert::Infallible>(words.iter().take(count).map(|hit| hit.row).collect())
        };
        let merged = place_among(words, near, &lookups(&LONG), None)
            .merge(0, 100, first, |row: &i64| *row, |placed, _| placed.row)
            .unwrap();
        assert_eq!(merged, expect);
    }

    #[test]
    fn hits_with_most_of_the_query_stay_first() {
        let near = near(&[(20, 6.0), (2, 5.5), (7, 5.0), (21, 4.5), (22, 3.9)]);
        check(&words(&[1, 2, 3, 4, 5, 6, 7, 8], 1.0), &near, &[1, 2, 3, 4, 5, 20, 6, 7, 8, 21]);
        check(&words(&[1, 2], 1.0), &near, &[1, 2, 20, 7, 21]);
        check(&words(&[1, 2], 0.75), &near, &[1, 2, 20, 7, 21]);
    }

    #[test]
    fn near_records_rise_where_words_miss_the_query() {
        check(&words(&[], 0.0), &near(&[(20, 6.0), (21, 3.0), (22, 1.9)]), &[20, 21]);
        check(&words(&[1, 2, 3], 0.2), &near(&[(20, 6.0), (2, 3.0), (21, 2.1)]), &[20, 2, 1, 3, 21]);
        check(&words(&[1, 2, 3], 0.6), &near(&[(20, 4.8), (21, 3.0)]), &[1, 20, 2, 3, 21]);
    }

    #[test]
    fn rounding_does_not_decide_what_stands_out() {
        let hits = words(&[1, 2, 3, 4, 5, 6], 1.0);
        for rounding in [-1e-3, -1e-5, 0.0, 1e-5, 1e-3] {
            check(&[], &near(&[(20, 6.0), (21, 2.0 + rounding)]), &[20]);
            check(&hits, &near(&[(20, 6.0), (21, 4.0 + rounding)]), &[1, 2, 3, 4, 5, 20, 6]);
            // Of equally near records none is the nearest by chance.
            let mut many: Vec<(i64, f32)> = (0..60).map(|record| (record, 3.0)).collect();
            many[0].1 += rounding.abs();
            check(&[], &near(&many), &[]);
        }
    }

    #[test]
    fn nearness_counts_less_for_short_queries_and_numbers() {
        let near = near(&[(20, 4.0), (21, 2.3)]);
        let rows = |words: &[Match], texts: &[&str]| -> Vec<i64> {
            let list = merged(&place_among(words, &near, &lookups(texts), None), words);
            list.iter().map(|(row, _)| *row).collect()
        };
        let hits = words(&[1, 2], 0.2);
        assert_eq!(rows(&hits, &LONG), [20, 1, 2, 21]);
        assert_eq!(rows(&hits, &LONG[..4]), [1, 2, 20, 21]);
        assert_eq!(rows(&hits, &["one", "two", "three", "four", "2024"]), [1, 2, 20, 21]);
        assert_eq!(rows(&[], &LONG[..1]), [20, 21]);
        let hits = words(&[1, 2, 3, 4, 5, 6], 0.2);
        assert_eq!(rows(&hits, &LONG[..4]), [1, 2, 3, 4, 5, 20, 6, 21]);
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

    /// Returns the list as rows with their numbers of near-copies.
    fn merged(placements: &Placements, words: &[Match]) -> Vec<(i64, u32)> {
        let first = |limit: usize| {
            let words = words.iter().take(limit).map(|hit| (hit.row, hit.copies));
            Ok::<_, std::convert::Infallible>(words.collect())
        };
        let placed = |placed: &Placement, _| (placed.row, placed.copies);
        placements.merge(0, 1_000, first, |(row, _): &(i64, u32)| *row, placed).unwrap()
    }

    fn like(mut near: NearestRecords, likeness: impl Fn(i64) -> Option<Likeness>) -> NearestRecords {
        near.hits.iter_mut().for_each(|near| near.likeness = likeness(near.hit.record));
        near
    }

    #[test]
    fn near_copies_that_only_meaning_found_are_folded() {
        let in_two_connections = |row: i64| match row {
            20..30 => Some(Likeness { connection: 1, similarity: 0 }),
            _ => Some(Likeness { connection: 2, similarity: if row < 40 { 0 } else { u64::MAX } }),
        };
        let distances = [(20, 7.0), (21, 7.0), (22, 7.0), (23, 7.0), (30, 7.0), (40, 6.5), (41, 4.5)];
        let near = like(near(&distances), in_two_connections);
        // The last one has half of the nearness of the first, and two copies have 80 % of it.
        assert_eq!(merged(&place_all(&near, None), &[])[..3], [(20, 3), (30, 0), (40, 0)]);
        let placed = merged(&place_among(&[], &near, &lookups(&LONG), None), &[]);
        assert_eq!(placed, [(20, 3), (30, 0), (40, 0), (21, 0), (22, 0), (41, 0), (23, 0)]);
        // Copies take no place among hits with most of the query, and follow after them.
        let words = words(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 1.0);
        let rows: Vec<i64> = merged(&place_among(&words, &near, &lookups(&LONG), None), &words)
            .iter()
            .map(|(row, _)| *row)
            .collect();
        assert_eq!(rows, [1, 2, 3, 4, 5, 20, 6, 30, 7, 40, 8, 41, 9, 21, 22, 23]);
    }

    #[test]
    fn near_copies_of_a_hit_by_words_stay_behind_it() {
        let mut words = words(&[1, 2, 3, 4], 0.3);
        (words[0].copies, words[2].original) = (1, Some(1));
        let near = near(&[(3, 7.0), (1, 6.9), (4, 5.0)]);
        assert_eq!(
            merged(&place_among(&words, &near, &lookups(&LONG), None), &words),
            [(1, 1), (4, 0), (2, 0), (3, 0)]
        );
    }

    #[test]
    fn hits_with_words_are_not_delayed_by_nearer_records() {
        let words = words(&[1, 2, 3, 4, 5, 6, 7, 8], 1.0);
        let near = near(&[(20, 8.0), (21, 7.0), (6, 6.0)]);
        let rows: Vec<i64> = merged(&place_among(&words, &near, &lookups(&LONG), None), &words)
            .iter()
            .map(|(row, _)| *row)
            .collect();
        assert_eq!(rows, [1, 2, 3, 4, 5, 6, 7, 20, 8, 21]);
    }

    proptest! {
        #[test]
        fn no_hit_is_lost_or_repeated(
            scores in prop::collection::vec(0_u8..4, 0..60),
            coverage in 0.0_f32..1.0,
            texts in prop::sample::subsequence(vec!["one", "two", "three", "four", "five", "2024"], 1..7),
            distances in prop::collection::vec((0_i64..120, 0_u8..18), 0..80),
            alike in prop::collection::vec(prop::option::of((0_u64..2, 0_u64..16)), 120),
        ) {
            let likeness = |row: i64| {
                let (connection, similarity) = alike[usize::try_from(row).unwrap()]?;
                Some(Likeness { connection, similarity })
            };
            let mut seen = HashSet::new();
            let mut distances: Vec<(i64, f32)> = distances
                .into_iter()
                .map(|(row, halves)| (row, f32::from(halves) / 2.0))
                .filter(|(row, _)| seen.insert(*row))
                .collect();
            distances.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            let scored = (0..).zip(&scores).map(|(row, score)| ScoredCandidate {
                row, score: f32::from(*score), coverage, stream: 1, likeness: likeness(row),
            });
            let words = arrange_by_likeness(scored.collect());
            let near = like(near(&distances), likeness);
            let list = merged(&place_among(&words, &near, &lookups(&texts), None), &words);
            let distinct: HashSet<i64> = list.iter().map(|(row, _)| *row).collect();
            prop_assert_eq!(distinct.len(), list.len());
            prop_assert!(words.iter().all(|hit| distinct.contains(&hit.row)));
            if coverage >= MIN_COVERAGE || texts.len() <= MAX_SHORT_QUERY_WORDS {
                let kept: Vec<i64> = words.iter().take(KEPT_FIRST).map(|hit| hit.row).collect();
                let first: Vec<i64> = list.iter().take(kept.len()).map(|(row, _)| *row).collect();
                prop_assert_eq!(first, kept);
            }
            // The folded copies of a hit follow after it.
            let original = |row: i64| words.iter().find(|hit| hit.row == row).map(|hit| hit.original);
            let is_alike = |one: i64, other: i64| match (likeness(one), likeness(other)) {
                (Some(one), Some(other)) => one.distance(other).is_some_and(|distance| distance <= 3),
                _ => false,
            };
            for (at, (row, copies)) in list.iter().enumerate() {
                let is_copy = |later: i64| match (original(*row), original(later)) {
                    (Some(_), Some(original)) => original == Some(*row),
                    (None, None) => is_alike(*row, later),
                    _ => false,
                };
                let later = list.iter().skip(at + 1).filter(|(later, _)| is_copy(*later)).count();
                match original(*row) {
                    Some(_) => prop_assert_eq!(later, *copies as usize, "{:?}", list),
                    None => prop_assert!(later >= *copies as usize, "{list:?}"),
                }
            }
            // Alone, all near records are in the list.
            let alone = merged(&place_all(&near, None), &[]);
            let rows: HashSet<i64> = alone.iter().map(|(row, _)| *row).collect();
            prop_assert_eq!((rows.len(), alone.len()), (distances.len(), distances.len()));
            let folded: u32 = alone.iter().map(|(_, copies)| copies).sum();
            prop_assert!(alone.is_empty() || (folded as usize) < alone.len());
        }
    }
}

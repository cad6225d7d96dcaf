//! Scores candidates by where they have the words of a query, and orders them.

use fetchwell_core::saturate::saturated;

use super::expansion::{Lookup, Lookups};
use super::ranking::{Neighbours, RankedQuery, RankedRecord, RankedWord, WEIGHTS};
use super::selection::{Likeness, ScoredCandidate, sort_by_score};
use super::terms::QueryTerms;
use super::words::WordKind;

/// Candidate with what its score and its place among others depend on.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Row id of the record.
    pub row: i64,
    /// Id of the stream.
    pub stream: u64,
    /// Likeness to other candidates; `None` if the index does not have it.
    pub likeness: Option<Likeness>,
    /// Counts of the words of the query in the record.
    pub record: RankedRecord,
}

/// Returns candidates with their scores, the best first.
pub fn score(terms: &QueryTerms, lookups: &Lookups, candidates: Vec<Evidence>) -> Vec<ScoredCandidate> {
    let query = ranked_query(terms, lookups);
    let scored = candidates.into_iter().map(|evidence| {
        let features = query.features(&evidence.record);
        ScoredCandidate {
            row: evidence.row,
            score: features.score(&WEIGHTS),
            coverage: features.coverage,
            stream: evidence.stream,
            likeness: evidence.likeness,
        }
    });
    let mut scored: Vec<ScoredCandidate> = scored.collect();
    sort_by_score(&mut scored);
    scored
}

/// Returns the query as the scorer sees it.
fn ranked_query(terms: &QueryTerms, lookups: &Lookups) -> RankedQuery {
    let word = |lookup: &Lookup| RankedWord {
        weight: lookup.weight,
        counts: lookup.kind != WordKind::Part && lookup.weight > 0.0,
    };
    let is_part = |slot: usize| lookups.words.get(slot).is_some_and(|word| word.kind == WordKind::Part);
    // A word in camel case is represented by its parts, which have the same places.
    let mut places = Vec::with_capacity(terms.places.len());
    for (at, place) in terms.places.iter().enumerate() {
        let next = terms.places.get(at + 1);
        let has_parts = next.is_some_and(|next| {
            next.position == place.position && is_part(next.slot) && !is_part(place.slot)
        });
        if !has_parts {
            places.push(place);
        }
    }
    let neighbours = places.iter().zip(places.iter().skip(1)).map(|(one, other)| Neighbours {
        first: one.slot,
        second: other.slot,
        gap: saturated::<u32>(other.position - one.position),
        in_unit: one.unit == other.unit,
    });
    RankedQuery { words: lookups.words.iter().map(word).collect(), neighbours: neighbours.collect() }
}

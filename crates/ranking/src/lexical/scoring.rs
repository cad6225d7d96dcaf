//! Scores candidates by where they have the words of a query, and orders them.
//!
//! A time that the query names is scored like a word that records of that time have, and a kind of records that it asks for
//! like a common word that records of such a stream have.

use fetchwell_core::saturate::saturated;

use super::expansion::{ADJACENT_QUALITY, Lookup, Lookups, SPELLING_QUALITY};
use super::explanation::RankingBreakdown;
use super::ranking::{Neighbours, RankedQuery, RankedRecord, RankedWord, WEIGHTS, WordMatches};
use super::selection::{Likeness, ScoredCandidate, sort_by_score};
use super::terms::{JoinedSlot, QueryTerms};
use super::words::WordKind;

/// Weight of the kind of records that a query asks for, beside its rarest word.
const KIND_WEIGHT: f32 = 0.15;

/// Weight of a time in a query that is about nothing else, beside its rarest word.
const LONE_TIME_WEIGHT: f32 = 2.0;

/// Number of occurrences that a record of the time or kind counts as.
const OCCURRENCES: f32 = 3.0;

/// Candidate with what its score and its place among others depend on.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Row id of the record.
    pub row: i64,
    /// Id of the stream.
    pub stream: u64,
    /// Second at which the record was written, if it is known and the query names a time.
    pub time: Option<i64>,
    /// Likeness to other candidates; `None` if the index does not have it.
    pub likeness: Option<Likeness>,
    /// Counts of the words of the query in the record.
    pub record: RankedRecord,
}

/// Returns candidates with their scores, the best first. `kind_streams` are the ids of the streams of the kinds that the query
/// asks for.
pub fn score(
    terms: &QueryTerms,
    lookups: &Lookups,
    candidates: Vec<Evidence>,
    kind_streams: &[u64],
) -> Vec<ScoredCandidate> {
    score_noting(terms, lookups, candidates, kind_streams, None)
}

/// Returns candidates with their scores as [`score`] does, and notes what they are made of.
pub fn score_noting(
    terms: &QueryTerms,
    lookups: &Lookups,
    candidates: Vec<Evidence>,
    kind_streams: &[u64],
    mut breakdown: Option<&mut RankingBreakdown>,
) -> Vec<ScoredCandidate> {
    let mut query = ranked_query(terms, lookups);
    let raises = Raises::new(terms, lookups, kind_streams);
    query.words.extend(raises.words());
    if let Some(breakdown) = &mut breakdown {
        breakdown.note_words(terms, lookups);
        breakdown.note_raises(raises.time, raises.kind);
    }
    let scored = candidates.into_iter().map(|mut evidence| {
        lower_joined_forms(lookups, &mut evidence.record);
        add_joined_matches(terms, &mut evidence.record);
        let coverage = lookups.coverage(&evidence.record.matches);
        evidence.record.matches.extend(raises.matches(&evidence));
        let features = query.features(&evidence.record);
        if let Some(breakdown) = &mut breakdown {
            breakdown.note_record(evidence.row, features, evidence.record.matches);
        }
        ScoredCandidate {
            row: evidence.row,
            score: features.score(&WEIGHTS),
            coverage,
            stream: evidence.stream,
            likeness: evidence.likeness,
        }
    });
    let mut scored: Vec<ScoredCandidate> = scored.collect();
    sort_by_score(&mut scored);
    scored
}

/// The time and the kind of records that a query asks for, each as a word that records have or lack.
#[derive(Debug)]
struct Raises<'a> {
    terms: &'a QueryTerms,
    kind_streams: &'a [u64],
    /// Weight of the time, 0 without one.
    time: f32,
    /// Weight of the kind, 0 without one.
    kind: f32,
}

impl<'a> Raises<'a> {
    fn new(terms: &'a QueryTerms, lookups: &Lookups, kind_streams: &'a [u64]) -> Self {
        // If no record has a word, nothing else is compared.
        let strongest = Some(lookups.strongest()).filter(|weight| *weight > 0.0).unwrap_or(1.0);
        let time = terms.dates.iter().map(|window| window.weight()).fold(0.0, f32::max);
        let time = if terms.has_matter { time } else { time * LONE_TIME_WEIGHT };
        let kind = if kind_streams.is_empty() { 0.0 } else { KIND_WEIGHT };
        Self { terms, kind_streams, time: time * strongest, kind: kind * strongest }
    }

    /// Returns the weights that are not 0, as words that a record may lack.
    fn words(&self) -> impl Iterator<Item = RankedWord> {
        let weights = [self.time, self.kind].into_iter().filter(|weight| *weight > 0.0);
        weights.map(|weight| RankedWord { weight, share: 1.0, counts: false })
    }

    /// Returns the matches of these words in a record.
    fn matches(&self, evidence: &Evidence) -> Vec<WordMatches> {
        let nearness =
            self.terms.dates.iter().map(|window| window.nearness(evidence.time)).fold(0.0, f32::max);
        let is_of_kind = if self.kind_streams.contains(&evidence.stream) { 1.0 } else { 0.0 };
        let matches = |quality: f32| WordMatches {
            frequency: quality * OCCURRENCES,
            quality,
            ..WordMatches::default()
        };
        let mut found = Vec::with_capacity(2);
        found.extend((self.time > 0.0).then(|| matches(nearness)));
        found.extend((self.kind > 0.0).then(|| matches(is_of_kind)));
        found
    }
}

/// Lowers the matches of words of which a record has only joined forms: `wi-fi` for `wifi`. Such a form is at two places.
fn lower_joined_forms(lookups: &Lookups, record: &mut RankedRecord) {
    for (lookup, matches) in lookups.words.iter().zip(&mut record.matches) {
        let mut pairs = matches.positions.chunks(2);
        let is_joined = !matches.positions.is_empty()
            && pairs.all(|pair| matches!(pair, [one, other] if one.checked_add(1) == Some(*other)));
        // Numbers have no joined form, and are often there twice.
        let may_be_joined = lookup.kind == WordKind::Spaced
            && lookup.alternatives.iter().any(|word| word.text.chars().any(char::is_alphabetic));
        if may_be_joined && is_joined {
            matches.frequency /= 2.0;
            matches.quality *= SPELLING_QUALITY;
            matches.title_quality *= SPELLING_QUALITY;
        }
    }
}

/// Adds the matches of identifiers, which are found by their underscores, and those of slots that stand for several words to
/// these words: a record with `wifi` has the words of `wi-fi`.
fn add_joined_matches(terms: &QueryTerms, record: &mut RankedRecord) {
    for joined in &terms.joined {
        if let Some(found) = identifier_matches(joined, record)
            && let Some(matches) = record.matches.get_mut(joined.slot)
        {
            *matches = found;
        }
        let JoinedSlot { slot, parts, offsets, is_certain, .. } = joined;
        let Some(joined) = record.matches.get(*slot).filter(|joined| joined.quality > 0.0).cloned() else {
            continue;
        };
        let quality = if *is_certain { SPELLING_QUALITY } else { ADJACENT_QUALITY };
        for (part, offset) in parts.iter().zip(offsets) {
            let Some(matches) = record.matches.get_mut(*part) else { continue };
            if matches.quality <= 0.0 {
                matches.frequency = joined.frequency * quality;
            }
            matches.quality = matches.quality.max(joined.quality * quality);
            matches.title_quality = matches.title_quality.max(joined.title_quality * quality);
            matches.positions.extend(joined.positions.iter().map(|at| at.saturating_add(saturated(*offset))));
            matches.positions.sort_unstable();
            matches.positions.dedup();
        }
    }
}

/// Returns the matches of an identifier with underscores in a record that has it; `None` for another slot or record.
fn identifier_matches(joined: &JoinedSlot, record: &RankedRecord) -> Option<WordMatches> {
    let positions = |slot: usize| record.matches.get(slot).map(|matches| matches.positions.as_slice());
    let underscores = positions(joined.underscore?)?;
    let mut places: Vec<(u32, &[u32])> = Vec::with_capacity(2 * joined.parts.len());
    for (number, (part, offset)) in joined.parts.iter().zip(&joined.offsets).enumerate() {
        let offset = saturated(*offset);
        places.push((offset, positions(*part)?));
        if number > 0 {
            // The one before the word.
            places.push((u32::checked_sub(offset, 1)?, underscores));
        }
    }
    // An underscore before or behind the words belongs to a longer identifier.
    let last = saturated::<u32>(joined.offsets.last().copied().unwrap_or_default());
    let has_underscore = |at: Option<u32>| at.is_some_and(|at| underscores.binary_search(&at).is_ok());
    let first = positions(*joined.parts.first()?)?.iter().copied();
    let is_whole = |at: &u32| !has_underscore(at.checked_sub(1)) && !has_underscore(at.checked_add(last));
    let first: Vec<u32> = first.filter(is_whole).collect();
    if let Some((_, positions)) = places.first_mut() {
        *positions = &first;
    }
    let mut found = WordMatches::default();
    found.add_sequence(&places, 1.0, record.title_words);
    (found.quality > 0.0).then_some(found)
}

/// Returns the query as the scorer sees it.
fn ranked_query(terms: &QueryTerms, lookups: &Lookups) -> RankedQuery {
    let word = |lookup: &Lookup| RankedWord {
        weight: lookup.ranked_weight(),
        share: lookup.share,
        counts: lookup.kind != WordKind::Part
            && lookup.is_word()
            && lookup.weight > 0.0
            && lookup.is_matter(),
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

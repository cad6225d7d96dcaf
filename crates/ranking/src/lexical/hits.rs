//! The hit of a matching record: its title, link, time and the passage that matched.

use fetchwell_core::record::{
    Evidence, Excerpt, Hit, HitId, Record, RecordData, Score, authored_at, fallback_title, own_link,
    own_title,
};

use super::expansion::Lookups;
use super::matching::{ExcerptTerms, MatchLocation, ScanAllowance, TextWords, locate_match};
use super::selection::Match;

/// Returns the words of the index that stand for words of a query, each with its importance.
pub fn excerpt_terms(lookups: &Lookups) -> ExcerptTerms {
    let mut terms = ExcerptTerms::default();
    for (slot, lookup) in lookups.words.iter().enumerate().filter(|(_, lookup)| lookup.selects()) {
        for alternative in &lookup.alternatives {
            terms.add(&alternative.text, slot, lookup.weight * alternative.quality);
        }
    }
    for sequence in &lookups.sequences {
        let weight = lookups.words.get(sequence.slot).map_or(0.0, |lookup| lookup.weight);
        terms.add_sequence(&sequence.words, sequence.slot, weight * sequence.quality);
    }
    terms
}

/// Returns the hit of a record. `passage` returns the passage of a record that was also found by meaning, which is shown
/// if the record has no word of the query. `known` has the words of the record.
pub fn hit_of(
    record: Record,
    known: Option<&TextWords>,
    found: &Match,
    terms: &ExcerptTerms,
    scan: &mut ScanAllowance,
    passage: Option<impl FnOnce(&RecordData) -> Option<Excerpt>>,
) -> Hit {
    let location = locate_match(&record.data, known, terms, scan);
    let passage = passage.filter(|_| location.fields.is_empty() && location.title_match.is_none());
    let by_meaning = passage.is_some();
    let passage = passage.and_then(|passage| passage(&record.data));
    let hit = located(record, found, location);
    Hit { by_meaning, excerpt: passage.unwrap_or(hit.excerpt), ..hit }
}

/// Returns the hit of a record with the place of its match.
pub(super) fn located(record: Record, found: &Match, location: MatchLocation) -> Hit {
    let Record { address, data, emitted_at, display_name, .. } = record;
    let when = authored_at(&data).or(emitted_at.as_deref());
    let fallback = || fallback_title(display_name.as_deref(), Some(address.stream.as_str()), when);
    let MatchLocation { excerpt, field, fields, title_match, .. } = location;
    let time = when.map(str::to_owned);
    let title = own_title(&data).map_or_else(fallback, str::to_owned);
    Hit {
        evidence: Evidence {
            emitted_at,
            matched_fields: fields,
            excerpt_field: field,
            title_match,
            score: Score::new(found.score),
        },
        title,
        link: own_link(&data),
        record_url: None,
        excerpt,
        time,
        account: display_name,
        by_meaning: false,
        near_copies: found.copies,
        coverage: found.known_coverage(),
        explanation: None,
        id: HitId::Record(address),
    }
}

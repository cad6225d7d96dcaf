//! Reads the hits of matches from SQLite: title, link, time and the passage that matched.

use rusqlite::Connection;

use super::expansion::Lookups;
use super::matching::{ExcerptTerms, MatchLocation, locate_match};
use super::meaning::{Placed, Placements};
use super::selection::Match;
use crate::record::{
    Evidence, Excerpt, Hit, HitId, Record, RecordData, Score, authored_at, document_text, fallback_title,
    own_link, own_title,
};
use crate::source::store::read::allowance::Allowance;
use crate::source::store::read::rows::{RECORD_COLUMNS, RECORD_TABLES, record_of};

/// Returns the words of the index that stand for words of a query, each with its importance.
pub(super) fn excerpt_terms(lookups: &Lookups) -> ExcerptTerms {
    let mut terms = ExcerptTerms::default();
    for (slot, lookup) in lookups.words.iter().enumerate() {
        for alternative in &lookup.alternatives {
            terms.add(&alternative.text, slot, lookup.weight * alternative.quality);
        }
    }
    terms
}

/// Maximum length of a passage that only its meaning matches, in bytes.
const PASSAGE_BYTES: usize = 800;

/// Reads the hits of some matches, in their order. A record that was deleted in the meantime is left out. A placed record
/// without a word of the query has the passage that is nearest to the query.
pub(super) fn read_hits(
    sqlite: &Connection,
    matches: &[Match],
    terms: &ExcerptTerms,
    placements: &Placements,
    allowance: &Allowance,
) -> Result<Vec<Hit>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached(&format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.id = ?1"))?;
    let mut hits = Vec::with_capacity(matches.len());
    for Match { row, score, copies, .. } in matches {
        // Only the hit is kept, and the record is dropped.
        allowance.clear();
        let record =
            statement.query_map([row], |row| record_of(row, allowance))?.next().transpose()?.flatten();
        if let Some(Record { address, data, emitted_at, display_name, .. }) = record {
            let when = authored_at(&data).or(emitted_at.as_deref());
            let fallback = || fallback_title(display_name.as_deref(), Some(address.stream.as_str()), when);
            let MatchLocation { excerpt, field, fields, title_match } = locate_match(&data, terms);
            let placed = placements.iter().find(|placed| placed.row == *row);
            let placed = placed.filter(|_| fields.is_empty() && title_match.is_none());
            let excerpt = placed.and_then(|placed| passage_of(&data, placed)).unwrap_or(excerpt);
            let time = when.map(str::to_owned);
            let title = own_title(&data).map_or_else(fallback, str::to_owned);
            hits.push(Hit {
                evidence: Evidence {
                    emitted_at,
                    matched_fields: fields,
                    excerpt_field: field,
                    title_match,
                    score: Score::new(*score),
                },
                title,
                link: own_link(&data),
                excerpt,
                time,
                account: display_name,
                by_meaning: placed.is_some(),
                near_copies: *copies,
                id: HitId::Record(address),
            });
        }
    }
    Ok(hits)
}

/// Returns the passage of a record that is nearest to the query, unless the record has become shorter.
fn passage_of(data: &RecordData, placed: &Placed) -> Option<Excerpt> {
    let text = document_text(data);
    let range = usize::try_from(placed.first_byte).ok()?..usize::try_from(placed.end_byte).ok()?;
    let passage = text.get(range)?;
    let passage = passage.get(..passage.floor_char_boundary(PASSAGE_BYTES))?;
    Some(Excerpt::new(passage, 0..0))
}

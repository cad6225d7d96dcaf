//! Reads the hits of matches from SQLite: title, link, time and the passage that matched.

use std::collections::HashMap;

use fetchwell_core::record::{Hit, RecordData};
use fetchwell_ranking::lexical::explanation::RankingBreakdown;
use fetchwell_ranking::lexical::hits::hit_of;
use fetchwell_ranking::lexical::matching::{ExcerptTerms, ScanAllowance};
use fetchwell_ranking::lexical::selection::Match;
use fetchwell_ranking::meaning::{Placements, passage_of};
use fetchwell_ranking::relational::allowance::Allowance;
use rusqlite::{Connection, OptionalExtension};

use crate::read::rows::{RECORD_COLUMNS, RECORD_TABLES, record_of};

/// Reads the hits of some matches, in their order. A record that was deleted in the meantime is left out. A placed record
/// without a word of the query has the passage that is nearest to the query. Hits are explained by a breakdown.
pub(super) fn read_hits(
    sqlite: &Connection,
    matches: &[Match],
    terms: &ExcerptTerms,
    placements: &Placements,
    breakdown: Option<&RankingBreakdown>,
    allowance: &Allowance,
) -> Result<Vec<Hit>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached(&format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.id = ?1"))?;
    let mut hits = Vec::with_capacity(matches.len());
    let mut scan = ScanAllowance::default();
    for found in matches {
        let row = &found.row;
        // Only the hit is kept, and the record is dropped.
        allowance.clear();
        let record =
            statement.query_map([row], |row| record_of(row, allowance))?.next().transpose()?.flatten();
        if let Some(record) = record {
            let placed = placements.iter().find(|placed| placed.row == *row);
            let explanation =
                breakdown.map(|known| Box::new(known.explain(found, &record.data, terms, placed.is_some())));
            let passage = placed.map(|placed| |data: &RecordData| passage_of(data, placed));
            hits.push(Hit { explanation, ..hit_of(record, found, terms, &mut scan, passage) });
        }
    }
    Ok(hits)
}

/// Maximum length in bytes of a record that is compared with others.
const MAX_COMPARED_BYTES: usize = 32 * 1024;

/// Maximum length in bytes of all records that are compared for a search, which takes a few milliseconds.
const MAX_ALL_COMPARED_BYTES: usize = 256 * 1024;

/// Reads the records of some rows, to compare their texts. Long records and those that were deleted are left out.
pub(super) fn compared_texts(
    sqlite: &Connection,
    rows: &[i64],
) -> Result<HashMap<i64, RecordData>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached("SELECT data FROM records WHERE id = ?1 AND octet_length(data) <= ?2")?;
    let mut texts = HashMap::new();
    let mut left = MAX_ALL_COMPARED_BYTES;
    for row in rows {
        let max_bytes = i64::try_from(left.min(MAX_COMPARED_BYTES)).unwrap_or(0);
        let data: Option<String> = statement.query_row((row, max_bytes), |row| row.get(0)).optional()?;
        if let Some(data) = data {
            left = left.saturating_sub(data.len());
            texts.extend(serde_json::from_str(&data).ok().map(|data| (*row, data)));
        }
    }
    Ok(texts)
}

//! Reads the hits of matches from SQLite: title, link, time and the passage that matched.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use fetchwell_core::record::{Hit, RecordData};
use fetchwell_ranking::lexical::explanation::RankingBreakdown;
use fetchwell_ranking::lexical::hits::hit_of;
use fetchwell_ranking::lexical::matching::{ExcerptTerms, ScanAllowance, TextWords};
use fetchwell_ranking::lexical::selection::{Match, NearText};
use fetchwell_ranking::lexical::text_cache::{CachedText, TextCache, TextForm, TextKey};
use fetchwell_ranking::meaning::{Placements, passage_of};
use fetchwell_ranking::relational::allowance::Allowance;
use rusqlite::Connection;

use crate::read::rows::{RECORD_COLUMNS, RECORD_TABLES, json_of, record_of};

/// Reads the hits of some matches, in their order. A record that was deleted in the meantime is left out. A placed record
/// without a word of the query has the passage that is nearest to the query. Hits are explained by a breakdown. `store` is the
/// number of the store in this process.
pub(super) fn read_hits(
    sqlite: &Connection,
    store: u64,
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
        let row = found.row;
        // Only the hit is kept, and the record is dropped.
        allowance.clear();
        let mut rows = statement.query([row])?;
        let Some(columns) = rows.next()? else { continue };
        let Some(record) = record_of(columns, allowance)? else { continue };
        let words = words_of((store, row), json_of(columns)?, &record.data);
        let placed = placements.iter().find(|placed| placed.row == row);
        let explanation =
            breakdown.map(|known| Box::new(known.explain(found, &record.data, terms, placed.is_some())));
        let passage = placed.map(|placed| |data: &RecordData| passage_of(data, placed));
        let words = words.as_deref().map(CachedText::form);
        hits.push(Hit { explanation, ..hit_of(record, words, found, terms, &mut scan, passage) });
    }
    Ok(hits)
}

/// Maximum bytes of the words that are kept for the next searches, over all stores.
const MAX_WORD_BYTES: usize = 3 * 512 * 1024;

static WORDS: LazyLock<TextCache<TextWords>> = LazyLock::new(|| TextCache::new(MAX_WORD_BYTES));

/// Returns the words of a record, found before or now; `None` for a long record.
fn words_of(key: TextKey, json: &str, data: &RecordData) -> Option<Arc<CachedText<TextWords>>> {
    let is_short = json.len() <= TextWords::MAX_RECORD_BYTES;
    is_short.then(|| WORDS.get_or_make(key, json, || Some(TextWords::from_record(data)))).flatten()
}

/// Maximum length in bytes of a record that is compared with others.
const MAX_COMPARED_BYTES: usize = 32 * 1024;

/// Maximum length in bytes of all records that are compared for a search, which takes a few milliseconds.
const MAX_ALL_COMPARED_BYTES: usize = 256 * 1024;

/// Maximum bytes of the compared texts that are kept for the next searches, over all stores.
const MAX_KEPT_BYTES: usize = 5 * 512 * 1024;

static COMPARED: LazyLock<TextCache<NearText>> = LazyLock::new(|| TextCache::new(MAX_KEPT_BYTES));

/// Reads the texts of some rows, to compare them. Long records and those that were deleted are left out. `store` is the number of
/// the store in this process.
pub(super) fn compared_texts(
    sqlite: &Connection,
    store: u64,
    rows: &[i64],
) -> Result<HashMap<i64, Arc<CachedText<NearText>>>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached("SELECT data FROM records WHERE id = ?1 AND octet_length(data) <= ?2")?;
    let mut texts = HashMap::with_capacity(rows.len());
    let mut left = MAX_ALL_COMPARED_BYTES;
    for row in rows {
        let max_bytes = i64::try_from(left.min(MAX_COMPARED_BYTES)).unwrap_or(0);
        let mut found = statement.query((row, max_bytes))?;
        if let Some(data) = found.next()? {
            let json = data.get_ref(0)?.as_str()?;
            left = left.saturating_sub(json.len());
            texts.extend(COMPARED.get_or_read((store, *row), json).map(|text| (*row, text)));
        }
    }
    Ok(texts)
}

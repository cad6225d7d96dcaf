//! The chunks of the documents that a search ranked.
//!
//! A document is ranked as a record, by its words and its vectors. Its chunks are then compared by the share of the query's
//! words that each has, and by the passage that is nearest in meaning. The best chunk has the score of its document.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension};

use crate::record::{RecordData, document_text};
use crate::source::documents::{Candidate, TEXT_FIELD, Uuid, leading_headings};
use crate::source::lexical::matching::ExcerptTerms;
use crate::source::relational::allowance::Allowance;
use crate::source::store::fulltext::{RankedRecord, RankedRecords};
use crate::source::store::read::rows::{length_at, name};

/// Maximum number of chunks of one document among the candidates.
const MAX_CHUNKS_OF_DOCUMENT: usize = 3;

/// Minimum share of the best chunk of a document that another one of it must have.
const MIN_SHARE: f32 = 0.5;

/// Part of a document's score that its further chunks have at least.
const BASE_SHARE: f32 = 0.7;

/// Gain of the chunk that is nearest to the query in meaning.
const NEAREST_GAIN: f32 = 0.5;

/// Share of the score before it that a document has that was found by meaning alone.
const MEANING_STEP: f32 = 0.99;

/// Maximum bytes of one document that are divided into compared chunks. Chunks behind them are candidates only by meaning.
const MAX_SCANNED_BYTES: usize = 512 * 1024;

/// A chunk as the search compares it.
struct ScannedChunk {
    id: Uuid,
    range: Range<usize>,
    headings: String,
}

/// Returns the best chunks of ranked documents, at most `depth`, the best first.
pub(in crate::source::store) fn chunks_of(
    sqlite: &Connection,
    ranked: &RankedRecords,
    depth: usize,
    allowance: &Allowance,
) -> Result<Vec<Candidate>, rusqlite::Error> {
    let mut candidates = Vec::new();
    let mut score = 1.0_f32;
    for record in &ranked.records {
        // Hits by meaning are among hits by words, and near-copies behind others: the list decides, not the score.
        score = record.score.map_or(score * MEANING_STEP, |own| own.min(score));
        allowance.clear();
        let shares = document_chunks(sqlite, record, &ranked.words, allowance)?;
        let best = shares.first().map_or(0.0, |(_, share)| *share);
        for (chunk, share) in shares.into_iter().take(MAX_CHUNKS_OF_DOCUMENT) {
            let relative = if best > 0.0 { share / best } else { 1.0 };
            if relative >= MIN_SHARE {
                let score = score * (BASE_SHARE + (1.0 - BASE_SHARE) * relative);
                candidates.push(Candidate { chunk, score });
            }
            if best <= 0.0 {
                break;
            }
        }
    }
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    candidates.truncate(depth);
    Ok(candidates)
}

/// Returns the chunks of a document with their shares, the best first. None if it was deleted or changed meanwhile.
fn document_chunks(
    sqlite: &Connection,
    record: &RankedRecord,
    words: &ExcerptTerms,
    allowance: &Allowance,
) -> Result<Vec<(Uuid, f32)>, rusqlite::Error> {
    let mut find = sqlite.prepare_cached(
        "SELECT d.id, r.data, octet_length(r.data) FROM documents d JOIN records r ON r.id = d.record
         WHERE d.record = ?1 AND r.data IS NOT NULL",
    )?;
    let found = find
        .query_row([record.row], |row| {
            if !allowance.take(length_at(row, 2)?) {
                return Ok(None);
            }
            let data = serde_json::from_str::<RecordData>(row.get_ref(1)?.as_str()?).ok();
            Ok(data.map(|data| row.get::<_, String>(0).map(|id| (id, data))))
        })
        .optional()?;
    let Some((id, data)) = found.flatten().transpose()? else { return Ok(Vec::new()) };
    let text = data.get(TEXT_FIELD).and_then(|text| text.as_str()).unwrap_or_default();
    let passage = record.passage.clone().map(|passage| within_text(&data, text, &passage));
    let mut shares: Vec<(Uuid, f32)> = Vec::new();
    for ScannedChunk { id, range, headings } in scanned_chunks(sqlite, &id)? {
        let part = text.get(range.clone()).filter(|_| range.end <= MAX_SCANNED_BYTES);
        let is_nearest = passage.as_ref().is_some_and(|passage| {
            // The middle of a passage is in one chunk.
            range.contains(&usize::midpoint(passage.start, passage.end))
        });
        let gain = if is_nearest { NEAREST_GAIN } else { 0.0 };
        // The headings at its start are compared as headings.
        let below = part.map(|part| part.strip_prefix(leading_headings(part)).unwrap_or(part));
        shares.push((id, below.map_or(0.0, |below| words.share_of(below, &headings)) + gain));
    }
    // Equal chunks stay in the order of the text.
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(shares)
}

/// Converts a range of the whole text of a record to one of its field `text`, which is the last one in it.
fn within_text(data: &RecordData, text: &str, passage: &Range<usize>) -> Range<usize> {
    let before = document_text(data).len().saturating_sub(text.len());
    let last = text.len().saturating_sub(1);
    passage.start.saturating_sub(before).min(last)..passage.end.saturating_sub(before).min(text.len())
}

fn scanned_chunks(sqlite: &Connection, document: &str) -> Result<Vec<ScannedChunk>, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT id, first_byte, end_byte, metadata ->> '$.heading_path' FROM chunk_ranges
         WHERE document_id = ?1 ORDER BY chunk_index",
    )?;
    let rows = statement.query_map([document], |row| {
        let (start, end) = (length_at(row, 1)?, length_at(row, 2)?);
        let headings = row.get::<_, Option<String>>(3)?.unwrap_or_default();
        Ok(name(row, 0)?.map(|id| ScannedChunk { id, range: start..end, headings }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

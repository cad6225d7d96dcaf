//! The chunks of the documents that a search ranked, read for their comparison.

use std::ops::Range;

use fetchwell_core::record::{RecordData, document_text};
use fetchwell_ranking::chunk_ranking::{ChunkRanking, ChunkShares, ComparedChunk, MAX_SCANNED_BYTES};
use fetchwell_ranking::lexical::matching::ExcerptTerms;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_source::documents::{Candidate, TEXT_FIELD, Uuid};
use rusqlite::{Connection, OptionalExtension};

use crate::fulltext::{RankedRecord, RankedRecords};
use crate::read::rows::{length_at, name};

/// A chunk as the search compares it.
struct ScannedChunk {
    id: Uuid,
    range: Range<usize>,
    headings: String,
}

/// Returns the best chunks of ranked documents, at most `depth`, the best first.
pub(crate) fn chunks_of(
    sqlite: &Connection,
    ranked: &RankedRecords,
    depth: usize,
    allowance: &Allowance,
) -> Result<Vec<Candidate>, rusqlite::Error> {
    let mut ranking = ChunkRanking::default();
    for record in &ranked.records {
        allowance.clear();
        ranking.add(record.score, document_chunks(sqlite, record, &ranked.words, allowance)?);
    }
    Ok(ranking.best(depth))
}

/// Returns the chunks of a document with their shares. None if it was deleted or changed meanwhile.
fn document_chunks(
    sqlite: &Connection,
    record: &RankedRecord,
    words: &ExcerptTerms,
    allowance: &Allowance,
) -> Result<ChunkShares, rusqlite::Error> {
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
    let mut shares = ChunkShares::new();
    for ScannedChunk { id, range, headings } in scanned_chunks(sqlite, &id)? {
        let part = text.get(range.clone()).filter(|_| range.end <= MAX_SCANNED_BYTES);
        let is_nearest = passage.as_ref().is_some_and(|passage| {
            // The middle of a passage is in one chunk.
            range.contains(&usize::midpoint(passage.start, passage.end))
        });
        let chunk = ComparedChunk { text: part, headings: &headings, is_nearest };
        shares.push((id, chunk.share(words)));
    }
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

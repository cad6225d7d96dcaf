//! The passages of documents that a search over all connections found by meaning.

use std::collections::HashMap;

use fetchwell_core::record::{Hit, HitId};
use fetchwell_ranking::meaning::passage_from;
use fetchwell_source::SourceError;
use fetchwell_source::documents::{DOCUMENTS_STREAM, Uuid};

use crate::tables::{PostgresTables, text};
use crate::vectors::nearest::NearestChunks;

/// Replaces the excerpts of documents that were found by meaning alone with their nearest chunks. Chunks have places in the
/// text of the document, not in that of its record, so their texts are read here.
pub(super) fn show_passages(
    tables: &PostgresTables<'_>,
    hits: &mut [Hit],
    chunks: &NearestChunks,
) -> Result<(), SourceError> {
    let chunk_of = |hit: &Hit| match &hit.id {
        HitId::Record(address) if hit.by_meaning && address.stream.as_str() == DOCUMENTS_STREAM => {
            chunks.get(address.record.as_str()).map(Uuid::to_string)
        }
        _ => None,
    };
    let shown: Vec<String> = hits.iter().filter_map(chunk_of).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let sql = "SELECT id::text, content FROM fetchwell.chunks WHERE id = ANY ($1::text[]::uuid[])";
    let rows = tables.queries.query(sql, &[&shown])?;
    let passages: HashMap<&str, &str> = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
    for hit in hits {
        if let Some(passage) = chunk_of(hit).and_then(|id| passages.get(id.as_str()).copied()) {
            hit.excerpt = passage_from(passage);
        }
    }
    Ok(())
}

//! The documents of projects that are nearest to a query, in searches over all connections.
//!
//! The vectors of documents are in the table of chunks, not in those of the generations of records.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::chunk_search::{ChunkSearch, ScopeNearest};
use crate::record::{Hit, HitId};
use crate::source::SourceError;
use crate::source::documents::{DOCUMENTS_STREAM, Uuid};
use crate::source::meaning::passage_from;
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::search::candidates::Conditions;
use crate::source::postgres::search::scope::Scope;
use crate::source::postgres::tables::{PostgresTables, text};

/// The nearest chunk of each found document, by the key of its record.
pub(super) type NearestChunks = HashMap<String, Uuid>;

/// One search of the vectors of documents.
pub(super) struct DocumentSearch<'s> {
    /// Labels of the vectors of the query's model.
    pub(super) labels: &'s [String],
    /// Vector of the query.
    pub(super) vector: &'s [f32],
    /// Maximum number of documents.
    pub(super) limit: usize,
    pub(super) scope: &'s Scope,
    pub(super) conditions: &'s Conditions,
}

/// Streams of documents in scope with their projects.
struct DocumentStreams {
    streams: Vec<i64>,
    projects: Vec<String>,
}

impl DocumentSearch<'_> {
    /// Returns the nearest documents in scope that meet the conditions, with their nearest chunks.
    pub(super) fn nearest(
        &self,
        tables: &PostgresTables<'_>,
    ) -> Result<(ScopeNearest, NearestChunks), SourceError> {
        let streams = self.streams(tables)?;
        if streams.streams.is_empty() || self.labels.is_empty() {
            return Ok((ScopeNearest::default(), NearestChunks::new()));
        }
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&streams.streams, &streams.projects, &self.labels];
        let record = "t.stream = ANY ($1) AND t.key = c.document_id::text";
        let conditions = self.conditions.of_chunks(record, &mut values);
        let search = ChunkSearch {
            table: "fetchwell.chunks c".to_owned(),
            columns: "c.document_id AS item, c.chunk_index AS place, c.id AS more",
            // Ids are random.
            sampled_by: "c.id",
            record: "t.stream = ANY ($1) AND t.key = b.item::text",
            shown: "t.key, b.more::text",
            // The server needs to know the type of each value, so the scope uses the streams.
            scope: format!(
                "cardinality($1::bigint[]) > 0 AND c.project_id = ANY ($2::text[]::uuid[])
                 AND c.metadata ->> 'embedding' = ANY ($3){conditions}"
            ),
            distance: format!("c.embedding <=> ${}::vector", values.len() + 1),
            values,
            vector: SqlVector(self.vector),
            limit: self.limit,
        };
        // Chunks have places in the text of the document, not in that of its record.
        let (rows, found) = search.nearest(tables, true, |_row| [0, 0])?;
        let chunk = |row: &Row| Some((text(row, 1).to_owned(), text(row, 2).parse().ok()?));
        Ok((found, rows.iter().filter_map(chunk).collect()))
    }

    /// Returns the streams of documents in scope.
    fn streams(&self, tables: &PostgresTables<'_>) -> Result<DocumentStreams, SourceError> {
        let sql = "SELECT s.id, p.id::text FROM fetchwell.projects p
             JOIN fetchwell.connections n ON n.connection_id = p.slug JOIN fetchwell.streams s ON s.connection = n.id
             WHERE s.name = $1 AND ($2::bigint[] IS NULL OR s.id = ANY ($2))";
        let rows = tables.query(sql, &[&DOCUMENTS_STREAM, &self.scope.streams])?;
        Ok(DocumentStreams {
            streams: rows.iter().map(|row| row.try_get(0).unwrap_or_default()).collect(),
            projects: rows.iter().map(|row| text(row, 1).to_owned()).collect(),
        })
    }
}

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
    let rows = tables.query(sql, &[&shown])?;
    let passages: HashMap<&str, &str> = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
    for hit in hits {
        if let Some(passage) = chunk_of(hit).and_then(|id| passages.get(id.as_str()).copied()) {
            hit.excerpt = passage_from(passage);
        }
    }
    Ok(())
}

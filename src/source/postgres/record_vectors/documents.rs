//! The documents of projects that are nearest to a query, in searches over all connections.
//!
//! The vectors of documents are in the table of chunks, not in those of the generations of records. A scope of few chunks
//! is scanned exactly. In a larger one the index is queried, as for records.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::found::{Found, NEAREST, SAMPLED};
use crate::record::{Hit, HitId};
use crate::source::SourceError;
use crate::source::documents::{DOCUMENTS_STREAM, Uuid};
use crate::source::lexical::selection::Likeness;
use crate::source::meaning::{NearestHit, NearestRecords, ScoreSpread, VectorHit, passage_from};
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::search::candidates::Conditions;
use crate::source::postgres::search::scope::Scope;
use crate::source::postgres::search::tsquery::TextQuery;
use crate::source::postgres::tables::{PostgresTables, text};
use crate::source::postgres::vectors::nearest::{INDEX_SETTINGS, MIN_INDEXED, single, spread};

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
    pub(super) fn nearest(&self, tables: &PostgresTables<'_>) -> Result<(Found, NearestChunks), SourceError> {
        let streams = self.streams(tables)?;
        if streams.streams.is_empty() || self.labels.is_empty() {
            return Ok((Found::default(), NearestChunks::new()));
        }
        let (scope, mut values) = self.in_scope(&streams);
        let count = format!(
            "SELECT count(*) FROM (SELECT 1 FROM fetchwell.chunks c WHERE {scope} LIMIT {MIN_INDEXED}) s"
        );
        let count = tables.query(&count, &values)?;
        let count: i64 = count.first().map(|row| row.try_get(0).unwrap_or_default()).unwrap_or_default();
        let vector = SqlVector(self.vector);
        values.push(&vector);
        let (rows, records) = if count < MIN_INDEXED {
            self.exact(tables, &scope, &values)?
        } else {
            self.indexed(tables, &scope, &values)?
        };
        let chunk = |row: &Row| Some((text(row, 1).to_owned(), text(row, 2).parse().ok()?));
        let chunks = rows.iter().filter_map(chunk).collect();
        Ok((Found { records, chunks: count }, chunks))
    }

    /// Scans all chunks in scope.
    fn exact(
        &self,
        tables: &PostgresTables<'_>,
        scope: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(Vec<Row>, NearestRecords), SourceError> {
        let scored = format!(
            "SELECT c.id, c.document_id, c.chunk_index, 1 - ({}) AS score FROM fetchwell.chunks c WHERE {scope}",
            distance(values)
        );
        let rows = tables.query(&self.best(&scored), values)?;
        let spread = rows.first().map(|row| spread(row, 7)).unwrap_or_default();
        let records = self.documents(&rows, spread, false);
        Ok((rows, records))
    }

    /// Reads the nearest chunks from the index. Estimates the spread of all scores from a sample, the chunks with the first
    /// ids, which are random.
    fn indexed(
        &self,
        tables: &PostgresTables<'_>,
        scope: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(Vec<Row>, NearestRecords), SourceError> {
        let (chunks, distance) = (NEAREST.max(self.limit), distance(values));
        let scored = format!(
            "SELECT id, document_id, chunk_index, 1 - distance AS score FROM (
                 SELECT c.id, c.document_id, c.chunk_index, {distance} AS distance FROM fetchwell.chunks c
                 WHERE {scope} ORDER BY {distance} LIMIT {chunks}) near"
        );
        tables.execute(INDEX_SETTINGS)?;
        let rows = tables.query(&self.best(&scored), values)?;
        tables.execute("SET LOCAL enable_sort = on")?;
        let sample = format!(
            "SELECT avg(score), stddev_pop(score) FROM (SELECT 1 - ({distance}) AS score FROM fetchwell.chunks c
             WHERE {scope} ORDER BY c.id LIMIT {SAMPLED}) s"
        );
        let sample = tables.query(&sample, values)?;
        let spread = sample.first().map(|row| spread(row, 0)).unwrap_or_default();
        let read: i64 = rows.first().map(|row| row.try_get(6).unwrap_or_default()).unwrap_or_default();
        let is_cut = usize::try_from(read).is_ok_and(|read| read >= chunks);
        let records = self.documents(&rows, spread, is_cut);
        Ok((rows, records))
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

    /// Returns the condition of the chunks `c` in scope, and its values from `$1` on. The first one is the streams.
    fn in_scope<'v>(&'v self, streams: &'v DocumentStreams) -> (String, Vec<&'v (dyn ToSql + Sync)>) {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&streams.streams, &streams.projects, &self.labels];
        // The server needs to know the type of each value, so every condition uses the streams.
        let mut sql = "cardinality($1::bigint[]) > 0 AND c.project_id = ANY ($2::text[]::uuid[])
             AND c.metadata ->> 'embedding' = ANY ($3)"
            .to_owned();
        let Conditions { constraints, after, before } = self.conditions;
        if constraints.is_none() && after.is_none() && before.is_none() {
            return (sql, values);
        }
        values.push(after);
        values.push(before);
        let words = match constraints {
            Some(TextQuery(query)) => {
                values.push(query);
                " AND t.words @@ CAST($6::text AS tsquery)"
            }
            None => "",
        };
        sql.push_str(&format!(
            " AND EXISTS (SELECT 1 FROM fetchwell.texts t WHERE t.stream = ANY ($1) AND t.key = c.document_id::text{}{words})",
            self.conditions.sql(3)
        ));
        (sql, values)
    }

    /// Returns the query that selects the best of the scored chunks of each document.
    fn best(&self, scored: &str) -> String {
        format!(
            "WITH scored AS MATERIALIZED ({scored}),
             best AS (SELECT DISTINCT ON (document_id) document_id, id, score FROM scored
                 ORDER BY document_id, score DESC, chunk_index)
             SELECT t.id, t.key, b.id::text, b.score, t.similarity, s.connection,
                 (SELECT count(*) FROM scored), (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
             FROM best b JOIN fetchwell.texts t ON t.stream = ANY ($1) AND t.key = b.document_id::text
             JOIN fetchwell.streams s ON s.id = t.stream
             ORDER BY b.score DESC, t.id LIMIT {}",
            self.limit
        )
    }

    fn documents(&self, rows: &[Row], spread: ScoreSpread, is_cut: bool) -> NearestRecords {
        let number = |row: &Row, column: usize| row.try_get::<_, i64>(column).unwrap_or_default();
        let hit = |row: &Row| NearestHit {
            hit: VectorHit {
                record: number(row, 0),
                score: single(row.try_get(3).unwrap_or_default()),
                first_byte: 0,
                end_byte: 0,
            },
            likeness: Some(Likeness {
                connection: number(row, 5).unsigned_abs(),
                similarity: number(row, 4).cast_unsigned(),
            }),
        };
        let hits: Vec<NearestHit> = rows.iter().map(hit).collect();
        NearestRecords { is_cut: is_cut || hits.len() >= self.limit, spread, hits }
    }
}

/// Returns the SQL distance of a chunk `c` from the query vector, the last value.
fn distance(values: &[&(dyn ToSql + Sync)]) -> String {
    format!("c.embedding <=> ${}::vector", values.len())
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

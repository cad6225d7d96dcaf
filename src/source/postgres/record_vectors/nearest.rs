//! The records that are nearest to a query, including documents of projects.
//!
//! Connection, streams and operators are part of the query of the vectors, so they do not reduce the number of hits. A scope of
//! few chunks is scanned exactly. In a larger one the HNSW index is queried with settings that found as much as the scan in
//! measurements with difficult vectors, and its chunks are ordered again by their exact distances.

use std::cell::RefCell;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::documents::{DocumentSearch, NearestChunks};
use super::found::{Found, NEAREST, SAMPLED};
use super::generations::{Generation, VectorColumn};
use crate::embedding::QueryVector;
use crate::source::SourceError;
use crate::source::lexical::selection::Likeness;
use crate::source::meaning::{MAX_PLACED, NearestHit, NearestRecords, ScoreSpread, VectorHit};
use crate::source::postgres::extension::USE_EXTENSION;
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::search::candidates::Conditions;
use crate::source::postgres::search::run::NearestReader;
use crate::source::postgres::search::scope::Scope;
use crate::source::postgres::search::tsquery::TextQuery;
use crate::source::postgres::tables::PostgresTables;
use crate::source::postgres::vectors::nearest::{INDEX_SETTINGS, MIN_INDEXED, single, spread};

/// Maximum number of records if a filter is evaluated after the search.
const DEEP: usize = 1_000;

/// Vectors that are compared with a query.
#[derive(Debug, Clone)]
pub(super) struct NearestVectors {
    /// Vectors of records, if there are any.
    pub(super) generation: Option<Generation>,
    /// Labels of the vectors of documents.
    pub(super) labels: Vec<String>,
    /// Vector of the query.
    pub(super) vector: QueryVector,
    /// True if records are found by meaning alone, and not by words.
    pub(super) is_alone: bool,
    /// True if a filter is evaluated after the search.
    pub(super) is_deep: bool,
}

/// Reader of the records that are nearest to the query of one search.
#[derive(Debug)]
pub(super) struct VectorReader<'v> {
    vectors: &'v NearestVectors,
    /// Nearest chunks of the documents that were found.
    chunks: RefCell<NearestChunks>,
}

impl<'v> VectorReader<'v> {
    pub(super) fn new(vectors: &'v NearestVectors) -> Self {
        Self { vectors, chunks: RefCell::default() }
    }

    /// Returns the nearest chunks of the documents that were found.
    pub(super) fn into_chunks(self) -> NearestChunks {
        self.chunks.into_inner()
    }
}

impl NearestReader for VectorReader<'_> {
    fn is_alone(&self) -> bool {
        self.vectors.is_alone
    }

    fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        scope: &Scope,
        conditions: &Conditions,
    ) -> Result<NearestRecords, SourceError> {
        tables.query(USE_EXTENSION, &[])?;
        let NearestVectors { generation, labels, vector, is_deep, .. } = self.vectors;
        let (vector, limit) = (&*vector.numbers, if *is_deep { DEEP } else { MAX_PLACED });
        let records = match generation {
            Some(generation) => {
                let vector = SqlVector(vector);
                VectorSearch { generation, vector, limit, scope, conditions }.nearest(tables)?
            }
            None => Found::default(),
        };
        let (documents, chunks) =
            DocumentSearch { labels, vector, limit, scope, conditions }.nearest(tables)?;
        *self.chunks.borrow_mut() = chunks;
        let parts = [records, documents].map(|Found { records, chunks }| (records, chunks));
        Ok(NearestRecords::merged(parts, limit))
    }
}

/// One search of the vectors.
struct VectorSearch<'s> {
    generation: &'s Generation,
    vector: SqlVector<'s>,
    /// Maximum number of records.
    limit: usize,
    scope: &'s Scope,
    conditions: &'s Conditions,
}

impl VectorSearch<'_> {
    fn nearest(&self, tables: &PostgresTables<'_>) -> Result<Found, SourceError> {
        let chunks = self.count(tables)?;
        let is_exact = self.generation.column() == VectorColumn::Unindexed || chunks < MIN_INDEXED;
        let records = if is_exact { self.exact(tables)? } else { self.indexed(tables)? };
        Ok(Found { records, chunks })
    }

    /// Returns the condition of the chunks `v` in scope, and its values from `$1` on.
    fn in_scope(&self) -> (String, Vec<&(dyn ToSql + Sync)>) {
        let mut sql = "($1::bigint[] IS NULL OR v.stream = ANY ($1))".to_owned();
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.scope.streams];
        let Conditions { constraints, after, before } = self.conditions;
        if constraints.is_none() && after.is_none() && before.is_none() {
            return (sql, values);
        }
        values.push(after);
        values.push(before);
        let words = match constraints {
            Some(TextQuery(query)) => {
                values.push(query);
                " AND t.words @@ CAST($4::text AS tsquery)"
            }
            None => "",
        };
        sql.push_str(&format!(
            " AND EXISTS (SELECT 1 FROM fetchwell.texts t WHERE t.id = v.record{}{words})",
            self.conditions.sql(1)
        ));
        (sql, values)
    }

    /// Returns the SQL distance of a chunk `v` from the query vector in `$at`.
    fn distance(&self, at: usize) -> String {
        format!("v.embedding <=> ${at}::vector::{}", self.generation.cast())
    }

    /// Counts the chunks in scope, up to [`MIN_INDEXED`].
    fn count(&self, tables: &PostgresTables<'_>) -> Result<i64, SourceError> {
        let (scope, values) = self.in_scope();
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {} v WHERE {scope} LIMIT {MIN_INDEXED}) s",
            self.generation.table()
        );
        let found = tables.query(&sql, &values)?;
        Ok(found.first().map(|row| row.try_get(0).unwrap_or_default()).unwrap_or_default())
    }

    /// Scans all chunks in scope.
    fn exact(&self, tables: &PostgresTables<'_>) -> Result<NearestRecords, SourceError> {
        let (scope, mut values) = self.in_scope();
        values.push(&self.vector);
        let scored = format!(
            "SELECT v.record, v.first_byte, v.end_byte, 1 - ({}) AS score FROM {} v WHERE {scope}",
            self.distance(values.len()),
            self.generation.table()
        );
        let rows = tables.query(&self.best(&scored), &values)?;
        let spread = rows.first().map(|row| spread(row, 7)).unwrap_or_default();
        Ok(self.records(&rows, spread, false))
    }

    /// Reads the nearest chunks from the index, and estimates the spread of all scores from a sample.
    fn indexed(&self, tables: &PostgresTables<'_>) -> Result<NearestRecords, SourceError> {
        let chunks = NEAREST.max(self.limit);
        let (scope, mut values) = self.in_scope();
        values.push(&self.vector);
        let (table, distance) = (self.generation.table(), self.distance(values.len()));
        let scored = format!(
            "SELECT record, first_byte, end_byte, 1 - distance AS score FROM (
                 SELECT v.record, v.first_byte, v.end_byte, {distance} AS distance FROM {table} v WHERE {scope}
                 ORDER BY {distance} LIMIT {chunks}) near"
        );
        tables.execute(INDEX_SETTINGS)?;
        let rows = tables.query(&self.best(&scored), &values)?;
        tables.execute("SET LOCAL enable_sort = on")?;
        let spread = self.sampled(tables, &scope, &values, &distance)?;
        let read: i64 = rows.first().map(|row| row.try_get(6).unwrap_or_default()).unwrap_or_default();
        Ok(self.records(&rows, spread, usize::try_from(read).is_ok_and(|read| read >= chunks)))
    }

    /// Estimates the spread of all scores in scope. Digests are random, so the first ones are a sample.
    fn sampled(
        &self,
        tables: &PostgresTables<'_>,
        scope: &str,
        values: &[&(dyn ToSql + Sync)],
        distance: &str,
    ) -> Result<ScoreSpread, SourceError> {
        let sql = format!(
            "SELECT avg(score), stddev_pop(score) FROM (
                 SELECT 1 - ({distance}) AS score FROM {} v WHERE {scope} ORDER BY v.digest LIMIT {SAMPLED}) s",
            self.generation.table()
        );
        let rows = tables.query(&sql, values)?;
        Ok(rows.first().map(|row| spread(row, 0)).unwrap_or_default())
    }

    /// Returns the query that selects the best of the scored chunks of each record.
    fn best(&self, scored: &str) -> String {
        format!(
            "WITH scored AS MATERIALIZED ({scored}),
             best AS (SELECT DISTINCT ON (record) record, first_byte, end_byte, score FROM scored
                 ORDER BY record, score DESC, first_byte)
             SELECT b.record, b.first_byte, b.end_byte, b.score, t.similarity, s.connection,
                 (SELECT count(*) FROM scored), (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
             FROM best b JOIN fetchwell.texts t ON t.id = b.record JOIN fetchwell.streams s ON s.id = t.stream
             ORDER BY b.score DESC, b.record LIMIT {}",
            self.limit
        )
    }

    fn records(&self, rows: &[Row], spread: ScoreSpread, is_cut: bool) -> NearestRecords {
        let number = |row: &Row, column: usize| row.try_get::<_, i64>(column).unwrap_or_default();
        let byte = |row: &Row, column: usize| i64::from(row.try_get::<_, i32>(column).unwrap_or_default());
        let hit = |row: &Row| NearestHit {
            hit: VectorHit {
                record: number(row, 0),
                score: single(row.try_get(3).unwrap_or_default()),
                first_byte: byte(row, 1),
                end_byte: byte(row, 2),
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

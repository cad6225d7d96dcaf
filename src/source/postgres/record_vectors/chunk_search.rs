//! The search of the vectors of one table of chunks: those of records, or those of documents.
//!
//! A scope of few chunks is scanned exactly. In a larger one the HNSW index is queried with settings that found as much as the
//! scan in measurements with difficult vectors, and its chunks are ordered again by their exact distances.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::source::SourceError;
use crate::source::lexical::selection::Likeness;
use crate::source::meaning::{NearestHit, NearestRecords, ScoreSpread, VectorHit};
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::tables::PostgresTables;
use crate::source::postgres::vectors::nearest::{INDEX_SETTINGS, MIN_INDEXED, single, spread};

/// Number of nearest chunks to read from the index. Several can be of one record.
const NEAREST_CHUNKS: usize = 400;

/// Size of the sample of chunks for the estimated spread of all scores.
const SAMPLE_CHUNKS: usize = 500;

/// The nearest records or documents, with the size of their scope.
#[derive(Debug, Default)]
pub(super) struct ScopeNearest {
    pub(super) records: NearestRecords,
    /// Number of chunks in scope, counted up to `MIN_INDEXED`.
    pub(super) chunks: i64,
}

/// One search, as parts of SQL.
pub(super) struct ChunkSearch<'s> {
    /// The table with its alias.
    pub(super) table: String,
    /// Columns of a chunk: the `item` that it belongs to, its `place` there, and one `more`.
    pub(super) columns: &'static str,
    /// Column with random values, by which a sample is selected.
    pub(super) sampled_by: &'static str,
    /// Condition of the row `t` of the record that a chunk `b` belongs to.
    pub(super) record: &'static str,
    /// Two columns of the nearest chunk `b` of a record, which the rows have after the id of the record.
    pub(super) shown: &'static str,
    /// Condition of the chunks in scope.
    pub(super) scope: String,
    /// Values of the scope.
    pub(super) values: Vec<&'s (dyn ToSql + Sync)>,
    /// Distance of a chunk from the vector, which is the value after those of the scope.
    pub(super) distance: String,
    pub(super) vector: SqlVector<'s>,
    /// Maximum number of records.
    pub(super) limit: usize,
}

impl ChunkSearch<'_> {
    /// Returns the nearest records, and their rows. `bytes` reads the place of the nearest chunk in the text of its record.
    pub(super) fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        has_index: bool,
        bytes: impl Fn(&Row) -> [i64; 2],
    ) -> Result<(Vec<Row>, ScopeNearest), SourceError> {
        let chunks = self.count(tables)?;
        let (rows, spread, is_cut) =
            if has_index && chunks >= MIN_INDEXED { self.indexed(tables)? } else { self.exact(tables)? };
        let hits: Vec<NearestHit> = rows.iter().map(|row| hit(row, bytes(row))).collect();
        let records = NearestRecords { is_cut: is_cut || hits.len() >= self.limit, spread, hits };
        Ok((rows, ScopeNearest { records, chunks }))
    }

    /// Counts the chunks in scope, up to [`MIN_INDEXED`].
    fn count(&self, tables: &PostgresTables<'_>) -> Result<i64, SourceError> {
        let Self { table, scope, values, .. } = self;
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {scope} LIMIT {MIN_INDEXED}) s");
        let found = tables.query(&sql, values)?;
        Ok(found.first().map(|row| number(row, 0)).unwrap_or_default())
    }

    /// Returns the values of the scope and the vector.
    fn all_values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let vector: &(dyn ToSql + Sync) = &self.vector;
        self.values.iter().copied().chain([vector]).collect()
    }

    /// Scans all chunks in scope.
    fn exact(&self, tables: &PostgresTables<'_>) -> Result<(Vec<Row>, ScoreSpread, bool), SourceError> {
        let Self { table, columns, scope, distance, .. } = self;
        let scored = format!("SELECT {columns}, 1 - ({distance}) AS score FROM {table} WHERE {scope}");
        let rows = tables.query(&self.best(&scored), &self.all_values())?;
        let spread = rows.first().map(|row| spread(row, 7)).unwrap_or_default();
        Ok((rows, spread, false))
    }

    /// Reads the nearest chunks from the index, and estimates the spread of all scores from a sample. Also returns true if there
    /// may be more chunks.
    fn indexed(&self, tables: &PostgresTables<'_>) -> Result<(Vec<Row>, ScoreSpread, bool), SourceError> {
        let Self { table, columns, sampled_by, scope, distance, .. } = self;
        let values = self.all_values();
        let chunks = NEAREST_CHUNKS.max(self.limit);
        let scored = format!(
            "SELECT item, place, more, 1 - distance AS score FROM (
                 SELECT {columns}, {distance} AS distance FROM {table} WHERE {scope} ORDER BY {distance} LIMIT {chunks}) near"
        );
        tables.execute(INDEX_SETTINGS)?;
        let rows = tables.query(&self.best(&scored), &values)?;
        tables.execute("SET LOCAL enable_sort = on")?;
        let sample = format!(
            "SELECT avg(score), stddev_pop(score) FROM (
                 SELECT 1 - ({distance}) AS score FROM {table} WHERE {scope} ORDER BY {sampled_by} LIMIT {SAMPLE_CHUNKS}) s"
        );
        let sample = tables.query(&sample, &values)?;
        let spread = sample.first().map(|row| spread(row, 0)).unwrap_or_default();
        let read = rows.first().map(|row| number(row, 6)).unwrap_or_default();
        Ok((rows, spread, usize::try_from(read).is_ok_and(|read| read >= chunks)))
    }

    /// Returns the query that selects the best of the scored chunks of each record.
    fn best(&self, scored: &str) -> String {
        let Self { record, shown, limit, .. } = self;
        format!(
            "WITH scored AS MATERIALIZED ({scored}),
             best AS (SELECT DISTINCT ON (item) item, place, more, score FROM scored ORDER BY item, score DESC, place)
             SELECT t.id, {shown}, b.score, t.similarity, s.connection,
                 (SELECT count(*) FROM scored), (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
             FROM best b JOIN fetchwell.texts t ON {record} JOIN fetchwell.streams s ON s.id = t.stream
             ORDER BY b.score DESC, t.id LIMIT {limit}"
        )
    }
}

fn number(row: &Row, column: usize) -> i64 {
    row.try_get(column).unwrap_or_default()
}

fn hit(row: &Row, [first_byte, end_byte]: [i64; 2]) -> NearestHit {
    let score = single(row.try_get(3).unwrap_or_default());
    NearestHit {
        hit: VectorHit { record: number(row, 0), score, first_byte, end_byte },
        likeness: Some(Likeness {
            connection: number(row, 5).unsigned_abs(),
            similarity: number(row, 4).cast_unsigned(),
        }),
    }
}

//! The search of the vectors of one table of chunks: those of records, or those of documents.
//!
//! A scope of few chunks is scanned exactly. In a larger one the HNSW index is queried with settings that found as much as the
//! scan in measurements with difficult vectors, and its chunks are ordered again by their exact distances.

use fetchwell_ranking::lexical::selection::Likeness;
use fetchwell_ranking::meaning::{NearestHit, NearestRecords, ScoreSpread, VectorHit};
use fetchwell_source::SourceError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::extension::vector::SqlVector;
use crate::tables::PostgresTables;

/// Minimum number of chunks in scope for a query of the index.
const MIN_INDEXED: i64 = 5_000;

/// Number of nearest chunks to read from the index. Several can be of one record.
const NEAREST_CHUNKS: usize = 400;

/// Size of the sample of chunks for the estimated spread of all scores.
const SAMPLE_CHUNKS: usize = 500;

/// Settings of a scan of the index: 400 candidates at a time, and more of them until enough are in scope. The server does not
/// know how long distances take, and would rather sort all of them.
const INDEX_SETTINGS: &str = "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = 400;
    SET LOCAL hnsw.max_scan_tuples = 50000; SET LOCAL random_page_cost = 1.1;
    SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_sort = off";

/// The nearest records or documents, with the size of their scope.
#[derive(Debug, Default)]
pub(crate) struct ScopeNearest {
    pub(crate) records: NearestRecords,
    /// Number of chunks in scope, counted up to `MIN_INDEXED`.
    pub(crate) chunks: i64,
}

/// Condition of the chunks that can be hits.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'s> {
    /// Returns the condition with the number of the parameter that its value has.
    pub(crate) condition: fn(usize) -> String,
    pub(crate) value: &'s (dyn ToSql + Sync),
}

/// One search, as parts of SQL.
pub(crate) struct ChunkSearch<'s> {
    /// The table with its alias.
    pub(crate) table: String,
    /// Columns of a chunk: the `item` that it belongs to, its `place` there, and one `more`.
    pub(crate) columns: &'static str,
    /// Column with random values, by which a sample is selected.
    pub(crate) sampled_by: &'static str,
    /// Condition of the row `t` of the record that a chunk `b` belongs to.
    pub(crate) record: &'static str,
    /// Two columns of the nearest chunk `b` of a record, which the rows have after the id of the record.
    pub(crate) shown: &'static str,
    /// Condition of the chunks in scope, over which the spread of the scores is computed.
    pub(crate) scope: String,
    /// Values of the scope.
    pub(crate) values: Vec<&'s (dyn ToSql + Sync)>,
    /// Further condition of the hits; `None` if each chunk in scope can be one.
    pub(crate) selection: Option<Selection<'s>>,
    /// Distance of a chunk from the vector, which is the value after those of the scope.
    pub(crate) distance: String,
    pub(crate) vector: SqlVector<'s>,
    /// Maximum number of records.
    pub(crate) limit: usize,
}

impl ChunkSearch<'_> {
    /// Returns the nearest records, and their rows. `bytes` reads the place of the nearest chunk in the text of its record.
    pub(crate) fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        has_index: bool,
        bytes: impl Fn(&Row) -> [i64; 2],
    ) -> Result<(Vec<Row>, ScopeNearest), SourceError> {
        let chunks = self.count(tables, None)?;
        let (rows, spread, is_cut) =
            if has_index && chunks >= MIN_INDEXED { self.sampled(tables)? } else { self.exact(tables)? };
        let hits: Vec<NearestHit> = rows.iter().map(|row| hit(row, bytes(row))).collect();
        let records = NearestRecords { is_cut: is_cut || hits.len() >= self.limit, spread, hits };
        Ok((rows, ScopeNearest { records, chunks }))
    }

    /// Counts the chunks in scope that meet the condition of a selection, up to [`MIN_INDEXED`].
    fn count(
        &self,
        tables: &PostgresTables<'_>,
        selection: Option<Selection<'_>>,
    ) -> Result<i64, SourceError> {
        let Self { table, scope, values, .. } = self;
        let condition = condition(selection, values.len() + 1);
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {scope} AND {condition} LIMIT {MIN_INDEXED}) s"
        );
        let selected = selection.map(|selection| selection.value);
        let values: Vec<_> = values.iter().copied().chain(selected).collect();
        let found = tables.queries.query(&sql, &values)?;
        Ok(found.first().map(|row| number(row, 0)).unwrap_or_default())
    }

    /// Returns the values of the scope and the vector.
    fn scope_values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let vector: &(dyn ToSql + Sync) = &self.vector;
        self.values.iter().copied().chain([vector]).collect()
    }

    /// Returns the values of the scope, the vector and the value of the selection.
    fn hit_values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.scope_values();
        values.extend(self.selection.map(|selection| selection.value));
        values
    }

    /// Returns the condition of hits among the chunks in scope, for the values of [`Self::hit_values`].
    fn hit_condition(&self) -> String {
        condition(self.selection, self.values.len() + 2)
    }

    /// Returns the query of all chunks in scope with their scores.
    fn scored(&self, conditions: &str) -> String {
        let Self { table, columns, distance, .. } = self;
        let is_hit = self.hit_condition();
        format!(
            "SELECT {columns}, 1 - ({distance}) AS score, {is_hit} AS is_hit FROM {table} WHERE {conditions}"
        )
    }

    /// Scans all chunks in scope.
    fn exact(&self, tables: &PostgresTables<'_>) -> Result<(Vec<Row>, ScoreSpread, bool), SourceError> {
        let rows = tables.queries.query(&self.best(&self.scored(&self.scope)), &self.hit_values())?;
        let spread = rows.first().map(|row| spread(row, 7)).unwrap_or_default();
        Ok((rows, spread, false))
    }

    /// Finds the nearest chunks, and estimates the spread of all scores from a sample. Also returns true if there may be more
    /// chunks.
    fn sampled(&self, tables: &PostgresTables<'_>) -> Result<(Vec<Row>, ScoreSpread, bool), SourceError> {
        let Self { table, sampled_by, scope, distance, .. } = self;
        let is_small = self.selection.is_some() && self.count(tables, self.selection)? < MIN_INDEXED;
        let (rows, is_cut) = if is_small {
            let selected = format!("{scope} AND {}", self.hit_condition());
            (tables.queries.query(&self.best(&self.scored(&selected)), &self.hit_values())?, false)
        } else {
            self.indexed(tables)?
        };
        let sample = format!(
            "SELECT avg(score), stddev_pop(score) FROM (
                 SELECT 1 - ({distance}) AS score FROM {table} WHERE {scope} ORDER BY {sampled_by} LIMIT {SAMPLE_CHUNKS}) s"
        );
        let sample = tables.queries.query(&sample, &self.scope_values())?;
        let spread = sample.first().map(|row| spread(row, 0)).unwrap_or_default();
        Ok((rows, spread, is_cut))
    }

    /// Reads the nearest chunks from the index. Also returns true if there may be more chunks.
    fn indexed(&self, tables: &PostgresTables<'_>) -> Result<(Vec<Row>, bool), SourceError> {
        let Self { table, columns, scope, distance, .. } = self;
        let (chunks, is_hit) = (NEAREST_CHUNKS.max(self.limit), self.hit_condition());
        let scored = format!(
            "SELECT item, place, more, 1 - distance AS score, true AS is_hit FROM (
                 SELECT {columns}, {distance} AS distance FROM {table} WHERE {scope} AND {is_hit}
                 ORDER BY {distance} LIMIT {chunks}) near"
        );
        tables.queries.execute(INDEX_SETTINGS)?;
        let rows = tables.queries.query(&self.best(&scored), &self.hit_values())?;
        tables.queries.execute("SET LOCAL enable_sort = on")?;
        let read = rows.first().map(|row| number(row, 6)).unwrap_or_default();
        Ok((rows, usize::try_from(read).is_ok_and(|read| read >= chunks)))
    }

    /// Returns the query that selects the best of the scored chunks of each record.
    fn best(&self, scored: &str) -> String {
        let Self { record, shown, limit, .. } = self;
        format!(
            "WITH scored AS MATERIALIZED ({scored}),
             best AS (
                 SELECT DISTINCT ON (item) item, place, more, score FROM scored WHERE is_hit ORDER BY item, score DESC, place)
             SELECT t.id, {shown}, b.score, t.similarity, s.connection,
                 (SELECT count(*) FROM scored), (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
             FROM best b JOIN fetchwell.texts t ON {record} JOIN fetchwell.streams s ON s.id = t.stream
             ORDER BY b.score DESC, t.id LIMIT {limit}"
        )
    }
}

/// Returns the condition of a selection, of which the value has this parameter.
fn condition(selection: Option<Selection<'_>>, parameter: usize) -> String {
    selection.map_or_else(|| "true".to_owned(), |selection| (selection.condition)(parameter))
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

/// Reads the spread of scores from two columns.
fn spread(row: &Row, at: usize) -> ScoreSpread {
    let number =
        |column: usize| single(row.try_get::<_, Option<f64>>(column).ok().flatten().unwrap_or_default());
    ScoreSpread { mean: number(at), deviation: number(at + 1) }
}

/// Returns a cosine in single precision.
#[expect(clippy::cast_possible_truncation, reason = "a cosine needs no more than 24 bits")]
fn single(number: f64) -> f32 {
    number as f32
}

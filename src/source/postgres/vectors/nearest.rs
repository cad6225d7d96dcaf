//! The chunks of a project that are nearest to a query.
//!
//! A scope of few chunks is scanned exactly. In a larger one the HNSW index is asked, with the settings by which it finds as
//! much as the scan on hard vectors, and its chunks are ordered again by their exact distances.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::source::SourceError;
use crate::source::documents::{Category, DOCUMENTS_STREAM, Project, Uuid};
use crate::source::lexical::selection::Likeness;
use crate::source::meaning::{NearestHit, NearestRecords, ScoreSpread, VectorHit};
use crate::source::postgres::extension::USE_EXTENSION;
use crate::source::postgres::extension::vector::SqlVector;
use crate::source::postgres::search::candidates::Conditions;
use crate::source::postgres::search::run::NearestReader;
use crate::source::postgres::search::scope::Scope;
use crate::source::postgres::tables::{PostgresTables, text};

/// Number of chunks in scope from which on the index is asked.
pub(in crate::source::postgres) const MIN_INDEXED: i64 = 5_000;

/// Number of nearest chunks that are read. Several can be of one document.
const NEAREST: i64 = 400;

/// Number of chunks of which the spread of all scores is estimated.
const SAMPLED: i64 = 500;

/// Settings of a scan of the index: 400 candidates at a time, and more of them until enough are in scope. The server does not
/// know how long distances take, and would rather sort all of them.
pub(in crate::source::postgres) const INDEX_SETTINGS: &str =
    "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = 400;
    SET LOCAL hnsw.max_scan_tuples = 50000; SET LOCAL random_page_cost = 1.1;
    SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_sort = off";

/// Condition of the chunks `c` in scope: the project `$1`, vectors with one of the labels `$2`, and the category `$3`.
const IN_SCOPE: &str = "c.project_id = $1::text::uuid AND c.metadata ->> 'embedding' = ANY ($2)
    AND ($3::text IS NULL OR EXISTS (
        SELECT 1 FROM fetchwell.documents d WHERE d.id = c.document_id AND d.category = $3))";

/// Reader of the documents of a project that are nearest to a query.
#[derive(Debug)]
pub(in crate::source::postgres) struct NearestDocuments<'a> {
    pub(in crate::source::postgres) project: &'a Project,
    pub(in crate::source::postgres) category: Option<&'a Category>,
    /// Vector of the query.
    pub(in crate::source::postgres) vector: &'a [f32],
    /// Labels of the vectors of its model.
    pub(in crate::source::postgres) labels: &'a [String],
    pub(in crate::source::postgres) is_alone: bool,
    /// Nearest chunk of each document that was found, by the row of its record.
    pub(in crate::source::postgres) chunks: RefCell<HashMap<i64, Uuid>>,
}

/// Chunk near to the query.
struct NearChunk {
    id: Uuid,
    document: String,
    score: f32,
}

impl NearestReader for NearestDocuments<'_> {
    fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        _scope: &Scope,
        _conditions: &Conditions,
    ) -> Result<NearestRecords, SourceError> {
        tables.query(USE_EXTENSION, &[])?;
        let project = self.project.id.to_string();
        let category = self.category.map(Category::as_str);
        let (vector, least) = (SqlVector(self.vector), MIN_INDEXED);
        let scope: [&(dyn ToSql + Sync); 3] = [&project, &self.labels, &category];
        let count = format!(
            "SELECT count(*) FROM (SELECT 1 FROM fetchwell.chunks c WHERE {IN_SCOPE} LIMIT {least}) s"
        );
        let found = tables.query(&count, &scope)?;
        let count: i64 = found.first().map(|row| row.try_get(0).unwrap_or_default()).unwrap_or_default();
        let values: [&(dyn ToSql + Sync); 4] = [&project, &self.labels, &category, &vector];
        let (chunks, spread) =
            if count < MIN_INDEXED { exact(tables, &values)? } else { indexed(tables, &values)? };
        let is_cut = i64::try_from(chunks.len()).unwrap_or(i64::MAX) >= NEAREST;
        Ok(NearestRecords { hits: self.documents(tables, &chunks)?, spread, is_cut })
    }
}

impl NearestDocuments<'_> {
    /// Returns the documents of chunks, the nearest first, by the rows of their records.
    fn documents(
        &self,
        tables: &PostgresTables<'_>,
        chunks: &[NearChunk],
    ) -> Result<Vec<NearestHit>, SourceError> {
        let keys: Vec<&str> = chunks.iter().map(|chunk| chunk.document.as_str()).collect();
        let sql = "SELECT t.key, t.id, t.similarity, s.connection FROM fetchwell.texts t
             JOIN fetchwell.streams s ON s.id = t.stream JOIN fetchwell.connections c ON c.id = s.connection
             WHERE c.connection_id = $1 AND s.name = $2 AND t.key = ANY ($3)";
        let rows = tables.query(sql, &[&self.project.slug.as_str(), &DOCUMENTS_STREAM, &keys])?;
        let number = |row: &Row, column: usize| row.try_get::<_, i64>(column).unwrap_or_default();
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (text(row, 0), row)).collect();
        let (mut hits, mut nearest) = (Vec::new(), self.chunks.borrow_mut());
        for chunk in chunks {
            let Some(row) = rows.get(chunk.document.as_str()) else { continue };
            let record = number(row, 1);
            if nearest.contains_key(&record) {
                continue;
            }
            nearest.insert(record, chunk.id);
            let likeness = Likeness {
                connection: number(row, 3).unsigned_abs(),
                similarity: number(row, 2).cast_unsigned(),
            };
            let hit = VectorHit { record, score: chunk.score, first_byte: 0, end_byte: 0 };
            hits.push(NearestHit { hit, likeness: Some(likeness) });
        }
        Ok(hits)
    }
}

type Scored = (Vec<NearChunk>, ScoreSpread);

/// Scans all chunks in scope.
fn exact(tables: &PostgresTables<'_>, values: &[&(dyn ToSql + Sync)]) -> Result<Scored, SourceError> {
    let sql = format!(
        "WITH scored AS MATERIALIZED (
             SELECT c.id, c.document_id, 1 - (c.embedding <=> $4::vector) AS score FROM fetchwell.chunks c WHERE {IN_SCOPE})
         SELECT id::text, document_id::text, score, (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
         FROM scored ORDER BY score DESC, id LIMIT {NEAREST}"
    );
    let rows = tables.query(&sql, values)?;
    let spread = rows.first().map(|row| spread(row, 3)).unwrap_or_default();
    Ok((rows.iter().filter_map(near_chunk).collect(), spread))
}

/// Asks the index for the nearest chunks, and a sample of all for the spread of their scores. Ids are random, so the first
/// ones from a random id on are a sample.
fn indexed(tables: &PostgresTables<'_>, values: &[&(dyn ToSql + Sync)]) -> Result<Scored, SourceError> {
    tables.execute(INDEX_SETTINGS)?;
    let sql = format!(
        "WITH near AS MATERIALIZED (
             SELECT c.id, c.document_id, c.embedding <=> $4::vector AS distance FROM fetchwell.chunks c WHERE {IN_SCOPE}
             ORDER BY c.embedding <=> $4::vector LIMIT {NEAREST})
         SELECT id::text, document_id::text, 1 - distance FROM near ORDER BY distance, id"
    );
    let rows = tables.query(&sql, values)?;
    tables.execute("SET LOCAL enable_sort = on")?;
    let sample = format!(
        "SELECT avg(score), stddev_pop(score) FROM (
             SELECT 1 - (c.embedding <=> $4::vector) AS score FROM fetchwell.chunks c
             WHERE {IN_SCOPE} ORDER BY c.id LIMIT {SAMPLED}) s"
    );
    let sample = tables.query(&sample, values)?;
    let spread = sample.first().map(|row| spread(row, 0)).unwrap_or_default();
    Ok((rows.iter().filter_map(near_chunk).collect(), spread))
}

fn near_chunk(row: &Row) -> Option<NearChunk> {
    let score = single(row.try_get(2).unwrap_or_default());
    Some(NearChunk { id: text(row, 0).parse().ok()?, document: text(row, 1).to_owned(), score })
}

/// Reads the spread of scores from two columns.
pub(in crate::source::postgres) fn spread(row: &Row, at: usize) -> ScoreSpread {
    let number =
        |column: usize| single(row.try_get::<_, Option<f64>>(column).ok().flatten().unwrap_or_default());
    ScoreSpread { mean: number(at), deviation: number(at + 1) }
}

/// Returns a cosine in single precision.
#[expect(clippy::cast_possible_truncation, reason = "a cosine needs no more than 24 bits")]
pub(in crate::source::postgres) fn single(number: f64) -> f32 {
    number as f32
}

//! The records that are nearest to a query, including documents of projects.
//!
//! Connection, streams and operators are part of the query of the vectors, so they do not reduce the number of hits.

use std::cell::RefCell;

use fetchwell_embedding::QueryVector;
use fetchwell_ranking::meaning::{MAX_PLACED, NearestRecords};
use fetchwell_source::SourceError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::generations::{Generation, VectorColumn};
use crate::extension::USE_EXTENSION;
use crate::extension::vector::SqlVector;
use crate::search::candidates::Conditions;
use crate::search::run::NearestReader;
use crate::search::scope::Scope;
use crate::tables::PostgresTables;
use crate::vectors::chunk_search::{ChunkSearch, ScopeNearest};
use crate::vectors::nearest::{NearestChunks, NearestDocumentSearch};

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
        tables.queries.query(USE_EXTENSION, &[])?;
        let NearestVectors { generation, labels, vector, is_deep, .. } = self.vectors;
        let (vector, limit) = (&*vector.numbers, if *is_deep { DEEP } else { MAX_PLACED });
        let records = match generation {
            Some(generation) => {
                VectorSearch { generation, vector, limit, scope, conditions }.nearest(tables)?
            }
            None => ScopeNearest::default(),
        };
        let (documents, chunks) =
            NearestDocumentSearch { labels, vector, limit, scope, conditions, category: None }
                .nearest(tables)?;
        *self.chunks.borrow_mut() = chunks;
        let parts = [records, documents].map(|ScopeNearest { records, chunks }| (records, chunks));
        Ok(NearestRecords::merged(parts, limit))
    }
}

/// One search of the vectors.
struct VectorSearch<'s> {
    generation: &'s Generation,
    vector: &'s [f32],
    /// Maximum number of records.
    limit: usize,
    scope: &'s Scope,
    conditions: &'s Conditions,
}

impl VectorSearch<'_> {
    fn nearest(&self, tables: &PostgresTables<'_>) -> Result<ScopeNearest, SourceError> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.scope.streams];
        let conditions = self.conditions.of_chunks("t.id = v.record", &mut values);
        let search = ChunkSearch {
            table: format!("{} v", self.generation.table()),
            columns: "v.record AS item, v.first_byte AS place, v.end_byte AS more",
            // Digests are random.
            sampled_by: "v.digest",
            record: "t.id = b.item",
            shown: "b.place, b.more",
            scope: format!("($1::bigint[] IS NULL OR v.stream = ANY ($1)){conditions}"),
            distance: format!("v.embedding <=> ${}::vector::{}", values.len() + 1, self.generation.cast()),
            values,
            selection: None,
            vector: SqlVector(self.vector),
            limit: self.limit,
        };
        let has_index = self.generation.column() != VectorColumn::Unindexed;
        let byte = |row: &Row, column: usize| i64::from(row.try_get::<_, i32>(column).unwrap_or_default());
        let bytes = |row: &Row| [byte(row, 1), byte(row, 2)];
        let (_rows, found) = search.nearest(tables, has_index, bytes)?;
        Ok(found)
    }
}

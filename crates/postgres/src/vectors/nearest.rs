//! The documents of projects that are nearest to a query.
//!
//! The vectors of documents are in the table of chunks, not in those of the generations of records.

use std::cell::RefCell;
use std::collections::HashMap;

use fetchwell_ranking::meaning::{MAX_PLACED, NearestRecords};
use fetchwell_source::SourceError;
use fetchwell_source::documents::{Category, DOCUMENTS_STREAM, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::chunk_search::{ChunkSearch, ScopeNearest, Selection};
use crate::extension::USE_EXTENSION;
use crate::extension::vector::SqlVector;
use crate::search::candidates::Conditions;
use crate::search::run::NearestReader;
use crate::search::scope::Scope;
use crate::tables::{PostgresTables, text};

/// The nearest chunk of each found document, by the key of its record.
pub(crate) type NearestChunks = HashMap<String, Uuid>;

/// One search of the vectors of documents.
pub(crate) struct NearestDocumentSearch<'s> {
    /// Labels of the vectors of the query's model.
    pub(crate) labels: &'s [String],
    /// Vector of the query.
    pub(crate) vector: &'s [f32],
    /// Maximum number of documents.
    pub(crate) limit: usize,
    pub(crate) scope: &'s Scope,
    pub(crate) conditions: &'s Conditions,
    /// Category of the documents; `None` for all.
    pub(crate) category: Option<&'s Category>,
}

/// Streams of documents in scope with their projects.
struct DocumentStreams {
    streams: Vec<i64>,
    projects: Vec<String>,
}

impl NearestDocumentSearch<'_> {
    /// Returns the nearest documents in scope that meet the conditions, with their nearest chunks.
    pub(crate) fn nearest(
        &self,
        tables: &PostgresTables<'_>,
    ) -> Result<(ScopeNearest, NearestChunks), SourceError> {
        let streams = self.streams(tables)?;
        if streams.streams.is_empty() || self.labels.is_empty() {
            return Ok((ScopeNearest::default(), NearestChunks::new()));
        }
        let category = self.category.map(Category::as_str);
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
            // A document of a category is as near as in a search of all.
            selection: category
                .as_ref()
                .map(|category| Selection { condition: of_category, value: category }),
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
        let rows = tables.queries.query(sql, &[&DOCUMENTS_STREAM, &self.scope.streams])?;
        Ok(DocumentStreams {
            streams: rows.iter().map(|row| row.try_get(0).unwrap_or_default()).collect(),
            projects: rows.iter().map(|row| text(row, 1).to_owned()).collect(),
        })
    }
}

/// Returns the condition of the chunks `c` of a category, which has this parameter.
fn of_category(parameter: usize) -> String {
    format!(
        "EXISTS (SELECT 1 FROM fetchwell.documents d WHERE d.id = c.document_id AND d.category = ${parameter}::text)"
    )
}

/// Reader of the documents of a project that are nearest to a query.
#[derive(Debug)]
pub(crate) struct NearestDocuments<'a> {
    pub(crate) category: Option<&'a Category>,
    /// Vector of the query.
    pub(crate) vector: &'a [f32],
    /// Labels of the vectors of its model.
    pub(crate) labels: &'a [String],
    pub(crate) is_alone: bool,
    /// Nearest chunks of the documents that were found.
    pub(crate) chunks: RefCell<NearestChunks>,
}

impl NearestReader for NearestDocuments<'_> {
    fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        scope: &Scope,
        conditions: &Conditions,
    ) -> Result<NearestRecords, SourceError> {
        tables.queries.query(USE_EXTENSION, &[])?;
        let Self { category, vector, labels, .. } = *self;
        let search = NearestDocumentSearch { labels, vector, limit: MAX_PLACED, scope, conditions, category };
        let (found, chunks) = search.nearest(tables)?;
        *self.chunks.borrow_mut() = chunks;
        Ok(found.records)
    }
}

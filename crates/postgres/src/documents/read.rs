//! Reads projects, documents and chunks.

use std::ops::Range;

use deadpool_postgres::Transaction;
use fetchwell_core::saturate::saturated;
use fetchwell_source::SourceError;
use fetchwell_source::documents::{
    Dialect, DocumentChunk, DocumentQuery, DocumentRow, KnownDocument, Passage, Project, ProjectRef,
    QueryValue, Uuid, document_of,
};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::tables::{PostgresTables, optional_text, text};

/// The SQL of queries.
pub(super) const DIALECT: Dialect = Dialect {
    schema: "fetchwell.",
    parameter: "$",
    id: "::text::uuid",
    text: "::text",
    number: "::bigint",
    time: ["to_char(", " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"],
    results: "array_to_json(result_ids)::text",
    last: "",
    is_expired: "created_at < clock_timestamp() - make_interval(days => least(?2!number, 1000000)::integer)",
};

/// A row of a query.
struct PostgresRow<'r>(&'r Row);

impl DocumentRow for PostgresRow<'_> {
    fn text(&self, column: usize) -> Option<&str> {
        optional_text(self.0, column)
    }

    fn number(&self, column: usize) -> Option<i64> {
        self.0.try_get(column).ok().flatten()
    }
}

/// Returns the values of a query.
pub(super) fn values<Item>(query: &DocumentQuery<Item>) -> Vec<&(dyn ToSql + Sync)> {
    let values = query.values.iter().map(|value| match value {
        QueryValue::Text(text) => text as &(dyn ToSql + Sync),
        QueryValue::Number(number) => number,
    });
    values.collect()
}

fn read_all<Item>(query: &DocumentQuery<Item>, rows: &[Row]) -> Vec<Item> {
    rows.iter().filter_map(|row| (query.read)(&PostgresRow(row))).collect()
}

/// Returns the rows of a query.
pub(super) fn rows<Item>(
    tables: &PostgresTables<'_>,
    query: &DocumentQuery<Item>,
) -> Result<Vec<Item>, SourceError> {
    Ok(read_all(query, &tables.queries.query(&query.sql, &values(query))?))
}

/// Returns the rows of a query within a transaction.
pub(super) async fn rows_in<Item>(client: &Client, query: &DocumentQuery<Item>) -> Result<Vec<Item>, Error> {
    Ok(read_all(query, &client.query(&query.sql, &values(query)).await?))
}

/// Returns a project.
pub(super) fn project(
    tables: &PostgresTables<'_>,
    named: &ProjectRef,
) -> Result<Option<Project>, SourceError> {
    Ok(rows(tables, &DIALECT.project(named))?.pop())
}

/// Returns a project within a transaction.
pub(super) async fn find(
    transaction: &Transaction<'_>,
    named: &ProjectRef,
) -> Result<Option<Project>, Error> {
    Ok(rows_in(transaction.client(), &DIALECT.project(named)).await?.pop())
}

/// Columns of [`chunk_of`], of the table `c`.
const CHUNK: &str =
    "c.id::text, c.document_id::text, c.project_id::text, c.content, c.chunk_index, c.token_count,
     c.metadata::text";

/// Number of columns of a chunk.
const CHUNK_COLUMNS: usize = 7;

/// Returns the text of a document: its chunks in their order.
pub(super) fn document_text(
    tables: &PostgresTables<'_>,
    project: Uuid,
    document: Uuid,
) -> Result<Option<String>, SourceError> {
    let sql = "SELECT (SELECT coalesce(string_agg(c.content, '' ORDER BY c.chunk_index), '') FROM fetchwell.chunks c
                       WHERE c.document_id = d.id)
         FROM fetchwell.documents d WHERE d.project_id = $1::text::uuid AND d.id = $2::text::uuid";
    let rows = tables.queries.query(sql, &[&project.to_string(), &document.to_string()])?;
    Ok(rows.first().map(|row| text(row, 0).to_owned()))
}

/// Returns the chunks of a document with numbers in a range.
pub(super) fn chunks(
    tables: &PostgresTables<'_>,
    project: Uuid,
    document: Uuid,
    numbers: &Range<u32>,
) -> Result<Vec<DocumentChunk>, SourceError> {
    let sql = format!(
        "SELECT {CHUNK} FROM fetchwell.chunks c
         WHERE c.project_id = $1::text::uuid AND c.document_id = $2::text::uuid AND c.chunk_index >= $3
             AND c.chunk_index < $4 ORDER BY c.chunk_index"
    );
    let bound = |number: u32| saturated::<i32>(number);
    let values: [&(dyn ToSql + Sync); 4] =
        [&project.to_string(), &document.to_string(), &bound(numbers.start), &bound(numbers.end)];
    Ok(tables.queries.query(&sql, &values)?.iter().filter_map(chunk_of).collect())
}

/// Returns chunks with their documents, in the given order.
pub(super) fn passages(
    tables: &PostgresTables<'_>,
    project: Uuid,
    chunks: &[Uuid],
) -> Result<Vec<Passage>, SourceError> {
    let sql = format!(
        "SELECT {CHUNK}, {} FROM unnest($2::text[]::uuid[]) WITH ORDINALITY AS p (id, place)
         JOIN fetchwell.chunks c ON c.id = p.id JOIN fetchwell.documents d ON d.id = c.document_id
         WHERE c.project_id = $1::text::uuid ORDER BY p.place",
        DIALECT.document_columns()
    );
    let ids: Vec<String> = chunks.iter().map(ToString::to_string).collect();
    let rows = tables.queries.query(&sql, &[&project.to_string(), &ids])?;
    let passage = |row: &Row| {
        Some(Passage { chunk: chunk_of(row)?, document: document_of(&PostgresRow(row), CHUNK_COLUMNS)? })
    };
    Ok(rows.iter().filter_map(passage).collect())
}

/// Reads a chunk. Returns `None` for a row of another program.
fn chunk_of(row: &Row) -> Option<DocumentChunk> {
    let number = |column: usize| row.try_get::<_, Option<i32>>(column).ok().flatten().unwrap_or_default();
    Some(DocumentChunk {
        id: text(row, 0).parse().ok()?,
        document_id: text(row, 1).parse().ok()?,
        project_id: text(row, 2).parse().ok()?,
        content: text(row, 3).to_owned(),
        chunk_index: number(4).unsigned_abs(),
        token_count: number(5).unsigned_abs(),
        metadata: serde_json::from_str(optional_text(row, 6).unwrap_or_default()).ok()?,
    })
}

/// Returns the documents of the project of a slug in the order of their paths, or `None` if there is no such project.
pub(crate) async fn known_documents(
    client: &Client,
    slug: &str,
) -> Result<Option<Vec<KnownDocument>>, Error> {
    let find = "SELECT id::text FROM fetchwell.projects WHERE slug = $1";
    let Some(project) = client.query_opt(find, &[&slug]).await? else { return Ok(None) };
    Ok(Some(rows_in(client, &DIALECT.known_documents(project.get(0))).await?))
}

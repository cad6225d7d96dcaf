//! Reads projects, documents and chunks.

use std::ops::Range;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::saturate::saturated;
use crate::source::SourceError;
use crate::source::documents::{
    Category, CategoryCount, Document, DocumentChunk, DocumentList, DocumentRef, KnownDocument, Passage,
    Project, ProjectRef, Uuid,
};
use crate::source::postgres::tables::{PostgresTables, optional_text, text};

/// Returns SQL for a time in RFC 3339.
pub(super) fn time(column: &str) -> String {
    format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
}

/// Returns the query for projects, with the columns of [`project_of`].
pub(super) fn select_projects() -> String {
    format!(
        "SELECT id::text, slug, name, settings::text, corpus_version, {}, {} FROM fetchwell.projects",
        time("created_at"),
        time("updated_at")
    )
}

/// Returns the columns of [`document_of`], of the table `d`.
fn document_columns() -> String {
    format!(
        "d.id::text, d.project_id::text, d.path, d.title, d.content_hash, d.category, d.metadata::text, {}, {}",
        time("d.created_at"),
        time("d.updated_at")
    )
}

/// Columns of [`chunk_of`], of the table `c`.
const CHUNK: &str =
    "c.id::text, c.document_id::text, c.project_id::text, c.content, c.chunk_index, c.token_count,
     c.metadata::text";

/// Number of columns of a chunk.
const CHUNK_COLUMNS: usize = 7;

/// Returns all projects in the order of their slugs.
pub(super) fn projects(tables: &PostgresTables<'_>) -> Result<Vec<Project>, SourceError> {
    let rows = tables.query(&format!("{} ORDER BY slug", select_projects()), &[])?;
    Ok(rows.iter().filter_map(project_of).collect())
}

/// Returns a project.
pub(super) fn project(
    tables: &PostgresTables<'_>,
    named: &ProjectRef,
) -> Result<Option<Project>, SourceError> {
    let rows = tables.query(&project_sql(named), &[&named.to_string()])?;
    Ok(rows.first().and_then(project_of))
}

/// Returns a project within a transaction.
pub(super) async fn find(
    transaction: &Transaction<'_>,
    named: &ProjectRef,
) -> Result<Option<Project>, Error> {
    let found = transaction.query_opt(&project_sql(named), &[&named.to_string()]).await?;
    Ok(found.as_ref().and_then(project_of))
}

/// Returns the query for a project, with its slug or id as the first value.
fn project_sql(named: &ProjectRef) -> String {
    let condition = match named {
        ProjectRef::Slug(_) => "slug = $1",
        ProjectRef::Id(_) => "id = $1::text::uuid",
    };
    format!("{} WHERE {condition}", select_projects())
}

/// Reads a project. Returns `None` for a row of another program.
pub(super) fn project_of(row: &Row) -> Option<Project> {
    Some(Project {
        id: text(row, 0).parse().ok()?,
        slug: text(row, 1).parse().ok()?,
        name: text(row, 2).to_owned(),
        settings: serde_json::from_str(optional_text(row, 3).unwrap_or_default()).unwrap_or_default(),
        corpus_version: row.try_get::<_, Option<i32>>(4).ok().flatten().unwrap_or(1).into(),
        created_at: text(row, 5).to_owned(),
        updated_at: text(row, 6).to_owned(),
    })
}

/// Returns a page of the documents of a project.
pub(super) fn documents(
    tables: &PostgresTables<'_>,
    project: Uuid,
    list: &DocumentList,
) -> Result<Vec<Document>, SourceError> {
    let DocumentList { category, after, limit } = list;
    let sql = format!(
        "SELECT {} FROM fetchwell.documents d
         WHERE d.project_id = $1::text::uuid AND ($2::text IS NULL OR d.category = $2) AND d.path > $3
         ORDER BY d.path LIMIT $4",
        document_columns()
    );
    let values: [&(dyn ToSql + Sync); 4] = [
        &project.to_string(),
        &category.as_ref().map(Category::as_str),
        &after.as_ref().map_or("", |path| path.as_str()),
        &saturated::<i64>(*limit),
    ];
    Ok(tables.query(&sql, &values)?.iter().filter_map(|row| document_of(row, 0)).collect())
}

/// Returns a document.
pub(super) fn document(
    tables: &PostgresTables<'_>,
    project: Uuid,
    named: &DocumentRef,
) -> Result<Option<Document>, SourceError> {
    let (condition, value) = match named {
        DocumentRef::Path(path) => ("d.path = $2", path.to_string()),
        DocumentRef::Id(id) => ("d.id = $2::text::uuid", id.to_string()),
    };
    let sql = format!(
        "SELECT {} FROM fetchwell.documents d WHERE d.project_id = $1::text::uuid AND {condition}",
        document_columns()
    );
    let rows = tables.query(&sql, &[&project.to_string(), &value])?;
    Ok(rows.first().and_then(|row| document_of(row, 0)))
}

/// Reads a document from columns of which the first is at `at`. Returns `None` for a row of another program.
fn document_of(row: &Row, at: usize) -> Option<Document> {
    Some(Document {
        id: text(row, at).parse().ok()?,
        project_id: text(row, at + 1).parse().ok()?,
        path: text(row, at + 2).parse().ok()?,
        title: optional_text(row, at + 3).map(str::to_owned),
        content_hash: text(row, at + 4).to_owned(),
        category: optional_text(row, at + 5)
            .and_then(|name| name.parse().ok())
            .unwrap_or_else(Category::general),
        metadata: serde_json::from_str(optional_text(row, at + 6).unwrap_or_default()).unwrap_or_default(),
        created_at: text(row, at + 7).to_owned(),
        updated_at: text(row, at + 8).to_owned(),
    })
}

/// Returns the text of a document: its chunks in their order.
pub(super) fn document_text(
    tables: &PostgresTables<'_>,
    project: Uuid,
    document: Uuid,
) -> Result<Option<String>, SourceError> {
    let sql = "SELECT (SELECT coalesce(string_agg(c.content, '' ORDER BY c.chunk_index), '') FROM fetchwell.chunks c
                       WHERE c.document_id = d.id)
         FROM fetchwell.documents d WHERE d.project_id = $1::text::uuid AND d.id = $2::text::uuid";
    let rows = tables.query(sql, &[&project.to_string(), &document.to_string()])?;
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
    Ok(tables.query(&sql, &values)?.iter().filter_map(chunk_of).collect())
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
        document_columns()
    );
    let ids: Vec<String> = chunks.iter().map(ToString::to_string).collect();
    let rows = tables.query(&sql, &[&project.to_string(), &ids])?;
    let passage =
        |row: &Row| Some(Passage { chunk: chunk_of(row)?, document: document_of(row, CHUNK_COLUMNS)? });
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

/// Returns the number of documents of each category, in the order of their names.
pub(super) fn categories(
    tables: &PostgresTables<'_>,
    project: Uuid,
) -> Result<Vec<CategoryCount>, SourceError> {
    let sql = "SELECT category, count(*) FROM fetchwell.documents WHERE project_id = $1::text::uuid
         GROUP BY category ORDER BY category";
    let count = |row: &Row| {
        let documents = row.try_get::<_, i64>(1).unwrap_or_default().unsigned_abs();
        Some(CategoryCount { category: text(row, 0).parse().ok()?, documents })
    };
    Ok(tables.query(sql, &[&project.to_string()])?.iter().filter_map(count).collect())
}

/// Returns the documents of the project of a slug in the order of their paths, or `None` if there is no such project.
pub(in crate::source::postgres) async fn known_documents(
    client: &Client,
    slug: &str,
) -> Result<Option<Vec<KnownDocument>>, Error> {
    let exists = "SELECT 1 FROM fetchwell.projects WHERE slug = $1";
    if client.query_opt(exists, &[&slug]).await?.is_none() {
        return Ok(None);
    }
    let sql = "SELECT d.id::text, d.path, d.content_hash FROM fetchwell.documents d
         JOIN fetchwell.projects p ON p.id = d.project_id WHERE p.slug = $1 ORDER BY d.path";
    let known = |row: &Row| {
        let (path, content_hash) = (text(row, 1).to_owned(), text(row, 2).to_owned());
        Some(KnownDocument { id: text(row, 0).parse().ok()?, path, content_hash })
    };
    Ok(Some(client.query(sql, &[&slug]).await?.iter().filter_map(known).collect()))
}

//! Reads projects, documents and chunks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::has_tables;
use crate::saturate::saturated;
use crate::source::documents::{
    Category, CategoryCount, Document, DocumentChunk, DocumentList, DocumentRef, KnownDocument, Passage,
    Project, ProjectRef, Uuid,
};
use crate::source::sqlite::read::rows::name;

/// Columns of a project, in the order of [`project_of`].
const PROJECT: &str = "SELECT id, slug, name, settings, corpus_version, created_at, updated_at FROM projects";

/// Columns of a document, in the order of [`document_of`].
const DOCUMENT: &str = "SELECT d.id, d.project_id, d.path, d.title, d.content_hash, d.category, d.metadata,
         d.created_at, d.updated_at FROM documents d";

/// Columns of a chunk, in the order of [`chunk_of`].
const CHUNK: &str =
    "SELECT id, document_id, project_id, chunk_index, token_count, metadata, first_byte, end_byte
     FROM chunk_ranges";

/// Returns all projects in the order of their slugs.
pub(in crate::source::sqlite) fn projects(sqlite: &Connection) -> Result<Vec<Project>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let mut statement = sqlite.prepare_cached(&format!("{PROJECT} ORDER BY slug"))?;
    statement.query_map((), project_of)?.filter_map(Result::transpose).collect()
}

/// Returns a project.
pub(in crate::source::sqlite) fn project(
    sqlite: &Connection,
    named: &ProjectRef,
) -> Result<Option<Project>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(None);
    }
    let column = match named {
        ProjectRef::Slug(_) => "slug",
        ProjectRef::Id(_) => "id",
    };
    let mut statement = sqlite.prepare_cached(&format!("{PROJECT} WHERE {column} = ?1"))?;
    Ok(statement.query_row([named.to_string()], project_of).optional()?.flatten())
}

/// Reads a project. Returns `None` for a row of another program.
fn project_of(row: &Row<'_>) -> Result<Option<Project>, rusqlite::Error> {
    let (Some(id), Some(slug)) = (name(row, 0)?, name(row, 1)?) else { return Ok(None) };
    Ok(Some(Project {
        id,
        slug,
        name: row.get(2)?,
        settings: serde_json::from_str(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        corpus_version: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
    }))
}

/// Returns a page of the documents of a project.
pub(in crate::source::sqlite) fn documents(
    sqlite: &Connection,
    project: Uuid,
    list: &DocumentList,
) -> Result<Vec<Document>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let DocumentList { category, after, limit } = list;
    let sql = format!(
        "{DOCUMENT} WHERE d.project_id = ?1 AND (?2 IS NULL OR d.category = ?2) AND d.path > ?3
         ORDER BY d.path LIMIT ?4"
    );
    let mut statement = sqlite.prepare_cached(&sql)?;
    let values = params![
        project.to_string(),
        category.as_ref().map(Category::as_str),
        after.as_ref().map_or("", |path| path.as_str()),
        saturated::<i64>(*limit)
    ];
    statement.query_map(values, document_of)?.filter_map(Result::transpose).collect()
}

/// Returns a document.
pub(in crate::source::sqlite) fn document(
    sqlite: &Connection,
    project: Uuid,
    named: &DocumentRef,
) -> Result<Option<Document>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(None);
    }
    let (column, value) = match named {
        DocumentRef::Path(path) => ("path", path.to_string()),
        DocumentRef::Id(id) => ("id", id.to_string()),
    };
    let mut statement =
        sqlite.prepare_cached(&format!("{DOCUMENT} WHERE d.project_id = ?1 AND d.{column} = ?2"))?;
    Ok(statement.query_row([project.to_string(), value], document_of).optional()?.flatten())
}

/// Reads a document. Returns `None` for a row of another program.
fn document_of(row: &Row<'_>) -> Result<Option<Document>, rusqlite::Error> {
    let names = (name(row, 0)?, name(row, 1)?, name(row, 2)?);
    let (Some(id), Some(project_id), Some(path)) = names else { return Ok(None) };
    Ok(Some(Document {
        id,
        project_id,
        path,
        title: row.get(3)?,
        content_hash: row.get(4)?,
        category: name(row, 5)?.unwrap_or_else(Category::general),
        metadata: serde_json::from_str(row.get_ref(6)?.as_str()?).unwrap_or_default(),
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
    }))
}

/// Returns the text of a document.
pub(in crate::source::sqlite) fn document_text(
    sqlite: &Connection,
    project: Uuid,
    document: Uuid,
) -> Result<Option<String>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(None);
    }
    let mut statement = sqlite.prepare_cached(
        "SELECT r.data ->> '$.text' FROM documents d JOIN records r ON r.id = d.record
         WHERE d.project_id = ?1 AND d.id = ?2",
    )?;
    let text = statement.query_row([project.to_string(), document.to_string()], |row| row.get(0));
    Ok(text.optional()?.flatten())
}

/// Returns the chunks of a document with numbers in a range.
pub(in crate::source::sqlite) fn chunks(
    sqlite: &Connection,
    project: Uuid,
    document: Uuid,
    numbers: &Range<u32>,
) -> Result<Vec<DocumentChunk>, rusqlite::Error> {
    let Some(text) = document_text(sqlite, project, document)? else { return Ok(Vec::new()) };
    let mut statement = sqlite.prepare_cached(&format!(
        "{CHUNK} WHERE document_id = ?1 AND chunk_index >= ?2 AND chunk_index < ?3 ORDER BY chunk_index"
    ))?;
    let rows = statement
        .query_map(params![document.to_string(), numbers.start, numbers.end], |row| chunk_of(row, &text))?;
    rows.filter_map(Result::transpose).collect()
}

/// Returns chunks with their documents, in the given order.
pub(in crate::source::sqlite) fn passages(
    sqlite: &Connection,
    project: Uuid,
    chunks: &[Uuid],
) -> Result<Vec<Passage>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let mut find =
        sqlite.prepare_cached("SELECT document_id FROM chunk_ranges WHERE id = ?1 AND project_id = ?2")?;
    let mut read = sqlite.prepare_cached(&format!("{CHUNK} WHERE id = ?1"))?;
    let mut known: HashMap<Uuid, Option<Document>> = HashMap::new();
    // The text of one document at a time, since each can have many megabytes.
    let mut text: Option<(Uuid, String)> = None;
    let mut passages = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let id = chunk.to_string();
        let of = find.query_row([&id, &project.to_string()], |row| name(row, 0)).optional()?.flatten();
        let Some(document_id) = of else { continue };
        let known = match known.entry(document_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(document(sqlite, project, &DocumentRef::Id(document_id))?),
        };
        if text.as_ref().is_none_or(|(of, _)| *of != document_id) {
            text = document_text(sqlite, project, document_id)?.map(|text| (document_id, text));
        }
        let (Some(document), Some((_, text))) = (known, &text) else { continue };
        if let Some(chunk) = read.query_row([&id], |row| chunk_of(row, text)).optional()?.flatten() {
            passages.push(Passage { chunk, document: document.clone() });
        }
    }
    Ok(passages)
}

/// Reads a chunk of a text. Returns `None` for a row of another program.
fn chunk_of(row: &Row<'_>, text: &str) -> Result<Option<DocumentChunk>, rusqlite::Error> {
    let names = (name(row, 0)?, name(row, 1)?, name(row, 2)?);
    let (Some(id), Some(document_id), Some(project_id)) = names else { return Ok(None) };
    let byte = |column| row.get::<_, i64>(column).map(saturated::<usize>);
    let (start, end) = (byte(6)?, byte(7)?);
    let metadata = serde_json::from_str(row.get_ref(5)?.as_str()?).ok();
    let (Some(content), Some(metadata)) = (text.get(start..end), metadata) else { return Ok(None) };
    Ok(Some(DocumentChunk {
        id,
        document_id,
        project_id,
        content: content.to_owned(),
        chunk_index: row.get(3)?,
        token_count: row.get(4)?,
        metadata,
    }))
}

/// Returns the number of documents of each category, in the order of their names.
pub(in crate::source::sqlite) fn categories(
    sqlite: &Connection,
    project: Uuid,
) -> Result<Vec<CategoryCount>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let mut statement = sqlite.prepare_cached(
        "SELECT category, count(*) FROM documents WHERE project_id = ?1 GROUP BY category ORDER BY category",
    )?;
    let rows = statement.query_map([project.to_string()], |row| {
        let documents = row.get::<_, i64>(1)?.unsigned_abs();
        Ok(name(row, 0)?.map(|category| CategoryCount { category, documents }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Returns the documents of a project in the order of their paths.
pub(in crate::source::sqlite) fn known_documents(
    sqlite: &Connection,
    project: &str,
) -> Result<Vec<KnownDocument>, rusqlite::Error> {
    let mut statement = sqlite
        .prepare_cached("SELECT id, path, content_hash FROM documents WHERE project_id = ?1 ORDER BY path")?;
    let rows = statement.query_map([project], |row| {
        let (path, content_hash) = (row.get(1)?, row.get(2)?);
        Ok(name(row, 0)?.map(|id| KnownDocument { id, path, content_hash }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

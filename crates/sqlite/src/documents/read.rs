//! Reads projects, documents and chunks. A chunk has its place in the text of its document, which the record has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use fetchwell_core::saturate::saturated;
use fetchwell_source::documents::{
    Dialect, Document, DocumentChunk, DocumentQuery, DocumentRef, DocumentRow, KnownDocument, Passage,
    Project, ProjectRef, QueryValue, Uuid,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, ToSql, params, params_from_iter};

use super::has_tables;
use crate::read::rows::name;

/// The SQL of queries.
pub(crate) const DIALECT: Dialect = Dialect {
    schema: "",
    parameter: "?",
    id: "",
    text: "",
    number: "",
    time: ["", ""],
    results: "result_ids",
    last: ", rowid DESC",
    is_expired: "created_at < ifnull(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ?2 || ' days'), '')",
};

/// A row of a query.
struct SqliteRow<'r>(&'r Row<'r>);

impl DocumentRow for SqliteRow<'_> {
    fn text(&self, column: usize) -> Option<&str> {
        self.0.get_ref(column).ok()?.as_str().ok()
    }

    fn number(&self, column: usize) -> Option<i64> {
        self.0.get_ref(column).ok()?.as_i64().ok()
    }
}

/// Returns the values of a query.
pub(crate) fn values<Item>(query: &DocumentQuery<Item>) -> impl Params {
    params_from_iter(query.values.iter().map(|value| match value {
        QueryValue::Text(text) => text as &dyn ToSql,
        QueryValue::Number(number) => number,
    }))
}

/// Returns the rows of a query. A store without projects has none.
pub(crate) fn rows<Item>(
    sqlite: &Connection,
    query: &DocumentQuery<Item>,
) -> Result<Vec<Item>, rusqlite::Error> {
    if !has_tables(sqlite)? {
        return Ok(Vec::new());
    }
    let mut statement = sqlite.prepare_cached(&query.sql)?;
    let mut rows = statement.query(values(query))?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.extend((query.read)(&SqliteRow(row)));
    }
    Ok(items)
}

/// Columns of a chunk, in the order of [`chunk_of`].
const CHUNK: &str =
    "SELECT id, document_id, project_id, chunk_index, token_count, metadata, first_byte, end_byte
     FROM chunk_ranges";

/// Returns a project.
pub(crate) fn project(sqlite: &Connection, named: &ProjectRef) -> Result<Option<Project>, rusqlite::Error> {
    Ok(rows(sqlite, &DIALECT.project(named))?.pop())
}

/// Returns the text of a document.
pub(crate) fn document_text(
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
pub(crate) fn chunks(
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
pub(crate) fn passages(
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
            Entry::Vacant(new) => {
                let query = DIALECT.document(project, &DocumentRef::Id(document_id));
                new.insert(rows(sqlite, &query)?.pop())
            }
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

/// Returns the documents of a project in the order of their paths.
pub(crate) fn known_documents(
    sqlite: &Connection,
    project: &str,
) -> Result<Vec<KnownDocument>, rusqlite::Error> {
    rows(sqlite, &DIALECT.known_documents(project))
}

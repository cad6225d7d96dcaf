//! Writes the rows of documents and chunks beside the records of a project.

use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_source::documents::{ChunkIds, NewDocument, Uuid, content_hash, tiles};
use rusqlite::{Connection, OptionalExtension, params};

use super::has_tables;
use crate::tables::NOW;

/// Writer of the documents of one project. All of its calls of one transaction are one commit of the corpus.
#[derive(Debug)]
pub(crate) struct DocumentWriter {
    project: String,
    has_changes: bool,
    /// Ids of chunks that are copied. Others are random.
    chunks: ChunkIds,
}

impl DocumentWriter {
    /// Returns the writer for the project of a connection, or `None` if the connection is no project.
    pub(crate) fn find(sqlite: &Connection, connection: i64) -> Result<Option<Self>, rusqlite::Error> {
        if !has_tables(sqlite)? {
            return Ok(None);
        }
        let mut find = sqlite.prepare_cached("SELECT id FROM projects WHERE connection = ?1")?;
        let project = find.query_row([connection], |row| row.get(0)).optional()?;
        Ok(project.map(|project| Self { project, has_changes: false, chunks: ChunkIds::default() }))
    }

    /// Gives chunks the ids that they have in another store.
    pub(crate) fn with_chunk_ids(self, chunks: ChunkIds) -> Self {
        Self { chunks, ..self }
    }

    /// Writes the row and the chunks of a document. Equal text keeps its chunks. The key of a record is the id of the
    /// document. A record that is no document has no row.
    pub(crate) fn put(
        &mut self,
        sqlite: &Connection,
        record: i64,
        key: &str,
        data: &RecordData,
    ) -> Result<(), rusqlite::Error> {
        let (Ok(id), Some(document)) = (key.parse::<Uuid>(), NewDocument::from_record(data)) else {
            return self.delete(sqlite, record);
        };
        self.has_changes = true;
        let uuid = id;
        let id = id.to_string();
        let hash = content_hash(&document.text);
        let mut find = sqlite.prepare_cached("SELECT content_hash FROM documents WHERE id = ?1")?;
        let before: Option<String> = find.query_row([&id], |row| row.get(0)).optional()?;
        let sql = format!(
            "INSERT INTO documents
                 (id, project_id, path, title, content_hash, category, metadata, record, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {NOW}, {NOW})
             ON CONFLICT (id) DO UPDATE SET path = ?3, title = ?4, content_hash = ?5, category = ?6, metadata = ?7,
                 updated_at = {NOW}"
        );
        let metadata = serde_json::to_string(&document.metadata).unwrap_or_default();
        sqlite.prepare_cached(&sql)?.execute(params![
            id,
            self.project,
            document.path.as_str(),
            document.title,
            hash,
            document.category.as_str(),
            metadata,
            record
        ])?;
        if before.as_deref() == Some(&hash) {
            return Ok(());
        }
        sqlite.prepare_cached("DELETE FROM chunk_ranges WHERE document_id = ?1")?.execute([&id])?;
        self.put_chunks(sqlite, uuid, &document.text)
    }

    fn put_chunks(&self, sqlite: &Connection, document: Uuid, text: &str) -> Result<(), rusqlite::Error> {
        let sql = format!(
            "INSERT INTO chunk_ranges
                 (id, document_id, project_id, first_byte, end_byte, chunk_index, token_count, metadata, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {NOW})"
        );
        let mut insert = sqlite.prepare_cached(&sql)?;
        for (number, tile) in tiles(text).into_iter().enumerate() {
            let metadata = serde_json::to_string(&tile.metadata).unwrap_or_default();
            let id = self.chunks.get(document, number).map_or_else(new_uuid, Ok)?;
            insert.execute(params![
                id.to_string(),
                document.to_string(),
                self.project,
                sql_number(tile.range.start),
                sql_number(tile.range.end),
                sql_number(number),
                sql_number(tile.token_count),
                metadata
            ])?;
        }
        Ok(())
    }

    /// Deletes the document of a record.
    pub(crate) fn delete(&mut self, sqlite: &Connection, record: i64) -> Result<(), rusqlite::Error> {
        self.has_changes = true;
        sqlite.prepare_cached("DELETE FROM documents WHERE record = ?1")?.execute([record])?;
        Ok(())
    }

    /// Counts the changes as one commit, if there are any. Called last in a transaction.
    pub(crate) fn commit(&mut self, sqlite: &Connection) -> Result<(), rusqlite::Error> {
        if std::mem::take(&mut self.has_changes) {
            self.bump(sqlite)?;
        }
        Ok(())
    }

    /// Raises the version of the corpus.
    pub(crate) fn bump(&self, sqlite: &Connection) -> Result<(), rusqlite::Error> {
        let sql = format!(
            "UPDATE projects SET corpus_version = corpus_version + 1, updated_at = {NOW} WHERE id = ?1"
        );
        sqlite.prepare_cached(&sql)?.execute([&self.project])?;
        Ok(())
    }

    /// Returns the id of the project.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }
}

/// Returns a new identifier.
pub(crate) fn new_uuid() -> Result<Uuid, rusqlite::Error> {
    Uuid::random().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn sql_number(number: usize) -> i64 {
    saturated::<i64>(number)
}

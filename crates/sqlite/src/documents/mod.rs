//! The tables of projects, documents, chunks and searches in the SQLite file.
//!
//! A document has a row here and a record in the stream `documents` of its project's connection. Both are written in one
//! transaction; a deleted record takes the rows with it.
//!
//! * `writer`: writes the rows of documents beside their records
//! * `read`: reads projects, documents and chunks
//! * `history`: writes and reads searches
//! * `search`: the chunks of the documents that a search ranked

mod history;
mod read;
mod search;
mod writer;

use fetchwell_core::handle::ConnectionId;
use rusqlite::Connection;

pub(crate) use self::history::{
    add_search, delete_expired, delete_expired_of, grouped_searches, has_expired, searches, set_feedback,
};
pub(crate) use self::read::{DIALECT, chunks, document_text, known_documents, passages, project, rows};
pub(crate) use self::search::chunks_of;
pub(crate) use self::writer::{DocumentWriter, new_uuid};
use super::tables::{has_table, update_view};

/// Returns true if the store has the tables of projects.
pub(crate) fn has_tables(sqlite: &Connection) -> Result<bool, rusqlite::Error> {
    has_table(sqlite, "projects")
}

/// Returns true if a connection is a project.
pub(crate) fn is_project(sqlite: &Connection, connection: &ConnectionId) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM projects WHERE slug = ?1";
    Ok(has_tables(sqlite)? && sqlite.prepare_cached(sql)?.exists([connection.as_str()])?)
}

/// Creates the tables of projects.
pub(crate) fn create_tables(sqlite: &Connection) -> Result<(), rusqlite::Error> {
    sqlite.execute_batch(include_str!("schema.sql"))?;
    update_view(sqlite)
}

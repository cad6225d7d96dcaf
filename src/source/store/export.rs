//! Reads all records of a scope, one after the other, in the order in which they were imported.

use std::path::Path;

use rusqlite::Connection;

use super::database::Database;
use super::documents::is_project;
use super::place::{Place, ScopeError, StreamPlace, open};
use super::{NewConnection, StoreError};
use crate::handle::RecordScope;
use crate::source::manifest::kinds::MAX_FIELDS;

/// Maximum number of fields of a stream that an import keeps the names of.
pub const MAX_EXPORTED_FIELDS: usize = MAX_FIELDS;

/// Open export of a store.
#[derive(Debug)]
pub struct StoreExport {
    database: Database,
    place: Place,
}

/// Stream of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedStream {
    row: i64,
    /// Name of the stream.
    pub name: String,
    /// Number of records, without deleted ones.
    pub records: u64,
}

impl ExportedStream {
    pub(in crate::source) fn new(row: i64, name: String, records: u64) -> Self {
        Self { row, name, records }
    }

    pub(in crate::source) fn row(&self) -> i64 {
        self.row
    }
}

/// Record of an export. It is borrowed from the database until the next one is read.
#[derive(Debug, Clone, Copy)]
pub struct ExportedRecord<'a> {
    /// Key of the record.
    pub key: &'a str,
    /// Fields as JSON text of one line, as they were imported.
    pub data: &'a str,
    /// Time at which the connector emitted the record.
    pub emitted_at: Option<&'a str>,
}

/// Record as it is now, or its deletion. It is borrowed from the database until the next one is read.
#[derive(Debug, Clone, Copy)]
pub struct RowVersion<'a> {
    /// Key of the record.
    pub key: &'a str,
    /// Fields as JSON text of one line; `None` if the record is deleted.
    pub data: Option<&'a str>,
    /// Time at which the connector emitted the record, or at which it was deleted.
    pub emitted_at: Option<&'a str>,
}

/// Connection of a store that is copied.
#[derive(Debug, Clone)]
pub struct CopiedConnection {
    /// Names and manifest.
    pub connection: NewConnection,
    /// True for a project of documents.
    pub is_project: bool,
}

/// Reason why an export ends early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<Sink: std::error::Error> {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record cannot be written.
    #[error(transparent)]
    Sink(Sink),
}

impl StoreExport {
    /// Opens a store and finds the streams of a scope.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or does not have the connection or stream.
    pub fn open(store: &Path, scope: &RecordScope) -> Result<Self, ScopeError> {
        let (database, place) = open(store, scope)?;
        Ok(Self { database, place })
    }

    /// Returns the streams.
    #[must_use]
    pub fn streams(&self) -> Vec<ExportedStream> {
        let stream = |StreamPlace { row, name, records }: &StreamPlace| ExportedStream {
            row: *row,
            name: name.clone(),
            records: *records,
        };
        self.place.streams.iter().map(stream).collect()
    }

    /// Returns the names of the fields that records of a stream have, in the order of their first record, at most
    /// [`MAX_EXPORTED_FIELDS`].
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn fields(&self, stream: &ExportedStream) -> Result<Vec<String>, StoreError> {
        self.database.read(|sqlite| fields(sqlite, stream.row))
    }

    /// Reads the records of a stream as they are at one moment. Calls `visit` with each until it fails.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or `visit` failed.
    pub fn each_record<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        mut visit: impl FnMut(ExportedRecord<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        self.each_row(stream, |row| match row.data {
            Some(data) => visit(ExportedRecord { key: row.key, data, emitted_at: row.emitted_at }),
            None => Ok(()),
        })
    }

    /// Reads the records of a stream and those that were deleted, as they are at one moment. Calls `visit` with each until it
    /// fails.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or `visit` failed.
    pub fn each_row<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        mut visit: impl FnMut(RowVersion<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        let read = |sqlite: &Connection| {
            let mut statement = sqlite.prepare(
                "SELECT key, data, emitted_at FROM records NOT INDEXED WHERE stream = ?1 ORDER BY id",
            )?;
            let mut rows = statement.query([stream.row])?;
            while let Some(row) = rows.next()? {
                let version = RowVersion {
                    key: row.get_ref(0)?.as_str()?,
                    data: row.get_ref(1)?.as_str_or_null()?,
                    emitted_at: row.get_ref(2)?.as_str_or_null()?,
                };
                if let Err(error) = visit(version) {
                    return Ok(Err(ExportError::Sink(error)));
                }
            }
            Ok(Ok(()))
        };
        self.database.read(read)?
    }
}

/// Returns the connections of a store, in the order in which they were created.
///
/// # Errors
///
/// The store cannot be read.
pub fn copied_connections(store: &Path) -> Result<Vec<CopiedConnection>, StoreError> {
    let database = Database::open(store)?;
    database.read(|sqlite| {
        let sql = "SELECT connection_id, connector_key, display_name, manifest FROM connections ORDER BY id";
        let mut statement = sqlite.prepare(sql)?;
        let mut rows = statement.query(())?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let Ok(connection_id) = row.get_ref(0)?.as_str()?.parse() else { continue };
            let is_project = is_project(sqlite, &connection_id)?;
            let connection = NewConnection {
                connection_id,
                connector_key: row.get(1)?,
                display_name: row.get(2)?,
                manifest: row.get(3)?,
            };
            found.push(CopiedConnection { connection, is_project });
        }
        Ok(found)
    })
}

fn fields(sqlite: &Connection, stream: i64) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = sqlite.prepare(
        "SELECT f.name FROM fields f
         LEFT JOIN (SELECT e.key, e.id FROM (SELECT data FROM records WHERE stream = ?1 AND data IS NOT NULL
                    ORDER BY id LIMIT 1) r, json_each(r.data) e) first ON first.key = f.name
         WHERE f.stream = ?1 ORDER BY first.id IS NULL, first.id, f.name",
    )?;
    statement.query_map([stream], |row| row.get(0))?.collect()
}

//! Reads all records of a scope, one after the other, in the order in which they were imported.

use std::path::Path;

use rusqlite::Connection;

use super::database::Database;
use super::documents::is_project;
use super::place::{Place, StreamPlace, open};
use crate::handle::RecordScope;
use crate::source::contract::{
    CopiedConnection, ExportError, ExportedRecord, ExportedStream, NewConnection, RowVersion, ScopeError,
    StoreError,
};

/// Open export of a store.
#[derive(Debug)]
pub struct SqliteExport {
    database: Database,
    place: Place,
}

impl SqliteExport {
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
        let stream = |StreamPlace { row, name, records }: &StreamPlace| {
            ExportedStream::new(*row, name.clone(), *records)
        };
        self.place.streams.iter().map(stream).collect()
    }

    /// Returns the names of the fields that records of a stream have, in the order of their first record, at most
    /// [`MAX_EXPORTED_FIELDS`](crate::source::contract::MAX_EXPORTED_FIELDS).
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn fields(&self, stream: &ExportedStream) -> Result<Vec<String>, StoreError> {
        self.database.read(|sqlite| fields(sqlite, stream.row()))
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
            let mut rows = statement.query([stream.row()])?;
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

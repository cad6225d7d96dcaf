//! Reads of all records of a scope, from a file or a database, for exports and copies.

use std::path::Path;

use super::documents::ProjectCopy;
use super::postgres::{self, PostgresExport, PostgresPool};
use super::sqlite::{self, SqliteExport, copied_connections};
use crate::handle::{ConnectionId, RecordScope};
use crate::source::contract::{
    CopiedConnection, ExportError, ExportedRecord, ExportedStream, RowVersion, ScopeError, StoreError,
};

/// Open export of a store.
#[derive(Debug)]
pub enum RecordExport {
    /// Of an embedded store.
    File(SqliteExport),
    /// Of a store in PostgreSQL.
    Postgres(Box<PostgresExport>),
}

/// Store that is exported or copied.
#[derive(Debug, Clone)]
pub enum ExportPlace<'p> {
    /// The embedded store at a path.
    File(&'p Path),
    /// A store in PostgreSQL.
    Postgres(&'p PostgresPool),
}

impl ExportPlace<'_> {
    /// Opens a store and finds the streams of a scope.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or does not have the connection or stream.
    pub fn open(&self, scope: &RecordScope) -> Result<RecordExport, ScopeError> {
        Ok(match self {
            Self::File(path) => RecordExport::File(SqliteExport::open(path, scope)?),
            Self::Postgres(pool) => RecordExport::Postgres(Box::new(PostgresExport::open(pool, scope)?)),
        })
    }

    /// Returns the connections of the store, in the order in which they were created.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn connections(&self) -> Result<Vec<CopiedConnection>, StoreError> {
        match self {
            Self::File(path) => copied_connections(path),
            Self::Postgres(pool) => PostgresExport::connections(pool),
        }
    }

    /// Returns the project of a connection, or `None` if it is no project, or does not exist.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn project(&self, connection: &ConnectionId) -> Result<Option<ProjectCopy>, StoreError> {
        match self {
            Self::File(path) => sqlite::copied_project(path, connection),
            Self::Postgres(pool) => postgres::copied_project(pool, connection),
        }
    }
}

impl RecordExport {
    /// Returns the streams.
    #[must_use]
    pub fn streams(&self) -> Vec<ExportedStream> {
        match self {
            Self::File(export) => export.streams(),
            Self::Postgres(export) => export.streams(),
        }
    }

    /// Returns the names of the fields that records of a stream have, in the order of their first record, at most
    /// [`MAX_EXPORTED_FIELDS`](super::contract::MAX_EXPORTED_FIELDS).
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn fields(&self, stream: &ExportedStream) -> Result<Vec<String>, StoreError> {
        match self {
            Self::File(export) => export.fields(stream),
            Self::Postgres(export) => export.fields(stream),
        }
    }

    /// Reads the records of a stream as they are at one moment. Calls `visit` with each until it fails.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or `visit` failed.
    pub fn each_record<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        visit: impl FnMut(ExportedRecord<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        match self {
            Self::File(export) => export.each_record(stream, visit),
            Self::Postgres(export) => export.each_record(stream, visit),
        }
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
        visit: impl FnMut(RowVersion<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        match self {
            Self::File(export) => export.each_row(stream, visit),
            Self::Postgres(export) => export.each_row(stream, visit),
        }
    }
}

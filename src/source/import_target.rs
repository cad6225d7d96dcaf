//! The store that an import writes to: a file or a database.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::documents::{ChunkIds, Project};
use super::postgres::{self, PostgresPool, PostgresWriter};
use super::sqlite::{self, IndexProgress, SqliteWriter};
use crate::source::contract::{ImportResult, IncomingRecord, NewConnection, StoreError};

/// Store that an import writes to. The writer creates it with the first record.
#[derive(Debug, Clone)]
pub enum ImportTarget {
    /// The embedded store at this path.
    File(PathBuf),
    /// A store in PostgreSQL.
    Postgres {
        /// Connections to the database.
        pool: PostgresPool,
        /// Runtime that drives the connections, on another thread than that of the import.
        runtime: Handle,
    },
}

impl From<&Path> for ImportTarget {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl ImportTarget {
    /// Opens the store and the connection, creating either if it does not exist. Calls `progress` with the numbers of changes
    /// that were added to the search index, and of those that it lacks.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be used.
    pub fn open(
        &self,
        connection: &NewConnection,
        progress: IndexProgress<'_>,
    ) -> Result<ImportWriter, StoreError> {
        Ok(match self {
            Self::File(path) => ImportWriter::File(Box::new(SqliteWriter::open(path, connection, progress)?)),
            Self::Postgres { pool, runtime } => {
                ImportWriter::Postgres(Box::new(PostgresWriter::open(pool, runtime, connection)?))
            }
        })
    }

    /// Creates a copied project with its id, or changes the one with this id.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or has another project or connection of the name.
    pub fn put_project(&self, project: &Project) -> Result<(), StoreError> {
        match self {
            Self::File(path) => sqlite::put_copied_project(path, project),
            Self::Postgres { pool, .. } => postgres::put_copied_project(pool, project),
        }
    }

    /// Opens the connection of a project that is copied, with the ids of its chunks.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be used.
    pub fn open_copy(
        &self,
        connection: &NewConnection,
        chunks: ChunkIds,
        progress: IndexProgress<'_>,
    ) -> Result<ImportWriter, StoreError> {
        Ok(match self {
            Self::File(path) => {
                ImportWriter::File(Box::new(SqliteWriter::open_copy(path, connection, chunks, progress)?))
            }
            Self::Postgres { pool, runtime } => {
                let writer = PostgresWriter::open_copy(pool, runtime, connection, chunks)?;
                ImportWriter::Postgres(Box::new(writer))
            }
        })
    }
}

/// Writer of an import to its end.
#[derive(Debug)]
pub enum ImportWriter {
    /// Writer of an embedded store.
    File(Box<SqliteWriter>),
    /// Writer of a store in PostgreSQL.
    Postgres(Box<PostgresWriter>),
}

impl ImportWriter {
    /// Adds a record of `bytes` bytes to the next batch.
    ///
    /// # Errors
    ///
    /// Returns an error if the batch was full and could not be written. Earlier batches stay written.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        match self {
            Self::File(writer) => writer.write(record, bytes),
            Self::Postgres(writer) => writer.write(record, bytes),
        }
    }

    /// Writes the records that were added and not yet written.
    ///
    /// # Errors
    ///
    /// Returns an error if they could not be written; they are dropped. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        match self {
            Self::File(writer) => writer.flush(),
            Self::Postgres(writer) => writer.flush(),
        }
    }

    /// Writes the last batch. Calls `progress` with the numbers of changes that were added to the search index, and of those
    /// that it lacks.
    ///
    /// # Errors
    ///
    /// Returns an error if it could not be written. Earlier batches stay written.
    pub fn finish(self, progress: IndexProgress<'_>) -> Result<ImportResult, StoreError> {
        match self {
            Self::File(writer) => writer.finish(progress),
            Self::Postgres(writer) => writer.finish(),
        }
    }
}

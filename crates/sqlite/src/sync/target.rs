//! The file that an import to its end writes to.

use std::path::{Path, PathBuf};

use fetchwell_source::contract::{IndexProgress, NewConnection, StoreError};
use fetchwell_source::documents::{ChunkIds, Project};
use fetchwell_source::sync::{ImportTarget, ImportWriter};

use super::tables::SqliteImportTables;
use crate::document_store::put_copied_project;

/// A file that an import writes to, which may not exist yet.
#[derive(Debug, Clone)]
pub struct SqliteTarget {
    path: PathBuf,
}

impl SqliteTarget {
    /// Creates the target at a path.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl ImportTarget for SqliteTarget {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn put_project(&self, project: &Project) -> Result<(), StoreError> {
        put_copied_project(&self.path, project)
    }

    fn open(
        &self,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
        progress: IndexProgress<'_>,
    ) -> Result<ImportWriter, StoreError> {
        Ok(SqliteImportTables::open_connection(&self.path, connection, chunks, progress)?.into_writer())
    }
}

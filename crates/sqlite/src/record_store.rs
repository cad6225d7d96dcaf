//! A store in a file, as commands see it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::handle::{ConnectionId, RecordScope, SourceName};
use fetchwell_source::contract::{
    CopiedConnection, EmbeddedStreams, RememberedImport, RemovalError, RemovalPlan, RemovalResult,
    ScopeError, StoreError, StoreInfo, TableVersions, VectorError,
};
use fetchwell_source::documents::{DocumentStore, ProjectCopy};
use fetchwell_source::{RecordExport, RecordStore, SyncStore};

use super::database::Database;
use super::document_store::copied_project;
use super::export::{SqliteExport, copied_connections};
use super::info::{sqlite_info, store_format};
use super::removal::{count_removal, finish_removal, remove_records};
use super::{SqliteStore, SqliteSyncStore};

/// Store in a file.
#[derive(Debug, Clone)]
pub struct SqliteFile {
    path: PathBuf,
}

impl SqliteFile {
    /// Creates the store of a path, where there may be no file yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

#[async_trait]
impl RecordStore for SqliteFile {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn create(&self) -> Result<(), StoreError> {
        Database::open_or_create(&self.path).map(drop)
    }

    fn export(&self, scope: &RecordScope) -> Result<Box<dyn RecordExport>, ScopeError> {
        Ok(Box::new(SqliteExport::open(&self.path, scope)?))
    }

    fn connections(&self) -> Result<Vec<CopiedConnection>, StoreError> {
        copied_connections(&self.path)
    }

    fn project(&self, connection: &ConnectionId) -> Result<Option<ProjectCopy>, StoreError> {
        copied_project(&self.path, connection)
    }

    fn documents(&self, name: SourceName, _timeout: Duration) -> Result<Box<dyn DocumentStore>, StoreError> {
        Ok(Box::new(SqliteStore::open(name, &self.path)?))
    }

    async fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        SqliteSyncStore::open(&self.path)?.imports()
    }

    async fn info(&self, embedded: &EmbeddedStreams) -> Result<StoreInfo, VectorError> {
        sqlite_info(&self.path, embedded)
    }

    async fn table_versions(&self) -> Result<TableVersions, StoreError> {
        let format = store_format(&self.path)?;
        Ok(TableVersions { found: Some(format), known: format, applied: Vec::new() })
    }

    async fn finish_removal(&self) -> Result<(), StoreError> {
        finish_removal(&self.path)
    }

    async fn plan_removal(&self, scope: &RecordScope) -> Result<RemovalPlan, RemovalError> {
        let counts = count_removal(&self.path, scope)?;
        let imports = self.imports().await?;
        let import = imports.into_iter().find(|import| import.connection_id == scope.connection);
        Ok(RemovalPlan { counts, import })
    }

    async fn remove(&self, scope: &RecordScope) -> Result<RemovalResult, RemovalError> {
        remove_records(&self.path, scope).await
    }
}

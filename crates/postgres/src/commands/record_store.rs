//! A store in PostgreSQL, as commands see it.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::handle::{ConnectionId, RecordScope, SourceName};
use fetchwell_source::contract::{
    CopiedConnection, EmbeddedStreams, RememberedImport, RemovalError, RemovalPlan, RemovalResult,
    ScopeError, StoreError, StoreInfo, TableVersions, VectorError,
};
use fetchwell_source::documents::{DocumentStore, ProjectCopy, Uuid};
use fetchwell_source::{RecordExport, RecordStore, SourceError};

use super::export::{PostgresExport, connections};
use super::info::postgres_info;
use super::removal::{count_removal, remove_records};
use super::versions::{migrate_tables, table_versions};
use crate::documents::copied_project;
use crate::pool::PostgresPool;
use crate::store::PostgresStore;
use crate::sync::postgres_imports;

#[async_trait]
impl RecordStore for PostgresPool {
    fn place(&self) -> String {
        self.url().to_string()
    }

    fn export(&self, scope: &RecordScope) -> Result<Box<dyn RecordExport>, ScopeError> {
        Ok(Box::new(PostgresExport::open(self, scope)?))
    }

    fn connections(&self) -> Result<Vec<CopiedConnection>, StoreError> {
        connections(self)
    }

    fn project(&self, connection: &ConnectionId) -> Result<Option<ProjectCopy>, StoreError> {
        copied_project(self, connection)
    }

    fn documents(&self, name: SourceName, timeout: Duration) -> Result<Box<dyn DocumentStore>, StoreError> {
        Ok(Box::new(PostgresStore::new(name, self.clone(), timeout)))
    }

    async fn remove_project(
        &self,
        name: SourceName,
        timeout: Duration,
        project: Uuid,
    ) -> Result<Option<bool>, SourceError> {
        PostgresStore::new(name, self.clone(), timeout).delete_project(project).await.map(Some)
    }

    async fn imports(&self) -> Result<Vec<RememberedImport>, StoreError> {
        Ok(postgres_imports(self).await?)
    }

    async fn info(&self, _embedded: &EmbeddedStreams) -> Result<StoreInfo, VectorError> {
        Ok(postgres_info(self).await.map_err(StoreError::from)?)
    }

    async fn table_versions(&self) -> Result<TableVersions, StoreError> {
        Ok(table_versions(self).await?)
    }

    async fn migrate(&self) -> Result<(TableVersions, TableVersions), StoreError> {
        Ok(migrate_tables(self).await?)
    }

    async fn plan_removal(&self, scope: &RecordScope) -> Result<RemovalPlan, RemovalError> {
        Ok(RemovalPlan { counts: count_removal(self, scope).await?, import: None })
    }

    async fn remove(&self, scope: &RecordScope) -> Result<RemovalResult, RemovalError> {
        Ok(remove_records(self, scope).await?)
    }
}

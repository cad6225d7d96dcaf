//! The trait of stores as commands see them: what they read, describe, migrate and remove as a whole.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::handle::{ConnectionId, RecordScope, SourceName};

use super::SourceError;
use super::documents::{DocumentStore, ProjectCopy, Uuid};
use super::record_export::RecordExport;
use crate::contract::{
    CopiedConnection, EmbeddedStreams, RememberedImport, RemovalError, RemovalPlan, RemovalResult,
    ScopeError, StoreError, StoreInfo, TableVersions, VectorError,
};

/// Store in a file or a database. Each call opens or connects, and fails if the store cannot be used. Methods that are not async
/// block, and must not be called on a thread of an async runtime.
#[async_trait]
pub trait RecordStore: Send + Sync + fmt::Debug {
    /// Returns the path of a file, or the address of a database without its password.
    fn place(&self) -> String;

    /// Returns the path of a store in a file. A database has none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Creates a file that does not exist. A database gets its tables from its first connection.
    fn create(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Opens an export of the streams of a scope.
    fn export(&self, scope: &RecordScope) -> Result<Box<dyn RecordExport>, ScopeError>;

    /// Returns the connections, in the order in which they were created.
    fn connections(&self) -> Result<Vec<CopiedConnection>, StoreError>;

    /// Returns the project of a connection, or `None` if it is no project, or does not exist.
    fn project(&self, connection: &ConnectionId) -> Result<Option<ProjectCopy>, StoreError>;

    /// Opens the projects of the store, with the name of the source and the timeout of its reads.
    fn documents(&self, name: SourceName, timeout: Duration) -> Result<Box<dyn DocumentStore>, StoreError>;

    /// Removes a project of a database with its documents, chunks, records, imports and history. Returns `None` for a file, which
    /// removes the connection of the project instead.
    async fn remove_project(
        &self,
        _name: SourceName,
        _timeout: Duration,
        _project: Uuid,
    ) -> Result<Option<bool>, SourceError> {
        Ok(None)
    }

    /// Returns the imports that the store remembers, in the order in which they were added.
    async fn imports(&self) -> Result<Vec<RememberedImport>, StoreError>;

    /// Reads the description of the store, of which some streams are embedded. Nothing is written.
    async fn info(&self, embedded: &EmbeddedStreams) -> Result<StoreInfo, VectorError>;

    /// Returns the versions of the tables, and changes nothing.
    async fn table_versions(&self) -> Result<TableVersions, StoreError>;

    /// Creates the tables of a database, or brings them to the version of this release. Returns the versions before and
    /// after. A file needs no migration.
    async fn migrate(&self) -> Result<(TableVersions, TableVersions), StoreError> {
        let versions = self.table_versions().await?;
        Ok((versions.clone(), versions))
    }

    /// Completes a removal that was interrupted.
    async fn finish_removal(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Counts what a removal would delete.
    async fn plan_removal(&self, scope: &RecordScope) -> Result<RemovalPlan, RemovalError>;

    /// Removes a connection, a stream or a record, with everything that is derived from it.
    async fn remove(&self, scope: &RecordScope) -> Result<RemovalResult, RemovalError>;
}

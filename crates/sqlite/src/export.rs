//! Reads all records of a scope, one after the other, in the order in which they were imported.

use std::ops::ControlFlow;
use std::path::Path;

use fetchwell_core::handle::RecordScope;
use fetchwell_source::RecordExport;
use fetchwell_source::contract::{
    CopiedConnection, ExportedStream, NewConnection, RowVersion, ScopeError, StoreError, StreamFields,
};
use rusqlite::OptionalExtension;

use super::database::Database;
use super::documents::is_project;
use super::place::open;

/// Open export of a store.
#[derive(Debug)]
pub(crate) struct SqliteExport {
    database: Database,
    streams: Vec<ExportedStream>,
}

impl SqliteExport {
    /// Opens a store and finds the streams of a scope.
    pub(crate) fn open(store: &Path, scope: &RecordScope) -> Result<Self, ScopeError> {
        let (database, rows) = open(store, scope)?;
        Ok(Self { database, streams: rows.streams })
    }
}

impl RecordExport for SqliteExport {
    fn streams(&self) -> &[ExportedStream] {
        &self.streams
    }

    fn fields(&self, stream: &ExportedStream) -> Result<StreamFields, StoreError> {
        self.database.read(|sqlite| {
            let mut names = sqlite.prepare("SELECT name FROM fields WHERE stream = ?1")?;
            let names = names.query_map([stream.row()], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let first = "SELECT data FROM records WHERE stream = ?1 AND data IS NOT NULL ORDER BY id LIMIT 1";
            let first = sqlite.query_row(first, [stream.row()], |row| row.get(0)).optional()?;
            Ok(StreamFields { names, first })
        })
    }

    fn visit_rows(
        &self,
        stream: &ExportedStream,
        visit: &mut dyn FnMut(RowVersion<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.database.read(|sqlite| {
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
                if visit(version).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Returns the connections of a store, in the order in which they were created.
pub(crate) fn copied_connections(store: &Path) -> Result<Vec<CopiedConnection>, StoreError> {
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

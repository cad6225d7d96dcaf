//! Reads all records of a scope, one after the other, in the order of their last changes.

use deadpool_postgres::Transaction;

use super::blocking::Blocking;
use super::scope::{Place, resolve};
use crate::handle::{ConnectionId, RecordScope};
use crate::record::RecordData;
use crate::source::contract::{
    CopiedConnection, ExportError, ExportedRecord, ExportedStream, NewConnection, RowVersion, ScopeError,
    StoreError,
};
use crate::source::postgres::document_rows::is_project;
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::transaction::begin_read;

/// Number of records that are read at a time. A record has at most some megabytes.
const BATCH: i32 = 200;

/// Open export of a store in PostgreSQL, for a command without a runtime.
#[derive(Debug)]
pub struct PostgresExport {
    database: Blocking,
    place: Place,
}

impl PostgresExport {
    /// Connects and finds the streams of a scope.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or does not have the connection or stream.
    pub fn open(pool: &PostgresPool, scope: &RecordScope) -> Result<Self, ScopeError> {
        let database = Blocking::new(pool).map_err(StoreError::from)?;
        let pool = database.pool();
        let place = database.wait(async {
            let mut connection = pool.connection().await.map_err(StoreError::from)?;
            let failed = |error| StoreError::from(pool.failure(&error));
            let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
            resolve(&transaction, scope).await.map_err(failed)?
        })?;
        Ok(Self { database, place })
    }

    /// Returns the streams.
    #[must_use]
    pub fn streams(&self) -> Vec<ExportedStream> {
        let streams = self.place.streams.iter();
        streams.map(|stream| ExportedStream::new(stream.row, stream.name.clone(), stream.records)).collect()
    }

    /// Returns the names of the fields that records of a stream have, in the order of their first record.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn fields(&self, stream: &ExportedStream) -> Result<Vec<String>, StoreError> {
        let names = self.read(async |transaction| {
            let sql = "SELECT name FROM fetchwell.fields WHERE stream = $1 ORDER BY name";
            let names = transaction.query(sql, &[&stream.row()]).await?;
            let sql = "SELECT data FROM fetchwell.records WHERE stream = $1 AND data IS NOT NULL
                 ORDER BY version LIMIT 1";
            let first = transaction.query_opt(sql, &[&stream.row()]).await?;
            let first: Option<RecordData> =
                first.and_then(|row| serde_json::from_str(row.get::<_, &str>(0)).ok());
            let names: Vec<String> = names.iter().map(|row| row.get(0)).collect();
            Ok((names, first.unwrap_or_default()))
        })?;
        let (mut names, first) = names;
        let place = |name: &String| first.keys().position(|known| known == name).unwrap_or(usize::MAX);
        names.sort_by_key(|name| (place(name), name.clone()));
        Ok(names)
    }

    /// Reads the records of a stream as they are at one moment. Calls `visit` with each until it fails.
    ///
    /// # Errors
    ///
    /// The database cannot be read, or `visit` failed.
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
    /// The database cannot be read, or `visit` failed.
    pub fn each_row<Sink: std::error::Error>(
        &self,
        stream: &ExportedStream,
        mut visit: impl FnMut(RowVersion<'_>) -> Result<(), Sink>,
    ) -> Result<(), ExportError<Sink>> {
        let (database, pool) = (&self.database, self.database.pool());
        let failed = |error| StoreError::from(pool.failure(&error));
        let mut connection = database.wait(pool.connection()).map_err(StoreError::from)?;
        let transaction = database.wait(begin_read(&mut connection, pool.url())).map_err(failed)?;
        let sql = "SELECT key, data, emitted_at FROM fetchwell.records WHERE stream = $1 ORDER BY version";
        let portal = database.wait(async {
            let statement = transaction.prepare(sql).await?;
            transaction.bind(&statement, &[&stream.row()]).await
        });
        let portal = portal.map_err(failed)?;
        // Records are visited between the waits, so that a visit may wait for another database.
        loop {
            let rows = database.wait(transaction.query_portal(&portal, BATCH)).map_err(failed)?;
            for row in &rows {
                visit(RowVersion { key: row.get(0), data: row.get(1), emitted_at: row.get(2) })
                    .map_err(ExportError::Sink)?;
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the connections of a database, in the order in which they were created.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn connections(pool: &PostgresPool) -> Result<Vec<CopiedConnection>, StoreError> {
        let database = Blocking::new(pool)?;
        read(&database, async |transaction| {
            let sql = "SELECT connection_id, connector_key, display_name, manifest
                 FROM fetchwell.connections ORDER BY id";
            let mut found = Vec::new();
            for row in transaction.query(sql, &[]).await? {
                let Ok(connection_id) = row.get::<_, &str>(0).parse::<ConnectionId>() else { continue };
                let is_project = is_project(transaction.client(), &connection_id).await?;
                let connection = NewConnection {
                    connection_id,
                    connector_key: row.get(1),
                    display_name: row.get(2),
                    manifest: row.get(3),
                };
                found.push(CopiedConnection { connection, is_project });
            }
            Ok(found)
        })
    }

    fn read<Answer>(
        &self,
        run: impl AsyncFnOnce(&Transaction<'_>) -> Result<Answer, tokio_postgres::Error>,
    ) -> Result<Answer, StoreError> {
        read(&self.database, run)
    }
}

/// Runs a read in a transaction.
fn read<Answer>(
    database: &Blocking,
    run: impl AsyncFnOnce(&Transaction<'_>) -> Result<Answer, tokio_postgres::Error>,
) -> Result<Answer, StoreError> {
    let pool = database.pool();
    database.wait(async {
        let mut connection = pool.connection().await?;
        let failed = |error| StoreError::from(pool.failure(&error));
        let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
        run(&transaction).await.map_err(failed)
    })
}

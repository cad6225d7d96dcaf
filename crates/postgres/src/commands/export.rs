//! Reads all records of a scope, one after the other, in the order of their last changes.

use std::ops::ControlFlow;

use deadpool_postgres::Transaction;
use fetchwell_core::handle::{ConnectionId, RecordScope};
use fetchwell_source::RecordExport;
use fetchwell_source::contract::{
    CopiedConnection, ExportedStream, NewConnection, RowVersion, ScopeError, StoreError, StreamFields,
};

use super::scope::look_up;
use crate::administration::Blocking;
use crate::document_rows::is_project;
use crate::pool::PostgresPool;
use crate::transaction::begin_read;

/// Number of records that are read at a time. A record has at most some megabytes.
const BATCH: i32 = 200;

/// Open export of a store in PostgreSQL, for a command without a runtime.
#[derive(Debug)]
pub(super) struct PostgresExport {
    database: Blocking,
    streams: Vec<ExportedStream>,
}

impl PostgresExport {
    /// Connects and finds the streams of a scope.
    pub(super) fn open(pool: &PostgresPool, scope: &RecordScope) -> Result<Self, ScopeError> {
        let database = Blocking::new(pool).map_err(StoreError::from)?;
        let found = read(&database, async |transaction| look_up(transaction, scope).await)?;
        Ok(Self { database, streams: found.resolve(scope)?.streams })
    }
}

impl RecordExport for PostgresExport {
    fn streams(&self) -> &[ExportedStream] {
        &self.streams
    }

    fn fields(&self, stream: &ExportedStream) -> Result<StreamFields, StoreError> {
        read(&self.database, async |transaction| {
            let sql = "SELECT name FROM fetchwell.fields WHERE stream = $1";
            let names = transaction.query(sql, &[&stream.row()]).await?;
            let sql = "SELECT data FROM fetchwell.records WHERE stream = $1 AND data IS NOT NULL
                 ORDER BY version LIMIT 1";
            let first = transaction.query_opt(sql, &[&stream.row()]).await?;
            let names = names.iter().map(|row| row.get(0)).collect();
            Ok(StreamFields { names, first: first.map(|row| row.get(0)) })
        })
    }

    fn visit_rows(
        &self,
        stream: &ExportedStream,
        visit: &mut dyn FnMut(RowVersion<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (database, pool) = (&self.database, self.database.pool());
        let failed = |error| StoreError::from(pool.failure(&error));
        let mut connection = database.wait(pool.connection())?;
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
                let row = RowVersion { key: row.get(0), data: row.get(1), emitted_at: row.get(2) };
                if visit(row).is_break() {
                    return Ok(());
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Returns the connections of a database, in the order in which they were created.
pub(super) fn connections(pool: &PostgresPool) -> Result<Vec<CopiedConnection>, StoreError> {
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

//! Queries of one transaction, which wait for the database on a blocking thread.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use deadpool_postgres::Transaction;
use fetchwell_source::SourceError;
use fetchwell_source::contract::PostgresError;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::pool::PostgresPool;

/// Numbers of rows of the first batch and of the following ones.
const FIRST_BATCH: i32 = 32;
const MAX_BATCH: i32 = 256;

/// Values of a query.
pub(crate) type Values<'a> = [&'a (dyn ToSql + Sync)];

/// Queries of a transaction, on a blocking thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queries<'a> {
    transaction: &'a Transaction<'a>,
    waiting: &'a DatabaseWaiter,
}

impl<'a> Queries<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, waiting: &'a DatabaseWaiter) -> Self {
        Self { transaction, waiting }
    }

    pub(crate) fn query(&self, sql: &str, values: &Values<'_>) -> Result<Vec<Row>, SourceError> {
        self.waiting.wait(async {
            let statement = self.transaction.prepare_cached(sql).await?;
            self.transaction.query(&statement, values).await
        })
    }

    /// Runs statements that have no values.
    pub(crate) fn execute(&self, sql: &str) -> Result<(), SourceError> {
        self.waiting.wait(self.transaction.batch_execute(sql))
    }

    /// Passes the rows of a query to `each` in batches, until it returns false.
    pub(crate) fn batches(
        &self,
        sql: &str,
        values: &Values<'_>,
        each: &mut dyn FnMut(&Row) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let portal = self.waiting.wait(async {
            let statement = self.transaction.prepare_cached(sql).await?;
            self.transaction.bind(&statement, values).await
        })?;
        let mut batch = FIRST_BATCH;
        loop {
            let rows = self.waiting.wait(self.transaction.query_portal(&portal, batch))?;
            for row in &rows {
                if !each(row)? {
                    return Ok(());
                }
            }
            if rows.len() < usize::try_from(batch).unwrap_or_default() {
                return Ok(());
            }
            batch = (batch * 2).min(MAX_BATCH);
        }
    }
}

/// Waits for the database on a blocking thread, until the deadline of the read.
#[derive(Debug)]
pub(crate) struct DatabaseWaiter {
    pub(crate) runtime: Handle,
    pub(crate) until: Instant,
    pub(crate) deadline: Duration,
    pub(crate) pool: PostgresPool,
    /// True after the server ended a statement because of a deadlock.
    pub(crate) has_deadlocked: Cell<bool>,
}

impl DatabaseWaiter {
    pub(crate) fn wait<Answer>(
        &self,
        future: impl Future<Output = Result<Answer, Error>>,
    ) -> Result<Answer, SourceError> {
        let answer = self.runtime.block_on(async { timeout_at(self.until, future).await });
        let late = || SourceError::Timeout { after: self.deadline };
        match answer.map_err(|_elapsed| late())? {
            Ok(answer) => Ok(answer),
            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                self.has_deadlocked.set(true);
                Err(self.pool.failure(&error).into())
            }
            Err(error) => Err(match self.pool.failure(&error) {
                PostgresError::Timeout { .. } => late(),
                other => other.into(),
            }),
        }
    }
}

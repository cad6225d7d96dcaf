//! Waits for the database on a blocking thread.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use fetchwell_source::SourceError;
use fetchwell_source::contract::PostgresError;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::pool::PostgresPool;

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

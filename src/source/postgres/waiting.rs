//! Waits for the database on a blocking thread.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Error;

use super::pool::PostgresPool;
use crate::source::SourceError;
use crate::source::postgres_error::PostgresError;

/// Waits for the database on a blocking thread, until the deadline of the read.
#[derive(Debug)]
pub(super) struct DatabaseWaiter {
    pub(super) runtime: Handle,
    pub(super) until: Instant,
    pub(super) deadline: Duration,
    pub(super) pool: PostgresPool,
}

impl DatabaseWaiter {
    pub(super) fn wait<Answer>(
        &self,
        future: impl Future<Output = Result<Answer, Error>>,
    ) -> Result<Answer, SourceError> {
        let answer = self.runtime.block_on(async { timeout_at(self.until, future).await });
        let late = || SourceError::Timeout { after: self.deadline };
        match answer.map_err(|_elapsed| late())? {
            Ok(answer) => Ok(answer),
            Err(error) => Err(match self.pool.failure(&error) {
                PostgresError::Timeout { .. } => late(),
                other => other.into(),
            }),
        }
    }
}

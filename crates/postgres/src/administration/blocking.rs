//! Steps of commands that have no runtime: each runs to its end on the calling thread.

use std::future::Future;

use fetchwell_source::contract::PostgresError;
use tokio::runtime::{Builder, Runtime};

use crate::pool::PostgresPool;

/// Connections to a database for a command without a runtime.
#[derive(Debug)]
pub struct Blocking {
    runtime: Runtime,
    pool: PostgresPool,
}

impl Blocking {
    /// Prepares a runtime for the calling thread.
    ///
    /// # Errors
    ///
    /// The system has no more file descriptors.
    pub fn new(pool: &PostgresPool) -> Result<Self, PostgresError> {
        // A connection works only while the runtime that opened it runs.
        let pool = pool.separate()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| PostgresError::Unreachable {
            database: pool.url().to_string(),
            problem: error.to_string(),
        })?;
        Ok(Self { runtime, pool })
    }

    /// Runs a step to its end.
    pub fn wait<Answer>(&self, step: impl Future<Output = Answer>) -> Answer {
        self.runtime.block_on(step)
    }

    /// Returns the connections.
    #[must_use]
    pub fn pool(&self) -> &PostgresPool {
        &self.pool
    }
}

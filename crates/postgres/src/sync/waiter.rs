//! Waits for steps in a database on threads that are not of a runtime.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use fetchwell_source::contract::{PostgresError, StoreError};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;
use tokio_postgres::Error;

use crate::pool::PostgresPool;
use crate::transaction::begin_write;

/// Maximum time of a step, in which it may also wait for the batch of another import.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum time to build the indexes of records or vectors, or to merge the words of a large import.
const LONG_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

/// Connections to a database, with the runtime that drives them. Clones share both.
#[derive(Clone)]
pub(super) struct Waiter {
    pool: PostgresPool,
    runtime: Handle,
    _owned: Option<Arc<OwnedRuntime>>,
}

/// A runtime that ends with the last waiter.
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        // A runtime that is dropped within another one would wait for its threads there.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Waiter {
    /// Waits with a runtime of another thread.
    pub(super) fn new(pool: PostgresPool, runtime: Handle) -> Self {
        Self { pool, runtime, _owned: None }
    }

    /// Waits with a runtime of its own. Nothing else uses the connections of `pool`.
    pub(super) fn with_own_runtime(pool: PostgresPool) -> Result<Self, StoreError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let late = |_error| PostgresError::Timeout { database: pool.url().to_string() };
        let runtime = runtime.map_err(late)?;
        let handle = runtime.handle().clone();
        Ok(Self { pool, runtime: handle, _owned: Some(Arc::new(OwnedRuntime(Some(runtime)))) })
    }

    pub(super) fn pool(&self) -> &PostgresPool {
        &self.pool
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the address of the database.
    pub(super) fn address(&self) -> String {
        self.pool.url().to_string()
    }

    /// Returns the address of the database in place of a path.
    pub(super) fn place(&self) -> PathBuf {
        self.address().into()
    }

    /// Returns a connection.
    pub(super) fn connection(&self) -> Result<Object, StoreError> {
        self.wait(async { self.pool.connection().await })
    }

    /// Runs a step in a transaction of its own.
    pub(super) fn run<Answer>(
        &self,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<Answer, Error>,
    ) -> Result<Answer, StoreError> {
        self.wait(async {
            let mut connection = self.pool.connection().await?;
            self.transact(&mut connection, step).await
        })
    }

    /// Runs a step in a transaction of a connection.
    pub(super) async fn transact<Answer>(
        &self,
        connection: &mut Object,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Result<Answer, Error>,
    ) -> Result<Answer, PostgresError> {
        let run = async {
            let transaction = begin_write(connection, self.pool.url()).await?;
            let answer = step(&transaction).await?;
            transaction.commit().await?;
            Ok(answer)
        };
        run.await.map_err(|error| self.pool.failure(&error))
    }

    /// Waits for a step on a thread that is not one of a runtime.
    pub(super) fn wait<Answer>(
        &self,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        self.wait_within(STEP_TIMEOUT, step)
    }

    /// Waits for an index or a merge of words, which can take long.
    pub(super) fn wait_long<Answer>(
        &self,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        self.wait_within(LONG_TIMEOUT, step)
    }

    fn wait_within<Answer>(
        &self,
        limit: Duration,
        step: impl Future<Output = Result<Answer, PostgresError>>,
    ) -> Result<Answer, StoreError> {
        let answer = self.runtime.block_on(async { timeout(limit, step).await });
        Ok(answer.unwrap_or_else(|_elapsed| Err(PostgresError::Timeout { database: self.address() }))?)
    }
}

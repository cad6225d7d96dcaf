//! One read: a read-only transaction on a blocking thread, bounded by a deadline and cancelled when its future is dropped.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::CancelToken;

use super::pool::PostgresPool;
use super::tables::PostgresTables;
use super::tls::PostgresTls;
use super::transaction::begin_read;
use super::waiting::DatabaseWaiter;
use crate::source::SourceError;
use crate::source::relational::interrupt::{Interrupt, InterruptOnDrop};
use crate::source::store::StoreError;

/// Runs a read, again if a deadlock ended it: an import that drops and creates indexes locks tables in another order.
pub(super) async fn repeat_after_deadlock<Answer, Asked>(
    ask: impl Fn() -> Asked,
) -> Result<Answer, SourceError>
where
    Asked: Future<Output = Result<Answer, SourceError>>,
{
    match ask().await {
        Err(SourceError::Store(StoreError::Postgres(error))) if error.is_deadlock() => ask().await,
        answer => answer,
    }
}

/// Runs a read of the tables. The reads of `relational` are synchronous, so it runs on a blocking thread.
pub(super) async fn read<Answer: Send + 'static>(
    pool: &PostgresPool,
    deadline: Duration,
    read: impl FnOnce(&PostgresTables<'_>, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
) -> Result<Answer, SourceError> {
    let until = Instant::now() + deadline;
    let late = || SourceError::Timeout { after: deadline };
    let mut connection = timeout_at(until, pool.connection()).await.map_err(|_elapsed| late())??;
    let interrupt = Interrupt::default();
    let mut guard = CancelOnDrop {
        _interrupt: InterruptOnDrop(interrupt.clone()),
        token: Some(connection.cancel_token()),
        tls: pool.tls(),
    };
    let (pool, runtime) = (pool.clone(), Handle::current());
    let answer = spawn_blocking(move || {
        let waiting = DatabaseWaiter { runtime, until, deadline, pool: pool.clone() };
        let transaction = waiting.wait(begin_read(&mut connection, pool.url()))?;
        waiting.wait(transaction.batch_execute(&statement_timeout(deadline)))?;
        read(&PostgresTables::new(&transaction, &waiting), &interrupt)
    });
    let answer = answer.await;
    guard.token = None;
    match answer {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Returns the statement that bounds the statements of a transaction. The server also stops those of a client that it
/// cannot reach.
fn statement_timeout(deadline: Duration) -> String {
    format!("SET LOCAL statement_timeout = {}", deadline.as_millis().clamp(1, 2_000_000_000))
}

/// Cancels the statement of a read when its future is dropped.
struct CancelOnDrop {
    _interrupt: InterruptOnDrop,
    token: Option<CancelToken>,
    tls: PostgresTls,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let tls = self.tls.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Without the request the statement ends at its timeout.
                let _ = token.cancel_query(tls).await;
            });
        }
    }
}
